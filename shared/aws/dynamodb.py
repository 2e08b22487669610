"""The table: what must be exact between concurrent functions.

One item per row: `pk` is the kind, `sk` the name, `version` grows by one with every write, `body` is JSON, `expires`
is the epoch second at which DynamoDB may delete the row (its TTL attribute), which it does late: readers compare.

Every write is conditional and is attempted once: a second attempt would be refused by the success of the first.
A fenced write is a transaction with a check of the lease row; a lease row must therefore be overwritten, never removed,
because a row that is made anew starts again at version 1.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from shared.aws.clients import Clients
from shared.aws.errors import faults
from shared.ports import Fence, Row

LEASE: Final = "lease"
"""The kind of the rows that a `Fence` names."""

_NAMES: Final = {"#pk": "pk", "#version": "version"}
_ABSENT: Final = "attribute_not_exists(#pk)"
_UNCHANGED: Final = "#version = :version"


class DynamoTable:
    """`shared.ports.Table` over boto3."""

    def __init__(self, clients: Clients, table_name: str) -> None:
        """Speak of *table_name*; calls nothing yet."""
        self._clients = clients
        self._table = table_name

    def read(self, kind: str, name: str) -> Row | None:
        """GetItem, consistent."""
        with faults(f"dynamodb:GetItem {kind}/{name}"):
            answer = self._clients.patient("dynamodb").get_item(
                TableName=self._table, Key=_key(kind, name), ConsistentRead=True
            )
        return row_from_item(answer["Item"]) if "Item" in answer else None

    def rows(self, kind: str) -> tuple[Row, ...]:
        """Query, consistent, all pages."""
        with faults(f"dynamodb:Query {kind}"):
            pages = (
                self._clients.patient("dynamodb")
                .get_paginator("query")
                .paginate(
                    TableName=self._table,
                    ConsistentRead=True,
                    KeyConditionExpression="#pk = :kind",
                    ExpressionAttributeNames={"#pk": "pk"},
                    ExpressionAttributeValues={":kind": {"S": kind}},
                )
            )
            found = [row_from_item(item) for page in pages for item in page["Items"]]
        return tuple(sorted(found, key=lambda row: row.name))

    def write(
        self,
        kind: str,
        name: str,
        body: str,
        *,
        version: int,
        expires_at: datetime | None = None,
        fence: Fence | None = None,
    ) -> Row:
        """PutItem under a condition; with *fence* a transaction. *expires_at* is kept in whole seconds, rounded up.

        Raises:
            Conflict: the row is not at *version*, or the fence does not hold.
        """
        row = Row(kind=kind, name=name, version=version + 1, body=body, expires_at=whole_seconds(expires_at))
        put = {"TableName": self._table, "Item": item_from_row(row), **_condition(version)}
        with faults(f"dynamodb:PutItem {kind}/{name} at {version}"):
            if fence is None:
                self._clients.once("dynamodb").put_item(**put)
            else:
                self._clients.once("dynamodb").transact_write_items(
                    TransactItems=[{"ConditionCheck": self._holds(fence)}, {"Put": put}]
                )
        return row

    def remove(self, kind: str, name: str, *, version: int) -> None:
        """DeleteItem, if it is at *version* or gone already.

        Raises:
            Conflict: it has another version.
        """
        unless_changed = _condition(version or -1)
        unless_changed["ConditionExpression"] = f"{_ABSENT} OR {_UNCHANGED}"
        unless_changed["ExpressionAttributeNames"] = _NAMES
        with faults(f"dynamodb:DeleteItem {kind}/{name} at {version}"):
            self._clients.once("dynamodb").delete_item(TableName=self._table, Key=_key(kind, name), **unless_changed)

    def _holds(self, fence: Fence) -> dict[str, Any]:
        return {"TableName": self._table, "Key": _key(LEASE, fence.name), **_condition(fence.version)}


def item_from_row(row: Row) -> dict[str, Any]:
    """Answer *row* in DynamoDB's typed JSON."""
    item = {**_key(row.kind, row.name), "version": {"N": str(row.version)}, "body": {"S": row.body}}
    if row.expires_at is not None:
        item["expires"] = {"N": str(int(row.expires_at.timestamp()))}
    return item


def row_from_item(item: Mapping[str, Any]) -> Row:
    """Answer the row that DynamoDB's typed JSON stands for."""
    return Row(
        kind=item["pk"]["S"],
        name=item["sk"]["S"],
        version=int(item["version"]["N"]),
        body=item["body"]["S"],
        expires_at=datetime.fromtimestamp(int(item["expires"]["N"]), UTC) if "expires" in item else None,
    )


def whole_seconds(instant: datetime | None) -> datetime | None:
    """Answer *instant* as TTL can keep it: rounded up, so that nothing expires early."""
    return instant and datetime.fromtimestamp(math.ceil(instant.timestamp()), UTC)


def _key(kind: str, name: str) -> dict[str, Any]:
    return {"pk": {"S": kind}, "sk": {"S": name}}


def _condition(version: int) -> dict[str, Any]:
    """Answer the condition that the row is still at *version*; 0: that there is none."""
    if version == 0:
        return {"ConditionExpression": _ABSENT, "ExpressionAttributeNames": {"#pk": "pk"}}
    return {
        "ConditionExpression": _UNCHANGED,
        "ExpressionAttributeNames": {"#version": "version"},
        "ExpressionAttributeValues": {":version": {"N": str(version)}},
    }
