"""Contract of every `Table`: the one in memory, and DynamoDB as moto simulates it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import boto3
import pytest
from moto import mock_aws
from moto.core import DEFAULT_ACCOUNT_ID

from shared.aws.clients import Clients
from shared.aws.dynamodb import DynamoTable
from shared.errors import Conflict, Invalid, NotFound
from shared.ports.storage import FencingToken, Table, TableRow
from sim.world.memory_ports import MemoryTable

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
KEY = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]


@pytest.fixture(scope="module")
def account() -> Iterator[Clients]:
    with mock_aws():
        clients = Clients("us-east-1")
        yield clients
        clients.close()


def create_table(name: str) -> None:
    boto3.client("dynamodb").create_table(
        TableName=name,
        KeySchema=KEY,
        AttributeDefinitions=[{"AttributeName": attribute, "AttributeType": "S"} for attribute in ("pk", "sk")],
        BillingMode="PAY_PER_REQUEST",
    )


@pytest.fixture(params=["memory", "dynamodb"])
def table(request: pytest.FixtureRequest) -> Table:
    if request.param == "memory":
        return MemoryTable()
    account: Clients = request.getfixturevalue("account")
    name = "t" + "".join(letter for letter in request.node.name if letter.isalnum())
    create_table(name)
    return DynamoTable(account, name)


def test_missing_row_is_read_as_none(table: Table) -> None:
    assert table.read("command", "a") is None
    assert table.list_rows("command") == ()


def test_written_row_is_read_back(table: Table) -> None:
    row = table.write("command", "a", '{"step":1}', version=0)
    assert row == TableRow(kind="command", name="a", version=1, body='{"step":1}')
    assert table.read("command", "a") == row


def test_every_write_increments_the_row_version(table: Table) -> None:
    versions = [table.write("command", "a", "{}", version=version).version for version in range(4)]
    assert versions == [1, 2, 3, 4]


@pytest.mark.parametrize("version", [0, 1, 3])
def test_write_with_a_different_version_raises_conflict(table: Table, version: int) -> None:
    table.write("command", "a", "1", version=0)
    table.write("command", "a", "2", version=1)
    with pytest.raises(Conflict):
        table.write("command", "a", "3", version=version)
    assert table.read("command", "a") == TableRow(kind="command", name="a", version=2, body="2")


def test_write_with_a_version_to_a_missing_row_raises_conflict(table: Table) -> None:
    with pytest.raises(Conflict):
        table.write("command", "a", "{}", version=1)


def test_expired_rows_are_still_returned(table: Table) -> None:
    long_ago = NOON - timedelta(days=300)
    row = table.write("ice", "a", "{}", version=0, expires_at=long_ago)
    assert table.read("ice", "a") == row
    assert table.list_rows("ice") == (row,)
    assert row.expires_at == long_ago


def test_expiration_is_rounded_up_to_whole_seconds(table: Table) -> None:
    row = table.write("ice", "a", "{}", version=0, expires_at=NOON + timedelta(milliseconds=1))
    assert row.expires_at == NOON + timedelta(seconds=1)
    assert table.read("ice", "a") == row


def test_rows_are_listed_by_kind_and_sorted_by_name(table: Table) -> None:
    for name in ("b", "ä", "a/2", "a", "Z"):
        table.write("ledger", name, name, version=0)
    table.write("other", "a", "{}", version=0)
    assert [row.name for row in table.list_rows("ledger")] == ["Z", "a", "a/2", "b", "ä"]
    assert {row.body for row in table.list_rows("ledger")} == {"Z", "a", "a/2", "b", "ä"}


def test_paginated_row_listing_returns_all_rows(table: Table) -> None:
    names = [f"row-{number}" for number in range(8)]
    for name in names:
        table.write("ledger", name, "x" * 300_000, version=0)
    assert [row.name for row in table.list_rows("ledger")] == names


def test_fenced_write_succeeds_while_the_lease_version_matches(table: Table) -> None:
    lease = table.write("lease", "cluster", "us", version=0)
    table.write("command", "a", "{}", version=0, fence=FencingToken(name="cluster", version=lease.version))
    assert table.read("command", "a") == TableRow(kind="command", name="a", version=1, body="{}")


def test_fenced_write_raises_conflict_after_the_lease_version_changes(table: Table) -> None:
    lease = table.write("lease", "cluster", "us", version=0)
    table.write("lease", "cluster", "them", version=lease.version)
    with pytest.raises(Conflict):
        table.write("command", "a", "{}", version=0, fence=FencingToken(name="cluster", version=lease.version))
    assert table.read("command", "a") is None


def test_fenced_write_without_a_lease_raises_conflict(table: Table) -> None:
    with pytest.raises(Conflict):
        table.write("command", "a", "{}", version=0, fence=FencingToken(name="cluster", version=1))


def test_fenced_write_also_requires_the_matching_row_version(table: Table) -> None:
    lease = table.write("lease", "cluster", "us", version=0)
    table.write("command", "a", "1", version=0)
    with pytest.raises(Conflict):
        table.write("command", "a", "2", version=0, fence=FencingToken(name="cluster", version=lease.version))
    row = table.write("command", "a", "2", version=1, fence=FencingToken(name="cluster", version=lease.version))
    assert table.read("command", "a") == row


def test_lease_write_fenced_by_itself_is_rejected(table: Table) -> None:
    lease = table.write("lease", "cluster", "us", version=0)
    with pytest.raises(Invalid):
        table.write("lease", "cluster", "us", version=1, fence=FencingToken(name="cluster", version=lease.version))


def test_removed_row_is_gone_and_removing_it_again_succeeds(table: Table) -> None:
    table.write("command", "a", "{}", version=0)
    table.remove("command", "a", version=1)
    assert table.read("command", "a") is None
    table.remove("command", "a", version=1)


@pytest.mark.parametrize("version", [0, 2])
def test_removal_with_a_different_version_raises_conflict(table: Table, version: int) -> None:
    table.write("command", "a", "{}", version=0)
    with pytest.raises(Conflict):
        table.remove("command", "a", version=version)
    assert table.read("command", "a") is not None


def test_recreated_row_starts_at_version_one(table: Table) -> None:
    table.write("command", "a", "{}", version=0)
    table.remove("command", "a", version=1)
    assert table.write("command", "a", "{}", version=0).version == 1


@pytest.mark.parametrize(("kind", "name", "size"), [("", "a", 1), ("command", "", 1), ("command", "a", 420_000)])
def test_row_with_an_empty_key_or_an_oversized_body_is_rejected(table: Table, kind: str, name: str, size: int) -> None:
    with pytest.raises(Invalid):
        table.write(kind, name, "x" * size, version=0)


@pytest.mark.parametrize("is_fenced", [False, True])
def test_an_item_above_400_kib_is_refused_in_the_words_of_dynamodb(table: Table, is_fenced: bool) -> None:  # noqa: FBT001
    lease = table.write("lease", "cluster", "us", version=0)
    fence = FencingToken(name="cluster", version=lease.version) if is_fenced else None
    with pytest.raises(Invalid, match="Item size has exceeded the maximum allowed size"):
        table.write("launch-group", "a", "ä" * (200 * 1024), version=0, fence=fence)
    assert table.read("launch-group", "a") is None
    body = "ä" * (195 * 1024)
    assert table.write("launch-group", "a", body, version=0, fence=fence).body == body


def test_missing_table_raises_not_found_instead_of_returning_no_rows(account: Clients) -> None:
    with pytest.raises(NotFound):
        DynamoTable(account, "missing").list_rows("command")
    with pytest.raises(NotFound):
        DynamoTable(account, "missing").read("command", "a")


def test_table_of_a_group_is_named_by_its_arn(account: Clients) -> None:
    create_table("groups")
    table = DynamoTable(account, f"arn:aws:dynamodb:us-east-1:{DEFAULT_ACCOUNT_ID}:table/groups")
    assert table.read("group/g", "usage") is None
    row = table.write("group/g", "usage", "{}", version=0)
    assert table.read("group/g", "usage") == row
    with pytest.raises(Conflict):
        table.write("group/g", "usage", "{}", version=0)
    with pytest.raises(NotFound):
        DynamoTable(account, f"arn:aws:dynamodb:us-east-1:{DEFAULT_ACCOUNT_ID}:table/none").read("group/g", "usage")
