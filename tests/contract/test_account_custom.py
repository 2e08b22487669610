"""Custom resources: CloudFormation asks a function, and believes only what is put to its URL."""

from threading import Event
from typing import Any

import pytest

from tests.contract.account_stage import Json, Stage, put

pytestmark = pytest.mark.loopback

INSTALLER = "arn:aws:lambda:us-east-1:123456789012:function:installer:live"
CREATED = "CREATE_COMPLETE"
SOON = "0.05"
"""Seconds that a function is waited for which has been silent."""


def custom(kind: str = "Custom::Thing", **said: Any) -> Json:
    return {"Type": kind, "Properties": {"ServiceToken": INSTALLER, **said}}


def requests(stage: Stage) -> list[str]:
    return [one["RequestType"] for one in stage.asked]


def test_the_function_is_asked_and_its_answer_is_the_resource(stage: Stage) -> None:
    stage.answer = lambda said: {"PhysicalResourceId": "it", "Data": {"Told": said["ResourceProperties"]["Size"]}}
    outputs = {"Told": {"Value": {"Fn::GetAtt": ["Thing", "Told"]}}, "Id": {"Value": {"Ref": "Thing"}}}
    stack = stage.deploy("s", {"Thing": custom(Size=3, IsOn=True, Deep=[{"a": 1}])}, Outputs=outputs)
    assert [one["OutputValue"] for one in stack["Outputs"]] == ["it", "3"]
    [asked] = stage.asked
    assert asked["ResourceProperties"] == {"ServiceToken": INSTALLER, "Size": "3", "IsOn": "true", "Deep": [{"a": "1"}]}
    assert (asked["RequestType"], asked["ResourceType"], asked["StackId"]) == (
        "Create",
        "Custom::Thing",
        stack["StackId"],
    )
    assert asked["ResponseURL"].startswith(stage.account.url)


def test_the_function_is_called_by_its_alias_and_nobody_waits_for_its_end(stage: Stage) -> None:
    called: list[tuple[str, str]] = []
    may_end = Event()

    def dispatch(name: str, qualifier: str, payload: bytes) -> None:
        called.append((name, qualifier))
        stage.in_threads(name, qualifier, payload)

    def answer(said: Json) -> None:
        stage.put(said, {})
        may_end.wait()

    stage.account.dispatcher, stage.answer = dispatch, answer
    try:
        assert stage.deploy("s", {"Thing": custom("AWS::CloudFormation::CustomResource")})["StackStatus"] == CREATED
    finally:
        may_end.set()
    assert called == [("installer", "live")]


def test_a_change_is_asked_for_with_what_was(stage: Stage) -> None:
    stage.deploy("s", {"Thing": custom(Size=1)})
    assert stage.deploy("s", {"Thing": custom(Size=2)})["StackStatus"] == "UPDATE_COMPLETE"
    assert requests(stage) == ["Create", "Update"]
    asked = stage.asked[-1]
    assert (asked["PhysicalResourceId"], asked["OldResourceProperties"]["Size"]) == ("thing", "1")
    assert asked["ResourceProperties"]["Size"] == "2"


def test_another_id_after_a_change_means_that_the_old_one_is_deleted_last(stage: Stage) -> None:
    stage.answer = lambda said: {
        "PhysicalResourceId": said.get("PhysicalResourceId", "")
        if said["RequestType"] == "Delete"
        else said["ResourceProperties"]["Size"]
    }
    stage.deploy("s", {"Thing": custom(Size="one")})
    assert stage.deploy("s", {"Thing": custom(Size="two")})["StackStatus"] == "UPDATE_COMPLETE"
    assert requests(stage) == ["Create", "Update", "Delete"]
    assert (stage.asked[-1]["PhysicalResourceId"], stage.asked[-1]["ResourceProperties"]["Size"]) == ("one", "one")
    assert stage.physical("s", "Thing") == "two"
    stage.remove("s")
    assert stage.asked[-1]["PhysicalResourceId"] == "two"


def test_another_function_makes_another_resource(stage: Stage) -> None:
    stage.deploy("s", {"Thing": custom()})
    other = {"Type": "Custom::Thing", "Properties": {"ServiceToken": f"{INSTALLER}2"}}
    stage.deploy("s", {"Thing": other})
    assert requests(stage) == ["Create", "Create", "Delete"]


def test_a_failure_is_the_stacks_and_the_resource_is_asked_to_go(stage: Stage) -> None:
    stage.answer = lambda said: {"Status": "FAILED", "Reason": "no room"} if said["RequestType"] == "Create" else {}
    assert stage.deploy("s", {"Thing": custom()})["StackStatus"] == "ROLLBACK_COMPLETE"
    assert requests(stage) == ["Create", "Delete"]
    assert stage.asked[-1]["PhysicalResourceId"] == "thing"
    assert "Message returned: no room" in stage.why("s")


def test_no_answer_is_a_failure(stage: Stage) -> None:
    stage.answer = lambda said: None if said["RequestType"] == "Create" else {}
    assert stage.deploy("s", {"Thing": custom(ServiceTimeout=SOON)})["StackStatus"] == "ROLLBACK_COMPLETE"
    assert "did not receive a response from your Custom Resource" in stage.why("s")
    assert requests(stage) == ["Create", "Delete"]
    assert stage.asked[-1]["PhysicalResourceId"].startswith("s-Thing-")


def test_what_never_answers_stays_with_the_stack(stage: Stage) -> None:
    stage.answer = lambda _: None
    assert stage.deploy("s", {"Thing": custom(ServiceTimeout=SOON)})["StackStatus"] == "ROLLBACK_FAILED"


def test_an_answer_that_comes_too_late_is_not_taken(stage: Stage) -> None:
    stage.answer = lambda said: None if said["RequestType"] == "Create" else {}
    stage.deploy("s", {"Thing": custom(ServiceTimeout=SOON)})
    assert stage.put(stage.asked[0], {}) == 403


def test_a_url_takes_one_answer_and_a_made_up_one_none(stage: Stage) -> None:
    statuses: list[int] = []

    def twice(said: Json) -> None:
        statuses.extend(stage.put(said, {}) for _ in range(2))

    stage.answer = twice
    stage.deploy("s", {"Thing": custom()})
    assert statuses == [200, 403]
    assert put(f"{stage.account.url}/cloudformation-custom-resource-response/x", b"{}") == 403


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"PhysicalResourceId": ""}, "Invalid PhysicalResourceId"),
        ({"Data": {"a": "x" * 5000}}, "Response object is too long"),
        ({"Status": 7}, "Invalid response"),
    ],
)
def test_an_answer_that_cannot_be_understood_is_a_failure(stage: Stage, told: Json, words: str) -> None:
    stage.answer = lambda said: told if said["RequestType"] == "Create" else {}
    assert stage.deploy("s", {"Thing": custom()})["StackStatus"] == "ROLLBACK_COMPLETE"
    assert words in stage.why("s")


def test_a_change_that_fails_is_taken_back_by_another(stage: Stage) -> None:
    stage.deploy("s", {"Thing": custom(Size=1)})
    stage.answer = lambda said: {"Status": "FAILED"} if said["ResourceProperties"]["Size"] == "2" else {}
    assert stage.deploy("s", {"Thing": custom(Size=2)})["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert requests(stage) == ["Create", "Update", "Update"]
    back = stage.asked[-1]
    assert (back["OldResourceProperties"]["Size"], back["ResourceProperties"]["Size"]) == ("2", "1")


def test_a_change_that_made_another_resource_is_taken_back_with_it(stage: Stage) -> None:
    stage.answer = lambda said: {
        "PhysicalResourceId": said["PhysicalResourceId"]
        if said["RequestType"] == "Delete"
        else said["ResourceProperties"]["Size"]
    }
    stage.deploy("s", {"Thing": custom(Size="one")})
    broken = {
        "Type": "AWS::SQS::QueuePolicy",
        "Properties": {"Queues": ["x"], "PolicyDocument": {}},
        "DependsOn": "Thing",
    }
    assert (
        stage.deploy("s", {"Thing": custom(Size="two"), "Broken": broken})["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    )
    assert [(one["RequestType"], one.get("PhysicalResourceId")) for one in stage.asked] == [
        ("Create", None),
        ("Update", "one"),
        ("Update", "two"),
        ("Delete", "two"),
    ]
    assert stage.physical("s", "Thing") == "one"


def test_a_change_that_cannot_be_taken_back_is_told(stage: Stage) -> None:
    stage.deploy("s", {"Thing": custom(Size=1)})
    stage.answer = lambda _: {"Status": "FAILED"}
    assert stage.deploy("s", {"Thing": custom(Size=2)})["StackStatus"] == "UPDATE_ROLLBACK_FAILED"


def test_a_resource_that_does_not_go_stays_with_the_stack(stage: Stage) -> None:
    queue = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "jobs"}}
    stage.deploy("s", {"Thing": {**custom(), "DependsOn": "Queue"}, "Queue": queue})
    stage.answer = lambda _: {"Status": "FAILED", "Reason": "nodes are left"}
    assert stage.remove("s")["StackStatus"] == "DELETE_FAILED"
    assert stage.client("sqs").list_queues()["QueueUrls"]
    stage.answer = lambda _: {}
    assert stage.remove("s")["StackStatus"] == "DELETE_COMPLETE"
