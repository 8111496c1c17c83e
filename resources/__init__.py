"""Dagster resources: Pinot with its ZooKeeper, Spark, the object store, the session machine.

Those of an installation: one profile each for local, staging and production. Nothing is read but the
environment, and nothing is started: what is missing is told by the run that needs it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TypedDict

from dagster_aws.s3 import S3Resource

from pinot_assets.core.connections import s3_endpoint
from pinot_assets.resources.consistent_push import ConsistentPushResource
from pinot_assets.resources.object_store import with_object_store
from pinot_assets.resources.pinot import PinotResource
from pinot_assets.resources.spark import SparkResource
from pinot_assets.settings.environment import Profile, load_profile

__all__ = [
    "ConsistentPushResource",
    "PinotResource",
    "SparkResource",
    "profile_resources",
    "with_object_store",
]


class Resources(TypedDict):
    """What `dg.Definitions(resources=…)` is given; assets and sensors ask for them by these names."""

    pinot: PinotResource
    spark: SparkResource
    s3: S3Resource
    push: ConsistentPushResource


def profile_resources(profile: Profile | None = None) -> Resources:
    """The dict of Dagster resources of one profile.

    Their own fields stay empty, so that each reads the environment where and when it is used, and no secret
    stands in a definition. S3's keys are found by AWS' standard chain on every machine.

    :param profile: PINOT_ASSETS_PROFILE where not given.
    :raises PinotAssetsError: there is no such profile.
    """
    name = (profile or load_profile()).value
    pinot = PinotResource(profile=name)
    spark = SparkResource(profile=name)
    push = ConsistentPushResource(pinot=pinot, spark=spark)
    return {"pinot": pinot, "spark": spark, "s3": object_store(os.environ), "push": push}


def object_store(environ: Mapping[str, str]) -> S3Resource:
    """S3 where AWS' own variables say it is: told to the executors, which may not have them."""
    return S3Resource(
        region_name=environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or None,
        endpoint_url=s3_endpoint(environ),
    )
