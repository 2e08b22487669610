"""Each permission of a function's role is needed: without it, a request of a recorded run is denied.

Every embedded run enforces the policies of the template, so a denied request ends the run. Instead of a run for each
permission, the requests of a few runs are evaluated again, each time without one action of one statement on one
resource; a few permissions are removed from a real run.
"""

from typing import Final

import msgspec
import pytest

from sim.authorization.access_checks import AccessDeniedError
from sim.authorization.template_policies import parse_function_policies, parse_resource_policies
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
        action="logs:CreateLogStream",
        reason="AWS checks it when Lambda starts a container and creates its log stream; "
        "embedded runs have no containers",
    ),
    UnusedPermission(
        action="logs:PutLogEvents",
        reason="AWS checks it when Lambda writes the log of an invocation; embedded runs keep the log in memory",
    ),
    *(
        UnusedPermission(
            action=f"sqs:{name}",
            reason="AWS checks it when Lambda polls the queue of the function with the function's role; "
            "the queues of embedded runs deliver their messages without requests",
        )
        for name in ("DeleteMessage", "GetQueueAttributes", "ReceiveMessage")
    ),
    *(
        UnusedPermission(
            function=name,
            action="eks:DescribeCluster",
            reason="AWS checks it at the start of a container, which reads the endpoint of the cluster; "
            "embedded runs have no containers and give the functions their Kubernetes client",
        )
        for name in ("disrupt", "installer", "interrupt", "lifecycle", "watch")
    ),
    *(
        UnusedPermission(
            function="provision",
            action="ec2:CreateFleet",
            resource=f"arn:aws:ec2:*:{kind}/*",
            reason="AWS may check it when CreateFleet launches instances: the Service Authorization Reference lists "
            "the resource for the action; the simulated EC2 checks ec2:RunInstances for the same resource",
        )
        for kind in (
            "capacity-reservation",
            "image",
            "instance",
            "network-interface",
            "placement-group",
            "security-group",
            "snapshot",
            "spot-instances-request",
            "subnet",
            "volume",
        )
    ),
    UnusedPermission(
        function="provision",
        action="ec2:RunInstances",
        resource="arn:aws:ec2:*:fleet/*",
        reason="AWS never checks it, because RunInstances has no fleet; "
        "one statement allows both launch actions on all launched resources",
    ),
)


@pytest.fixture(scope="module")
def policies() -> dict[str, Policy]:
    """The policy of each function, with one action and one resource in each statement."""
    parsed_policies = parse_function_policies(synthesize_complete_template())
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
        for name in FUNCTIONS
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


@pytest.mark.parametrize("function", FUNCTIONS)
def test_without_any_permission_a_recorded_request_is_denied(
    function: str,
    policies: dict[str, Policy],
    resource_policies: tuple[Policy, ...],
    requests_by_function: dict[str, list[IamRequest]],
) -> None:
    assert policies.keys() == set(FUNCTIONS)
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
