"""Dagster resources: Pinot with its ZooKeeper, Spark, the object store, and the drivers of sessions.

Each profile (local, staging, production) has its own set. This module reads the environment only and starts
nothing: the run that needs a missing setting reports it.
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
    """The argument of `dg.Definitions(resources=…)`; assets and sensors use the resources by these names."""

    pinot: PinotResource
    spark: SparkResource
    s3: S3Resource
    push: ConsistentPushResource


def profile_resources(profile: Profile | None = None) -> Resources:
    """Return the Dagster resources of one profile as a dict.

    The fields of Pinot, Spark and push stay empty: each reads the environment where and when it is used, and
    no definition contains a secret. AWS' standard chain finds S3's keys on each machine.

    :param profile: if None, the profile in PINOT_ASSETS_PROFILE.
    :raises PinotAssetsError: there is no such profile.
    """
    name = (profile or load_profile()).value
    pinot = PinotResource(profile=name)
    spark = SparkResource(profile=name)
    push = ConsistentPushResource(pinot=pinot, spark=spark)
    return {"pinot": pinot, "spark": spark, "s3": object_store(os.environ), "push": push}


def object_store(environ: Mapping[str, str]) -> S3Resource:
    """Return S3 as AWS' own variables locate it: executors get region and endpoint, as they may lack them."""
    return S3Resource(
        region_name=environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or None,
        endpoint_url=s3_endpoint(environ),
    )
