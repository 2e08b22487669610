"""The bucket: catalogue and journal."""

from shared.aws.clients import Clients
from shared.aws.errors import faults


class S3Bucket:
    """`shared.ports.Bucket` over boto3."""

    def __init__(self, clients: Clients, bucket: str) -> None:
        """Speak of *bucket*; calls nothing yet."""
        self._clients = clients
        self._bucket = bucket

    def put(self, key: str, body: bytes) -> None:
        """PutObject."""
        with faults(f"s3:PutObject {key}"):
            self._clients.patient("s3").put_object(Bucket=self._bucket, Key=key, Body=body)

    def get(self, key: str) -> bytes:
        """GetObject, read to its end.

        Raises:
            Gone: there is none. (Without the right to list the bucket S3 says `Forbidden` instead.)
        """
        with faults(f"s3:GetObject {key}"):
            answer = self._clients.patient("s3").get_object(Bucket=self._bucket, Key=key)
            return bytes(answer["Body"].read())

    def keys(self, prefix: str) -> tuple[str, ...]:
        """ListObjectsV2, all pages, sorted."""
        with faults(f"s3:ListObjectsV2 {prefix}"):
            pages = (
                self._clients.patient("s3")
                .get_paginator("list_objects_v2")
                .paginate(Bucket=self._bucket, Prefix=prefix)
            )
            return tuple(sorted(str(each["Key"]) for page in pages for each in page.get("Contents", ())))
