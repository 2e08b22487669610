"""The DynamoDB table: state that must be exact between concurrent functions.

One item per row: `pk` is the kind, `sk` the name, `version` grows by one with every write, `body` is JSON, `expires` is
the epoch second after which DynamoDB may delete the row (the TTL attribute). DynamoDB deletes late, so readers must
compare the time themselves.

Every write is conditional and is attempted once: a second attempt would be rejected because the first succeeded. A
fenced write is a transaction with a check of the lease row. A lease row must therefore be overwritten and never
deleted, because a recreated row starts again at version 1.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from shared.aws.clients import Clients
from shared.aws.errors import translate_errors
from shared.ports.storage import FencingToken, TableRow

LEASE_KIND: Final = "lease"
"""The kind of the lease rows that a `FencingToken` refers to."""

_ATTRIBUTE_NAMES: Final = {"#pk": "pk", "#version": "version"}
_ROW_ABSENT_EXPRESSION: Final = "attribute_not_exists(#pk)"
_VERSION_UNCHANGED_EXPRESSION: Final = "#version = :version"


class DynamoTable:
    """`shared.ports.storage.Table` over boto3."""

    def __init__(self, clients: Clients, table_name: str) -> None:
        """Use the table *table_name*; no call is made."""
        self._clients = clients
        self._table_name = table_name

    def read(self, kind: str, name: str) -> TableRow | None:
        """GetItem, strongly consistent."""
        with translate_errors(f"dynamodb:GetItem {kind}/{name}"):
            response = self._clients.get_retrying_client("dynamodb").get_item(
                TableName=self._table_name, Key=_build_key(kind, name), ConsistentRead=True
            )
        return parse_item(response["Item"]) if "Item" in response else None

    def list_rows(self, kind: str) -> tuple[TableRow, ...]:
        """Query, strongly consistent, all pages."""
        with translate_errors(f"dynamodb:Query {kind}"):
            pages = (
                self._clients.get_retrying_client("dynamodb")
                .get_paginator("query")
                .paginate(
                    TableName=self._table_name,
                    ConsistentRead=True,
                    KeyConditionExpression="#pk = :kind",
                    ExpressionAttributeNames={"#pk": "pk"},
                    ExpressionAttributeValues={":kind": {"S": kind}},
                )
            )
            rows = [parse_item(item) for page in pages for item in page["Items"]]
        return tuple(sorted(rows, key=lambda row: row.name))

    def write(
        self,
        kind: str,
        name: str,
        body: str,
        *,
        version: int,
        expires_at: datetime | None = None,
        fence: FencingToken | None = None,
    ) -> TableRow:
        """PutItem with a condition; with *fence*, a transaction. *expires_at* is stored in whole seconds, rounded up.

        Raises:
            Conflict: the row is not at *version*, or the fence does not hold.
        """
        row = TableRow(kind=kind, name=name, version=version + 1, body=body, expires_at=round_up_to_seconds(expires_at))
        put_request = {"TableName": self._table_name, "Item": build_item(row), **_build_version_condition(version)}
        with translate_errors(f"dynamodb:PutItem {kind}/{name} at {version}"):
            if fence is None:
                self._clients.get_single_attempt_client("dynamodb").put_item(**put_request)
            else:
                self._clients.get_single_attempt_client("dynamodb").transact_write_items(
                    TransactItems=[{"ConditionCheck": self._build_lease_check(fence)}, {"Put": put_request}]
                )
        return row

    def remove(self, kind: str, name: str, *, version: int) -> None:
        """DeleteItem if the row is at *version* or does not exist.

        Raises:
            Conflict: the row has another version.
        """
        condition = _build_version_condition(version or -1)
        condition["ConditionExpression"] = f"{_ROW_ABSENT_EXPRESSION} OR {_VERSION_UNCHANGED_EXPRESSION}"
        condition["ExpressionAttributeNames"] = _ATTRIBUTE_NAMES
        with translate_errors(f"dynamodb:DeleteItem {kind}/{name} at {version}"):
            self._clients.get_single_attempt_client("dynamodb").delete_item(
                TableName=self._table_name, Key=_build_key(kind, name), **condition
            )

    def _build_lease_check(self, fence: FencingToken) -> dict[str, Any]:
        return {
            "TableName": self._table_name,
            "Key": _build_key(LEASE_KIND, fence.name),
            **_build_version_condition(fence.version),
        }


def get_table_region(table_arn: str) -> str:
    """Return the region of a table.

    >>> get_table_region("arn:aws:dynamodb:us-east-1:123456789012:table/joiner-groups")
    'us-east-1'
    """
    return table_arn.split(":")[3]


def build_item(row: TableRow) -> dict[str, Any]:
    """Convert *row* to DynamoDB's typed JSON."""
    item = {**_build_key(row.kind, row.name), "version": {"N": str(row.version)}, "body": {"S": row.body}}
    if row.expires_at is not None:
        item["expires"] = {"N": str(int(row.expires_at.timestamp()))}
    return item


def parse_item(item: Mapping[str, Any]) -> TableRow:
    """Parse a row from DynamoDB's typed JSON."""
    return TableRow(
        kind=item["pk"]["S"],
        name=item["sk"]["S"],
        version=int(item["version"]["N"]),
        body=item["body"]["S"],
        expires_at=datetime.fromtimestamp(int(item["expires"]["N"]), UTC) if "expires" in item else None,
    )


def round_up_to_seconds(instant: datetime | None) -> datetime | None:
    """Round *instant* up to whole seconds, the precision of a TTL, so that nothing expires early."""
    return instant and datetime.fromtimestamp(math.ceil(instant.timestamp()), UTC)


def _build_key(kind: str, name: str) -> dict[str, Any]:
    return {"pk": {"S": kind}, "sk": {"S": name}}


def _build_version_condition(version: int) -> dict[str, Any]:
    """Build the condition that the row is still at *version*; 0 means that the row does not exist."""
    if version == 0:
        return {"ConditionExpression": _ROW_ABSENT_EXPRESSION, "ExpressionAttributeNames": {"#pk": "pk"}}
    return {
        "ConditionExpression": _VERSION_UNCHANGED_EXPRESSION,
        "ExpressionAttributeNames": {"#version": "version"},
        "ExpressionAttributeValues": {":version": {"N": str(version)}},
    }
