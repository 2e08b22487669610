"""What every `Bucket` keeps: the one in memory, and S3 as moto has it."""

from collections.abc import Iterator

import boto3
import pytest
from moto import mock_aws

from shared.aws.clients import Clients
from shared.aws.s3 import S3Bucket
from shared.errors import NotFound
from shared.ports.storage import Bucket
from sim.world.memory_ports import MemoryBucket


@pytest.fixture(scope="module")
def account() -> Iterator[Clients]:
    with mock_aws():
        clients = Clients("us-east-1")
        yield clients
        clients.close()


@pytest.fixture(params=["memory", "s3"])
def bucket(request: pytest.FixtureRequest) -> Bucket:
    if request.param == "memory":
        return MemoryBucket()
    account: Clients = request.getfixturevalue("account")
    name = "bucket-" + "".join(letter for letter in request.node.name.lower() if letter.isalnum())[-50:]
    boto3.client("s3").create_bucket(Bucket=name)
    return S3Bucket(account, name)


def test_stored_object_is_returned(bucket: Bucket) -> None:
    bucket.put("catalogue/types.json", b'{"a":1}')
    assert bucket.get("catalogue/types.json") == b'{"a":1}'


@pytest.mark.parametrize("body", [b"", bytes(range(256)), b"x" * 3_000_000], ids=["empty", "binary", "large"])
def test_object_bodies_are_stored_byte_for_byte(bucket: Bucket, body: bytes) -> None:
    bucket.put("journal/x", body)
    assert bucket.get("journal/x") == body


def test_last_write_to_a_key_wins(bucket: Bucket) -> None:
    bucket.put("a", b"1")
    bucket.put("a", b"2")
    assert bucket.get("a") == b"2"
    assert bucket.list_keys("") == ("a",)


def test_missing_key_raises_not_found(bucket: Bucket) -> None:
    with pytest.raises(NotFound):
        bucket.get("missing")


def test_keys_are_listed_by_prefix_and_sorted(bucket: Bucket) -> None:
    for key in ("journal/b", "journal/a b+c", "journal/ä", "journal/B", "journals", "other/a"):
        bucket.put(key, b"")
    assert bucket.list_keys("journal/") == ("journal/B", "journal/a b+c", "journal/b", "journal/ä")
    assert bucket.list_keys("nothing") == ()


def test_paginated_key_listing_returns_all_keys(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "4")
    keys = tuple(f"journal/{number}" for number in range(9))
    for key in keys:
        bucket.put(key, b"")
    assert bucket.list_keys("journal/") == keys
