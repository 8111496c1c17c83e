"""A plan as one Parquet object. `session/stores/staging.py` stores it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pyarrow as pa

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.core.stored_format import (
    FIRST,
    FORMAT,
    NEEDS,
    WITH_PACKS,
    Marks,
    checked_table,
    keeping,
    kept_fields,
    marked,
    parquet_metadata,
    parquet_of,
    plain,
    structured,
)
from pinot_assets.core.untrusted import fitting, read_json
from pinot_assets.session.values.plan import Plan, Row, RowStatus
from pinot_assets.session.values.state import Mode
from pinot_assets.snapshot.receipt import Fingerprint
from pinot_assets.snapshot.recipes import StoredRecipe

_ROWS = pa.schema(
    [
        pa.field("uri", pa.string(), nullable=False),
        pa.field("ordinal", pa.int64(), nullable=False),
        pa.field("size", pa.int64()),
        pa.field("mtime_us", pa.int64()),
        pa.field("etag", pa.string()),
        pa.field("version_id", pa.string()),
        pa.field("status", pa.string(), nullable=False),
        pa.field("receipt", pa.string(), nullable=False),
    ]
)
_KIND, _SMALL = "kind", "small"
_FILE, _PACK = "FILE", "PACK"
_WITH_PACKS = pa.schema([*_ROWS, pa.field(_KIND, pa.string()), pa.field(_SMALL, pa.bool_())])
"""From format 3 on."""
# Removals and touched files are rows, too, since there may be as many of them as files.
_REMOVAL, _TOUCHED, _MERGED = "REMOVAL", "TOUCHED", "MERGED"
_COMPACTS = "compacts"
_META = frozenset({"session", "attempt", "mode", "listingDigest", "recipe", _COMPACTS, FORMAT, NEEDS})


def plan_to_parquet(plan: Plan) -> bytes:
    """The plan as one Parquet object.

    :raises ValueError: it has packs, and its format has none.
    """
    has_packs = bool(plan.packs) or any(row.is_small for row in plan.rows)
    if has_packs and plan.format < WITH_PACKS:
        raise ValueError(f"a plan of format {plan.format} has no packs")
    of_format = _schema(plan.format)
    rows = [
        _row(r.uri, r.ordinal, r.planned, r.status, r.receipt)
        | {_KIND: kind, _SMALL: r.is_small}  # columns that the schema lacks are not written
        | dict(r.kept)
        for kind, of_kind in ((_FILE, plan.rows), (_PACK, plan.packs))
        for r in of_kind
    ]
    rows += [_row(uri, -1, None, _REMOVAL, "") for uri in plan.removals]
    rows += [_row(uri, -1, version, _TOUCHED, "") for uri, version in plan.touched.items()]
    rows += [_row(name, -1, None, _MERGED, "") for name in plan.merged]
    said = {
        "session": plan.session,
        "attempt": str(plan.attempt),
        "mode": plan.mode,
        "listingDigest": plan.listing_digest,
        **_recipe_text(plan),
        **({_COMPACTS: "true"} if plan.compacts else {}),
        **plan.kept,
    }
    return parquet_of(
        rows, marked(pa.schema([*of_format, *kept_fields((*plan.rows, *plan.packs))]), plan.format, said)
    )


def plan_from_parquet(data: bytes, what: str = "a plan") -> Plan:
    """Inverse of `plan_to_parquet`; for other bytes it raises the errors of its parsers.

    :param what: its address, for errors.
    :raises NeedsNewerRelease: it is of a format that this release does not know.
    """
    meta = parquet_metadata(data)
    number = Marks.of(meta).require_known(what)  # before its rows: a newer format may change them
    table, unknown = checked_table(data, _schema(number))
    rows = table.to_pylist()
    own = [row for row in rows if row["status"] not in (_REMOVAL, _TOUCHED, _MERGED)]
    return Plan(
        session=meta["session"],
        attempt=int(meta["attempt"]),
        mode=Mode(meta["mode"]),
        rows=tuple(_plan_row(row, unknown) for row in own if row.get(_KIND) != _PACK),
        removals=tuple(row["uri"] for row in rows if row["status"] == _REMOVAL),
        touched={row["uri"]: fitting(Fingerprint.of_row(row)) for row in rows if row["status"] == _TOUCHED},
        listing_digest=meta["listingDigest"],
        recipe=_recipe_from(meta, what),
        format=number,
        kept={key: value for key, value in meta.items() if key not in _META},
        packs=tuple(_plan_row(row, unknown) for row in own if row.get(_KIND) == _PACK),
        merged=tuple(row["uri"] for row in rows if row["status"] == _MERGED),
        compacts=meta.get(_COMPACTS) == "true",
    )


def _schema(number: int) -> pa.Schema:
    return _ROWS if number < WITH_PACKS else _WITH_PACKS


def _recipe_text(plan: Plan) -> dict[str, str]:
    """Return the recipe as metadata; nothing in format 1, whose release does not know it."""
    if plan.recipe is None or plan.format == FIRST:
        return {}
    return {"recipe": json.dumps(plain(plan.recipe, plan.format), sort_keys=True)}


def _recipe_from(meta: Mapping[str, str], what: str) -> StoredRecipe | None:
    text = meta.get("recipe")
    return (
        None if text is None else structured(StoredRecipe, read_json(text.encode()), f"the recipe of {what}")
    )


def _plan_row(row: JsonMapping, unknown: Sequence[str]) -> Row:
    planned, status = fitting(Fingerprint.of_row(row)), RowStatus(row["status"])
    return Row(
        row["uri"],
        row["ordinal"],
        planned,
        status,
        row["receipt"],
        bool(row.get(_SMALL)),
        **keeping(row, unknown),
    )


def _row(uri: str, ordinal: int, version: Fingerprint | None, status: str, receipt: str) -> JsonObject:
    values = version.to_json() if version else dict.fromkeys(("size", "mtime_us", "etag", "version_id"))
    return {"uri": uri, "ordinal": ordinal, **values, "status": str(status), "receipt": receipt}
