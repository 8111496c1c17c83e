"""Which receipts count, and which files are built: rules R11, R12 and R15."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest

pytestmark = pytest.mark.integration


@pytest.fixture(params=["append", "sync", "swap"])
def world(request: pytest.FixtureRequest, make_world: Any) -> Any:
    """F1 and F2 are built, F3 has failed."""
    world = make_world(request.param)
    world.write("F1", "F2", "F3")
    world.builder.failing = {"F3"}
    world.run()
    return world


def receipt_of(world: Any, name: str) -> Any:
    plan = world.staging.plan(world.read_session().plan)
    receipts = world.staging.receipts(plan).values()
    return next(receipt for _, receipt in receipts if receipt.uri.endswith(f"/{name}"))


def segments_of(world: Any, value: str) -> list[str]:
    return [s for s in world.read_snapshot().segments if world.builder.rows[s] == (value,)]


def test_r11_a_zombies_receipt_is_ignored_once_one_was_accepted(world: Any) -> None:
    world.run()
    receipt = receipt_of(world, "F1")
    (output,) = receipt.outputs
    other = world.staging.put_renamed(output, output.segment.replace("_0_0_0", "_1_0_0"))
    world.staging.put_receipt(world.read_session().id, replace(receipt, attempt=1, outputs=(other,)))
    world.builder.failing = set()
    world.run()
    assert segments_of(world, "F1") == [output.segment]
    world.assert_settled()


def test_r11_only_what_the_plan_accepted_is_switched_to(world: Any) -> None:
    """A receipt of a file that nobody planned."""
    receipt = receipt_of(world, "F1")
    stranger = replace(receipt, uri=receipt.uri.replace("F1", "X"), ordinal=77, attempt=1)
    world.staging.put_receipt(world.read_session().id, stranger)
    world.builder.failing = set()
    world.run()
    assert world.visible == ["F1", "F2", "F3"]
    world.assert_settled()


@pytest.mark.parametrize("damage", ["gone", "other bytes"])
def test_r12_a_file_whose_tar_is_not_what_it_was_is_built_again(world: Any, damage: str) -> None:
    (output,) = receipt_of(world, "F1").outputs
    key = world.staging.key_of(output.tar_uri)
    data = world.staging.store.read(key)
    world.staging.store.delete(key)
    if damage == "other bytes":
        world.staging.store.put_if_absent(key, data[:-1] + bytes([data[-1] ^ 1]))
    world.builder.failing = set()
    world.run()
    assert world.built == ["F1", "F3"]
    (name,) = segments_of(world, "F1")
    assert name != output.segment
    assert world.visible == ["F1", "F2", "F3"]
    world.assert_settled()


def test_r12_a_file_that_changed_after_the_plan_is_done_with_what_was_read(make_world: Any) -> None:
    world = make_world("sync")
    world.write("F1", "F2")
    build = world.builder._build

    def rewritten(order: Any, task: Any) -> Any:
        if task.file.uri.endswith("/F1"):
            world.write(F1="F1.1")
        return build(order, task)

    world.builder._build = rewritten
    world.run()
    assert world.visible == ["F1.1", "F2"]
    assert world.run().result.value == "NOTHING"


def test_r15_a_file_that_returns_as_it_was_is_not_built_again(world: Any) -> None:
    (old,) = receipt_of(world, "F1").outputs
    version = (world.source / "F1").stat()
    world.remove("F1")
    world.run()
    world.write("F1")
    os.utime(world.source / "F1", ns=(version.st_atime_ns, version.st_mtime_ns))
    world.builder.failing = set()
    world.run()
    assert world.built == ["F3"]
    (name,) = segments_of(world, "F1")
    assert name.rsplit("_", 2)[1] == "3"  # a row of its own: 0 to 2 were given before
    assert name != old.segment
    assert world.visible == ["F1", "F2", "F3"]
    world.assert_settled()


def test_r15_a_file_that_returns_rewritten_is_built_under_a_new_ordinal(world: Any) -> None:
    world.remove("F1")
    world.run()
    world.write(F1="F1.1")
    world.builder.failing = set()
    world.run()
    assert world.built == ["F3", "F1"]
    (name,) = segments_of(world, "F1.1")
    assert name.rsplit("_", 2)[1] == "3"
    world.assert_settled()


def test_r15_swap_builds_every_listed_file_that_is_not_in_the_plan(make_world: Any) -> None:
    """One that was published before the session and is listed again, unchanged, too."""
    world = make_world("swap")
    world.write("A1", "A2")
    world.run()
    version = (world.source / "A1").stat()
    world.remove("A1")
    world.write("F1")
    world.builder.failing = {"F1"}
    world.run()
    world.write("A1")
    os.utime(world.source / "A1", ns=(version.st_atime_ns, version.st_mtime_ns))
    world.builder.failing = set()
    world.run()
    assert world.built == ["F1", "A1"]
    assert world.visible == ["A1", "A2", "F1"]
    world.assert_settled()
