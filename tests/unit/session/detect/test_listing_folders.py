from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from fakes.stores.memory import new_memory

from pinot_assets.session.detect.listing import with_folders
from pinot_assets.session.values.plan import Changes
from pinot_assets.source import Fingerprint, SourceFile

VERSION = Fingerprint(3, 7)


def changes(*deleted: str) -> Changes:
    return Changes((), (), deleted, {}, {}, "digest")


def ledger(*uris: str) -> Any:
    return SimpleNamespace(ledger={uri: SimpleNamespace(fingerprint=VERSION) for uri in uris})


def test_a_deleted_file_with_objects_below_its_name_is_rewritten_and_not_deleted() -> None:
    store = new_memory()
    store.write("a.csv/part-0", b"x")
    folder, gone = store.uri_of("a.csv"), store.uri_of("b.csv")
    found = with_folders(store, changes(folder, gone), ledger(folder, gone))
    assert found.deleted == (gone,)
    assert found.rewritten == (SourceFile(folder, VERSION),)
    assert found.listed == {folder: SourceFile(folder, VERSION)}  # so that a retry keeps its row


def test_a_deletion_that_a_rollback_holds_back_stays_one() -> None:
    store = new_memory()
    store.write("a.csv/part-0", b"x")
    folder = store.uri_of("a.csv")
    assert with_folders(store, changes(folder), ledger(folder), but=(folder,)) == changes(folder)


def test_without_deletions_nothing_is_asked() -> None:
    def refuse() -> None:
        raise AssertionError("the source was asked")

    store = new_memory()
    store.on_list = refuse
    assert with_folders(store, changes(), ledger()) == changes()
    assert with_folders(store, changes("file:///a"), None) == changes("file:///a")


def test_a_file_of_a_source_that_the_spec_named_before_is_deleted() -> None:
    store, gone = new_memory(), "s3://former/a.csv"
    assert with_folders(store, changes(gone), ledger(gone)) == changes(gone)
