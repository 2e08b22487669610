"""Each permission of a function's role is needed: without it, a request of a recorded run is denied.

Every embedded run enforces the policies of the template, so a denied request ends the run. Instead of a run for each
permission, the requests of a few runs are evaluated again, each time without one action of one statement on one
resource; a few permissions are removed from a real run.
"""

from datetime import timedelta
from typing import Final

import msgspec
import pytest

from sim.authorization.access_checks import AccessDeniedError
from sim.authorization.template_policies import (
    parse_function_policies,
    parse_resource_policies,
    parse_service_policies,
)
from sim.iam.patterns_and_variables import IamRequest, is_match
from sim.iam.policy import AccessDecision, Policy, PolicyStatement, evaluate_policies, split_policy
from tests.infra.guarded import Guarded
from tests.infra.iam.recorded_runs import (
    build_watching_world,
    record_requests,
    run_interruption,
    synthesize_complete_template,
)

ANY: Final = "*"
FUNCTIONS: Final = ("catalog", "disrupt", "installer", "interrupt", "lifecycle", "provision", "watch")
SERVICES: Final = ("codedeploy", "scheduler")
"""Services with a role of their own; Lambda uses the roles of the functions."""


class UnusedPermission(msgspec.Struct, frozen=True, kw_only=True):
    """A permission that no embedded run can use, and why it is granted; all fields but the reason are patterns."""

    function: str = ANY
    action: str
    resource: str = ANY
    reason: str

    def covers(self, function: str, statement: PolicyStatement) -> bool:
        """Return whether *statement* of *function*, with one action and one resource, is this permission."""
        patterns = (self.function, self.action, self.resource)
        values = (function, statement.actions[0], statement.resources[0])
        return all(is_match(pattern, value) for pattern, value in zip(patterns, values, strict=True))


UNUSED: Final = (
    UnusedPermission(
        function="provision",
        action="ec2:RunInstances",
        resource="arn:aws:ec2:*:fleet/*",
        reason="RunInstances has no resource of the type fleet, so AWS never checks this permission. It exists because "
        "one statement allows both launch actions on all resources that a launch creates, as in Karpenter's policy. "
        "https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html",
    ),
    UnusedPermission(
        function="catalog",
        action="events:PutEvents",
        resource="*:event-bus/alerts",
        reason="Its only event is that of a rejected image. The recorded runs have no canary; "
        "tests/scenario/operations/test_event_bus.py has one.",
    ),
    UnusedPermission(
        function="lifecycle",
        action="events:PutEvents",
        resource="*:event-bus/alerts",
        reason="Its events are about nodes that do not register and about instances that EC2 ends. The recorded runs "
        "have neither; tests/scenario/operations/test_event_bus.py has them.",
    ),
)


@pytest.fixture(scope="module")
def policies() -> dict[str, Policy]:
    """The policy of each function and service, with one action and one resource in each statement."""
    template = synthesize_complete_template()
    parsed_policies = parse_function_policies(template) | parse_service_policies(template)
    return {function: split_policy(policy) for function, policy in parsed_policies.items()}


@pytest.fixture(scope="module")
def resource_policies() -> tuple[Policy, ...]:
    """The policies of queues and of the bucket."""
    return parse_resource_policies(synthesize_complete_template())


@pytest.fixture(scope="module")
def requests_by_function(
    policies: dict[str, Policy], resource_policies: tuple[Policy, ...]
) -> dict[str, list[IamRequest]]:
    """The recorded requests of each function that its role allows in the stack with all permissions."""
    return {
        name: [
            request
            for function, request in record_requests()
            if function == name
            and evaluate_policies((policies[name], *resource_policies), request) is AccessDecision.ALLOWED
        ]
        for name in (*FUNCTIONS, *SERVICES)
    }


def find_needless_statements(
    policy: Policy, resource_policies: tuple[Policy, ...], requests: list[IamRequest]
) -> list[PolicyStatement]:
    """Return the statements of *policy* without which all *requests* are still allowed."""
    return [
        statement
        for statement in policy
        if all(
            evaluate_policies((tuple(other for other in policy if other is not statement), *resource_policies), request)
            is AccessDecision.ALLOWED
            for request in requests
            if request.action == statement.actions[0]
        )
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


@pytest.mark.parametrize("function", [*FUNCTIONS, *SERVICES])
def test_without_any_permission_a_recorded_request_is_denied(
    function: str,
    policies: dict[str, Policy],
    resource_policies: tuple[Policy, ...],
    requests_by_function: dict[str, list[IamRequest]],
) -> None:
    assert policies.keys() == {*FUNCTIONS, *SERVICES}
    needless = find_needless_statements(policies[function], resource_policies, requests_by_function[function])
    unexplained = [
        (statement.sid, statement.actions, statement.resources)
        for statement in needless
        if not any(permission.covers(function, statement) for permission in UNUSED)
    ]
    assert unexplained == []


@pytest.mark.parametrize(
    "permission", UNUSED, ids=lambda unused: f"{unused.function} {unused.action} {unused.resource}"
)
def test_every_exception_is_a_permission_that_no_run_uses(
    permission: UnusedPermission,
    policies: dict[str, Policy],
    resource_policies: tuple[Policy, ...],
    requests_by_function: dict[str, list[IamRequest]],
) -> None:
    covered = [
        (function, statement)
        for function, policy in policies.items()
        for statement in policy
        if permission.covers(function, statement)
    ]
    assert covered
    for function, statement in covered:
        needless = find_needless_statements(policies[function], resource_policies, requests_by_function[function])
        assert statement in needless


@pytest.mark.parametrize(
    ("function", "action"),
    [
        ("catalog", "ssm:GetParameter"),
        ("disrupt", "dynamodb:Query"),
        ("interrupt", "s3:PutObject"),
        ("lifecycle", "ec2:CreateTags"),
        ("provision", "iam:PassRole"),
        ("watch", "sqs:SendMessage"),
        ("catalog", "logs:CreateLogStream"),
        ("provision", "logs:PutLogEvents"),
        ("interrupt", "sqs:ReceiveMessage"),
        ("lifecycle", "sqs:DeleteMessage"),
        ("disrupt", "eks:DescribeCluster"),
        ("watch", "xray:PutTraceSegments"),
        ("provision", "xray:PutTelemetryRecords"),
        ("scheduler", "lambda:InvokeFunction"),
    ],
)
def test_a_run_without_a_permission_ends_with_the_denied_call(
    function: str, action: str, policies: dict[str, Policy]
) -> None:
    world = build_watching_world()
    for statement in policies[function]:
        if statement.actions == (action,):
            world.access_control.revoke_statement(function, statement)
    with pytest.raises(AccessDeniedError, match=f"{function} lacks {action} on"):
        run_interruption(world)
    assert world.access_control.denials


@pytest.mark.parametrize(
    ("service", "action"),
    [
        ("codedeploy", "cloudwatch:DescribeAlarms"),
        ("codedeploy", "lambda:GetAlias"),
        ("codedeploy", "lambda:GetProvisionedConcurrencyConfig"),
        ("codedeploy", "lambda:UpdateAlias"),
        ("scheduler", "sqs:SendMessage"),
    ],
)
def test_a_deployment_or_an_undelivered_event_without_a_permission_ends_the_run(
    service: str, action: str, policies: dict[str, Policy]
) -> None:
    world = build_watching_world()
    for statement in policies[service]:
        if statement.actions == (action,):
            world.access_control.revoke_statement(service, statement)
    world.runtime.throttled_functions.add("lifecycle")
    with pytest.raises(AccessDeniedError, match=f"{service} lacks {action} on"):  # noqa: PT012 - either call ends the run
        world.runtime.deploy_version()
        world.run(timedelta(minutes=2))
