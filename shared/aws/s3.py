"""The S3 bucket: catalog and journal."""

from shared.aws.clients import Clients
from shared.aws.errors import translate_errors


class S3Bucket:
    """`shared.ports.storage.Bucket` over boto3."""

    def __init__(self, clients: Clients, bucket: str) -> None:
        """Use *bucket*; no call is made."""
        self._clients = clients
        self._bucket = bucket

    def put(self, key: str, body: bytes) -> None:
        """Call PutObject."""
        with translate_errors(f"s3:PutObject {key}"):
            self._clients.get_retrying_client("s3").put_object(Bucket=self._bucket, Key=key, Body=body)

    def get(self, key: str) -> bytes:
        """Call GetObject and read the whole body.

        Raises:
            NotFound: the object does not exist. (Without permission to list the bucket, S3 returns `Forbidden`
                instead.)
        """
        with translate_errors(f"s3:GetObject {key}"):
            response = self._clients.get_retrying_client("s3").get_object(Bucket=self._bucket, Key=key)
            return bytes(response["Body"].read())

    def list_keys(self, prefix: str) -> tuple[str, ...]:
        """Call ListObjectsV2, all pages; return the keys, sorted."""
        with translate_errors(f"s3:ListObjectsV2 {prefix}"):
            pages = (
                self._clients.get_retrying_client("s3")
                .get_paginator("list_objects_v2")
                .paginate(Bucket=self._bucket, Prefix=prefix)
            )
            return tuple(sorted(str(entry["Key"]) for page in pages for entry in page.get("Contents", ())))
