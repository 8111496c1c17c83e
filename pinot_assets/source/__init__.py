"""The source: object stores, complete listings, fingerprints, path patterns, the comparison of files.

No Dagster and no Spark in here, because executors import it.
"""

from pinot_assets.snapshot.receipt import Fingerprint, SourceFile
from pinot_assets.source.diff import diff
from pinot_assets.source.factory import open_store
from pinot_assets.source.file_patterns import compile_pattern
from pinot_assets.source.file_table import ObjectInfo
from pinot_assets.source.listing import Inventory, take_inventory
from pinot_assets.source.object_store import ObjectStore
from pinot_assets.source.readiness import Known, Readiness, Rules, Unready, judge_readiness, unready_words
from pinot_assets.source.settings import resolve_env

__all__ = [
    "Fingerprint",
    "Inventory",
    "Known",
    "ObjectInfo",
    "ObjectStore",
    "Readiness",
    "Rules",
    "SourceFile",
    "Unready",
    "compile_pattern",
    "diff",
    "judge_readiness",
    "open_store",
    "resolve_env",
    "take_inventory",
    "unready_words",
]
