"""Custom resources: CloudFormation calls a function and accepts only the response that is put to its URL."""

from threading import Event
from typing import Any

import pytest

from tests.contract.account_stage import Json, Stage, put_body

pytestmark = pytest.mark.loopback

INSTALLER = "arn:aws:lambda:us-east-1:123456789012:function:installer:live"
CREATED = "CREATE_COMPLETE"
RESPONSE_TIMEOUT_S = "0.05"
"""Timeout in seconds for the response of a function that stays silent."""


def make_custom_resource(kind: str = "Custom::Thing", **properties: Any) -> Json:
    return {"Type": kind, "Properties": {"ServiceToken": INSTALLER, **properties}}


def list_request_types(stage: Stage) -> list[str]:
    return [request["RequestType"] for request in stage.custom_resource_requests]


def test_custom_resource_response_provides_its_id_and_attributes(stage: Stage) -> None:
    stage.respond = lambda request: {
        "PhysicalResourceId": "it",
        "Data": {"Told": request["ResourceProperties"]["Size"]},
    }
    outputs = {"Told": {"Value": {"Fn::GetAtt": ["Thing", "Told"]}}, "Id": {"Value": {"Ref": "Thing"}}}
    stack = stage.deploy("s", {"Thing": make_custom_resource(Size=3, IsOn=True, Deep=[{"a": 1}])}, Outputs=outputs)
    assert [output["OutputValue"] for output in stack["Outputs"]] == ["it", "3"]
    [create_request] = stage.custom_resource_requests
    assert create_request["ResourceProperties"] == {
        "ServiceToken": INSTALLER,
        "Size": "3",
        "IsOn": "true",
        "Deep": [{"a": "1"}],
    }
    assert (create_request["RequestType"], create_request["ResourceType"], create_request["StackId"]) == (
        "Create",
        "Custom::Thing",
        stack["StackId"],
    )
    assert create_request["ResponseURL"].startswith(stage.account.url)


def test_custom_resource_function_is_invoked_by_alias_and_asynchronously(stage: Stage) -> None:
    calls: list[tuple[str, str]] = []
    may_end = Event()

    def record_and_dispatch(name: str, qualifier: str, payload: bytes) -> None:
        calls.append((name, qualifier))
        stage.dispatch_in_thread(name, qualifier, payload)

    def respond_and_wait(request: Json) -> None:
        stage.send_response(request, {})
        may_end.wait()

    stage.account.dispatcher, stage.respond = record_and_dispatch, respond_and_wait
    try:
        assert (
            stage.deploy("s", {"Thing": make_custom_resource("AWS::CloudFormation::CustomResource")})["StackStatus"]
            == CREATED
        )
    finally:
        may_end.set()
    assert calls == [("installer", "live")]


def test_update_request_contains_the_old_properties(stage: Stage) -> None:
    stage.deploy("s", {"Thing": make_custom_resource(Size=1)})
    assert stage.deploy("s", {"Thing": make_custom_resource(Size=2)})["StackStatus"] == "UPDATE_COMPLETE"
    assert list_request_types(stage) == ["Create", "Update"]
    update_request = stage.custom_resource_requests[-1]
    assert (update_request["PhysicalResourceId"], update_request["OldResourceProperties"]["Size"]) == ("thing", "1")
    assert update_request["ResourceProperties"]["Size"] == "2"


def test_new_physical_id_after_an_update_deletes_the_old_resource_last(stage: Stage) -> None:
    stage.respond = lambda request: {
        "PhysicalResourceId": request.get("PhysicalResourceId", "")
        if request["RequestType"] == "Delete"
        else request["ResourceProperties"]["Size"]
    }
    stage.deploy("s", {"Thing": make_custom_resource(Size="one")})
    assert stage.deploy("s", {"Thing": make_custom_resource(Size="two")})["StackStatus"] == "UPDATE_COMPLETE"
    assert list_request_types(stage) == ["Create", "Update", "Delete"]
    assert (
        stage.custom_resource_requests[-1]["PhysicalResourceId"],
        stage.custom_resource_requests[-1]["ResourceProperties"]["Size"],
    ) == ("one", "one")
    assert stage.get_physical_id("s", "Thing") == "two"
    stage.remove("s")
    assert stage.custom_resource_requests[-1]["PhysicalResourceId"] == "two"


def test_changed_service_token_replaces_the_resource(stage: Stage) -> None:
    stage.deploy("s", {"Thing": make_custom_resource()})
    other_resource = {"Type": "Custom::Thing", "Properties": {"ServiceToken": f"{INSTALLER}2"}}
    stage.deploy("s", {"Thing": other_resource})
    assert list_request_types(stage) == ["Create", "Create", "Delete"]


def test_failed_custom_resource_fails_the_stack_and_is_deleted(stage: Stage) -> None:
    stage.respond = lambda request: (
        {"Status": "FAILED", "Reason": "no room"} if request["RequestType"] == "Create" else {}
    )
    assert stage.deploy("s", {"Thing": make_custom_resource()})["StackStatus"] == "ROLLBACK_COMPLETE"
    assert list_request_types(stage) == ["Create", "Delete"]
    assert stage.custom_resource_requests[-1]["PhysicalResourceId"] == "thing"
    assert "Message returned: no room" in stage.get_status_reasons("s")


def test_missing_custom_resource_response_fails_the_stack(stage: Stage) -> None:
    stage.respond = lambda request: None if request["RequestType"] == "Create" else {}
    assert (
        stage.deploy("s", {"Thing": make_custom_resource(ServiceTimeout=RESPONSE_TIMEOUT_S)})["StackStatus"]
        == "ROLLBACK_COMPLETE"
    )
    assert "did not receive a response from your Custom Resource" in stage.get_status_reasons("s")
    assert list_request_types(stage) == ["Create", "Delete"]
    assert stage.custom_resource_requests[-1]["PhysicalResourceId"].startswith("s-Thing-")


def test_custom_resource_that_never_responds_fails_the_rollback(stage: Stage) -> None:
    stage.respond = lambda _: None
    assert (
        stage.deploy("s", {"Thing": make_custom_resource(ServiceTimeout=RESPONSE_TIMEOUT_S)})["StackStatus"]
        == "ROLLBACK_FAILED"
    )


def test_late_custom_resource_response_is_rejected(stage: Stage) -> None:
    stage.respond = lambda request: None if request["RequestType"] == "Create" else {}
    stage.deploy("s", {"Thing": make_custom_resource(ServiceTimeout=RESPONSE_TIMEOUT_S)})
    assert stage.send_response(stage.custom_resource_requests[0], {}) == 403


def test_response_url_accepts_one_response_and_unknown_urls_are_rejected(stage: Stage) -> None:
    statuses: list[int] = []

    def respond_twice(request: Json) -> None:
        statuses.extend(stage.send_response(request, {}) for _ in range(2))

    stage.respond = respond_twice
    stage.deploy("s", {"Thing": make_custom_resource()})
    assert statuses == [200, 403]
    assert put_body(f"{stage.account.url}/cloudformation-custom-resource-response/x", b"{}") == 403


@pytest.mark.parametrize(
    ("response", "words"),
    [
        ({"PhysicalResourceId": ""}, "Invalid PhysicalResourceId"),
        ({"Data": {"a": "x" * 5000}}, "Response object is too long"),
        ({"Status": 7}, "Invalid response"),
    ],
)
def test_invalid_custom_resource_response_fails_the_stack(stage: Stage, response: Json, words: str) -> None:
    stage.respond = lambda request: response if request["RequestType"] == "Create" else {}
    assert stage.deploy("s", {"Thing": make_custom_resource()})["StackStatus"] == "ROLLBACK_COMPLETE"
    assert words in stage.get_status_reasons("s")


def test_failed_update_is_rolled_back_by_another_update(stage: Stage) -> None:
    stage.deploy("s", {"Thing": make_custom_resource(Size=1)})
    stage.respond = lambda request: {"Status": "FAILED"} if request["ResourceProperties"]["Size"] == "2" else {}
    assert stage.deploy("s", {"Thing": make_custom_resource(Size=2)})["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert list_request_types(stage) == ["Create", "Update", "Update"]
    rollback_request = stage.custom_resource_requests[-1]
    assert (rollback_request["OldResourceProperties"]["Size"], rollback_request["ResourceProperties"]["Size"]) == (
        "2",
        "1",
    )


def test_rollback_of_a_replacement_restores_the_old_resource_and_deletes_the_new_one(stage: Stage) -> None:
    stage.respond = lambda request: {
        "PhysicalResourceId": request["PhysicalResourceId"]
        if request["RequestType"] == "Delete"
        else request["ResourceProperties"]["Size"]
    }
    stage.deploy("s", {"Thing": make_custom_resource(Size="one")})
    broken = {
        "Type": "AWS::SQS::QueuePolicy",
        "Properties": {"Queues": ["x"], "PolicyDocument": {}},
        "DependsOn": "Thing",
    }
    assert (
        stage.deploy("s", {"Thing": make_custom_resource(Size="two"), "Broken": broken})["StackStatus"]
        == "UPDATE_ROLLBACK_COMPLETE"
    )
    assert [
        (request["RequestType"], request.get("PhysicalResourceId")) for request in stage.custom_resource_requests
    ] == [
        ("Create", None),
        ("Update", "one"),
        ("Update", "two"),
        ("Delete", "two"),
    ]
    assert stage.get_physical_id("s", "Thing") == "one"


def test_failed_rollback_ends_in_update_rollback_failed(stage: Stage) -> None:
    stage.deploy("s", {"Thing": make_custom_resource(Size=1)})
    stage.respond = lambda _: {"Status": "FAILED"}
    assert stage.deploy("s", {"Thing": make_custom_resource(Size=2)})["StackStatus"] == "UPDATE_ROLLBACK_FAILED"


def test_custom_resource_that_fails_to_delete_remains_in_the_stack(stage: Stage) -> None:
    queue = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "jobs"}}
    stage.deploy("s", {"Thing": {**make_custom_resource(), "DependsOn": "Queue"}, "Queue": queue})
    stage.respond = lambda _: {"Status": "FAILED", "Reason": "nodes are left"}
    assert stage.remove("s")["StackStatus"] == "DELETE_FAILED"
    assert stage.get_client("sqs").list_queues()["QueueUrls"]
    stage.respond = lambda _: {}
    assert stage.remove("s")["StackStatus"] == "DELETE_COMPLETE"
