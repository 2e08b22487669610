"""The policies allow what the functions do and nothing else: a cluster's short life, request by request.

IAM is evaluated before every call of every function, with the written and the existing tags; calls that it does not
allow are refused, so that a missing permission shows in the world, too.
"""

from typing import Final

import msgspec
import pytest

from sim.authorization.template_policies import parse_function_policies
from sim.iam.patterns_and_variables import is_match
from sim.iam.policy import AccessDecision, PolicyStatement
from tests.infra.guarded import Guarded, RecordedRequest

ANY: Final = "*"


class Unused(msgspec.Struct, frozen=True, kw_only=True):
    """A permission that the short life does not use, and why it is granted: all are patterns."""

    function: str = ANY
    action: str
    resource: str = ANY
    because: str

    def is_excuse_for(self, grant: "Grant") -> bool:
        patterns = (self.function, self.action, self.resource)
        return all(is_match(pattern, value) for pattern, value in zip(patterns, grant[:3], strict=True))


Grant = tuple[str, str, str, PolicyStatement]
"""Function, action, resource, and the statement that grants it."""

UNUSED: Final = (
    Unused(action="logs:*", because="Lambda writes a function's log in its name"),
    Unused(action="sqs:ReceiveMessage", because="Lambda polls a function's queue in its name"),
    Unused(action="sqs:DeleteMessage", because="Lambda polls a function's queue in its name"),
    Unused(action="sqs:ChangeMessageVisibility", because="Lambda polls a function's queue in its name"),
    Unused(action="sqs:GetQueue*", because="names and counts of our own queues, which a poller and a sender are given"),
    Unused(action="sqs:SendMessage", because="each function may wake each: which does is the cycle's to say"),
    Unused(
        action="s3:ListBucket",
        because="only where the newest catalogue is not written down; without it S3 forbids what is not there",
    ),
    Unused(
        function="watch",
        action="s3:PutObject",
        because="a cycle that failed leaves an entry; that it woke somebody is in the log",
    ),
    Unused(action="eks:DescribeCluster", because="asked where a container begins, before there is a world"),
    Unused(
        function="provision",
        action="ec2:CreateFleet",
        because="a fleet may be held to what it starts and uses as well; EC2 names all of these for the call",
    ),
    Unused(
        function="provision",
        action="ec2:RunInstances",
        resource="arn:aws:ec2:*:capacity-reservation/*",
        because="an EC2NodeClass may select capacity reservations; this one does not",
    ),
    Unused(
        function="provision",
        action="ec2:RunInstances",
        resource="arn:aws:ec2:*:placement-group/*",
        because="an EC2NodeClass may select a placement group; this one does not",
    ),
    Unused(
        function="provision",
        action="ec2:RunInstances",
        resource="arn:aws:ec2:*:snapshot/*",
        because="an EC2NodeClass may name a volume's snapshot; this one does not",
    ),
    Unused(
        function="provision",
        action="ec2:RunInstances",
        resource="arn:aws:ec2:*:fleet/*",
        because="in one statement with the fleet itself; EC2 asks it of no fleet",
    ),
    Unused(
        function="provision",
        action="ec2:DescribeInstances",
        because="called only if the response to a launch was lost; no response is lost in this run",
    ),
    Unused(
        function="catalog",
        action="ec2:DescribeCapacityReservations",
        because="an EC2NodeClass may select capacity reservations; this one does not",
    ),
    Unused(
        function="catalog",
        action="ec2:DescribePlacementGroups",
        because="an EC2NodeClass may select a placement group; this one does not",
    ),
    Unused(
        function="disrupt",
        action="dynamodb:DeleteItem",
        because="commands are forgotten a day after their end, later than this life lasts",
    ),
    Unused(action="dynamodb:ConditionCheckItem", because="reads no more than GetItem: what a fenced write asks"),
    Unused(action="dynamodb:Query", because="reads no more than GetItem"),
)


@pytest.fixture(scope="module")
def grants(life: Guarded) -> list[Grant]:
    return [
        (function, action, resource, statement)
        for function, policy in parse_function_policies(life.template).items()
        for statement in policy
        for action in statement.actions
        for resource in statement.resources
    ]


def test_every_aws_call_of_every_function_is_allowed(life: Guarded) -> None:
    assert [record for record in life.recorded_requests if record.verdict is not AccessDecision.ALLOWED] == []
    assert {record.outcome for record in life.runtime.invocations} == {"ok"}


def test_simulated_cluster_run_covers_all_key_actions(life: Guarded) -> None:
    used_actions = {(record.function, record.request.action) for record in life.recorded_requests}
    assert used_actions >= {
        ("provision", "ec2:CreateFleet"),
        ("provision", "ec2:RunInstances"),
        ("provision", "iam:PassRole"),
        ("lifecycle", "ec2:CreateTags"),
        ("lifecycle", "ec2:TerminateInstances"),
        ("lifecycle", "ec2:DeleteLaunchTemplate"),
        ("interrupt", "s3:PutObject"),
        ("disrupt", "s3:GetObject"),
        ("catalog", "pricing:GetProducts"),
    }


def test_ec2_write_requests_carry_resource_or_request_tags(life: Guarded) -> None:
    """The contexts are real ones: without them a condition would have nothing to evaluate."""
    for record in life.recorded_requests:
        service, _, name = record.request.action.partition(":")
        tags = {key.partition("/")[0] for key in record.request.context if "tag/" in key}
        if name in ("TerminateInstances", "DeleteLaunchTemplate"):
            assert tags >= {"aws:resourcetag"}, record
        elif service == "ec2" and name.startswith(("Create", "Run")) and record.request.resource.endswith("/*"):
            assert tags == {"aws:requesttag"}, record


def test_every_granted_action_is_used_or_listed_as_unused(life: Guarded, grants: list[Grant]) -> None:
    idle = [grant for grant in grants if not is_used(grant, life.recorded_requests)]
    assert [grant[:3] for grant in idle if not any(excuse.is_excuse_for(grant) for excuse in UNUSED)] == []


@pytest.mark.parametrize("excuse", UNUSED, ids=lambda one: f"{one.function} {one.action} {one.resource}")
def test_every_unused_grant_exception_matches_an_unused_grant(
    excuse: Unused, life: Guarded, grants: list[Grant]
) -> None:
    assert [grant for grant in grants if excuse.is_excuse_for(grant) and not is_used(grant, life.recorded_requests)]


def is_used(grant: Grant, records: tuple[RecordedRequest, ...]) -> bool:
    function, action, resource, statement = grant
    return any(
        record.function == function
        and record.request.action == action
        and is_match(resource, record.request.resource)
        and statement.is_applicable(record.request)
        for record in records
    )
