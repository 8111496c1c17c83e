"""The resource `spark` on a master that the environment names, inside a real run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.spark]

# In a process of its own: there is one Spark session in a process, and other tests have theirs.
_RUN = """
import json
import dagster as dg
from pinot_assets.resources import ConsistentPushResource, profile_resources

@dg.asset
def numbers(push: ConsistentPushResource) -> None:
    context = push.spark.spark_context
    spark = push.spark.spark_session
    keys = ("spark.app.name", "spark.mine", "spark.driver.memory")
    found = {key: context.getConf().get(key) for key in keys}
    # The package is only in this Python: a worker of another one would not find it.
    safe = context.parallelize([0], 1).map(
        lambda _: __import__("pinot_assets").__name__ + __import__("os").environ["PYTHONSAFEPATH"]
    ).collect()
    print(json.dumps({"master": context.master, "sum": context.parallelize(range(5), 2).sum(), "safe": safe,
                      "same": push.spark.spark_session is spark and spark.sparkContext is context, **found}))
    spark.stop()

assert dg.materialize([numbers], resources=profile_resources()).success
"""


def test_any_master_and_properties_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = tmp_path / "spark.conf"
    properties.write_text(
        "spark.master local[7]\nspark.mine yes\nspark.driver.memory 512m\nspark.ui.enabled false\n"
        "spark.driver.host 127.0.0.1\nspark.driver.bindAddress 127.0.0.1\n"
    )
    monkeypatch.setenv("PINOT_ASSETS_PROFILE", "production")
    monkeypatch.setenv("PINOT_ASSETS_SPARK_MASTER", "local[2]")
    monkeypatch.setenv("PINOT_ASSETS_SPARK_PROPERTIES", str(properties))
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    done = subprocess.run(
        [sys.executable, "-c", _RUN], capture_output=True, text=True, check=False, timeout=300, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("{"))
    assert json.loads(line) == {
        "master": "local[2]",
        "sum": 10,
        "safe": ["pinot_assets1"],
        "same": True,
        "spark.app.name": "pinot-assets",
        "spark.mine": "yes",
        "spark.driver.memory": "512m",
    }
