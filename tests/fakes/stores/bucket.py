"""What of boto3's client tests call: it has no types."""

from __future__ import annotations

from typing import Protocol

from pinot_assets.core.json_object import JsonMapping


class Bucket(Protocol):
    """A client of S3."""

    def create_bucket(self, *, Bucket: str) -> object: ...

    def put_object(self, *, Bucket: str, Key: str, Body: bytes) -> object: ...

    def delete_object(self, *, Bucket: str, Key: str) -> object: ...

    def list_multipart_uploads(self, *, Bucket: str) -> JsonMapping: ...
