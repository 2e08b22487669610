"""That the table is never read from a replica that lags behind: moto has none, so the calls are looked at."""

from collections.abc import Iterator

import pytest
from botocore.stub import ANY, Stubber

from shared.aws.clients import Clients
from shared.aws.dynamodb import DynamoTable


@pytest.fixture
def clients() -> Iterator[Clients]:
    clients = Clients("us-east-1")
    yield clients
    clients.close()


def test_get_item_uses_consistent_read(clients: Clients) -> None:
    with Stubber(clients.get_retrying_client("dynamodb")) as stub:
        key = {"pk": {"S": "lease"}, "sk": {"S": "a"}}
        stub.add_response("get_item", {}, {"TableName": "joiner", "Key": key, "ConsistentRead": True})
        assert DynamoTable(clients, "joiner").read("lease", "a") is None


def test_query_uses_consistent_read(clients: Clients) -> None:
    with Stubber(clients.get_retrying_client("dynamodb")) as stub:
        expected_request = {
            "TableName": "joiner",
            "ConsistentRead": True,
            "KeyConditionExpression": "#pk = :kind",
            "ExpressionAttributeNames": ANY,
            "ExpressionAttributeValues": {":kind": {"S": "lease"}},
        }
        stub.add_response("query", {"Items": []}, expected_request)
        assert DynamoTable(clients, "joiner").list_rows("lease") == ()
