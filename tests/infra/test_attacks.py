"""What a function that was taken over cannot do: each attack is refused to each role, whatever it claims.

Tables of single attacks first; then every change that EC2 knows, tried on every kind of thing that is not ours.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
import pytest
from botocore.session import Session

from sim.iam.calls import request_tags, resource_tags
from sim.iam.policy import Policy, Statement, Verdict, parse_statement, verdict
from sim.iam.values import Request, context
from sim.lambdas.intrinsics import ACCOUNT, Resolver
from sim.lambdas.template import synthesised
from tests.infra.attacks import (
    ATTACKS,
    CREATED_BY,
    HARMLESS,
    HOME,
    OUR_TABLE,
    ROLE,
    THEIRS,
    TOPIC,
    Attack,
    ec2,
    passing,
    plain,
)
from tests.infra.guarded import profiles
from tests.infra.policies import (
    Template,
    policies,
    resource_policies,
    resources,
    roles,
    service_policies,
    services,
    statements,
)

SCHEDULE: Final = "AWS::Scheduler::Schedule"
LAUNCHES: Final = frozenset({"ec2:CreateFleet", "ec2:RunInstances"})


@pytest.fixture(scope="module")
def template() -> Template:
    """With all functions that there are."""
    return synthesised(context={"joiner:reaction": "watch", "joiner:report-topic": TOPIC})


@pytest.fixture(scope="module")
def private() -> Template:
    inside = {"joiner:network": "private", "joiner:subnets": "subnet-00000001", "joiner:security-groups": "sg-00000001"}
    return synthesised(context=inside)


@pytest.fixture(scope="module")
def granted(template: Template) -> dict[str, Policy]:
    return policies(template)


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_an_attack_is_refused_to_everybody(attack: Attack, granted: dict[str, Policy], template: Template) -> None:
    others, resolver = resource_policies(template), Resolver(template)
    [table] = map(resolver.ref, resources(template, "AWS::DynamoDB::Table"))
    request = msgspec.structs.replace(attack, resource=attack.resource.replace(OUR_TABLE, table)).request()
    everybody = granted | service_policies(template)
    answers = {name: verdict([policy, *others], request) for name, policy in everybody.items()}
    assert [name for name, answer in answers.items() if answer is Verdict.ALLOWED] == []


@pytest.mark.parametrize(("attack", "may"), HARMLESS.values(), ids=HARMLESS.keys())
def test_what_is_ours_is_allowed_to_one_role(attack: Attack, may: set[str], granted: dict[str, Policy]) -> None:
    request = attack.request()
    assert {name for name, policy in granted.items() if verdict([policy], request) is Verdict.ALLOWED} == may


def test_the_node_role_goes_to_ec2_and_nowhere_else(template: Template, granted: dict[str, Policy]) -> None:
    [role] = profiles(template).values()
    for service in ("ec2.amazonaws.com", "lambda.amazonaws.com", "ecs-tasks.amazonaws.com"):
        request = passing(role, service).request()
        may = {name for name, policy in granted.items() if verdict([policy], request) is Verdict.ALLOWED}
        assert may == ({"provision"} if service == "ec2.amazonaws.com" else set())


def test_no_function_passes_its_own_role(template: Template, granted: dict[str, Policy]) -> None:
    for role in resources(template, "AWS::IAM::Role"):
        if role in roles(template).values():
            request = passing(f"{ROLE}{role.lower()}").request()
            assert {verdict([policy], request) for policy in granted.values()} == {Verdict.SILENT}


def changes() -> tuple[str, ...]:
    """Answer every call of EC2 that is not for looking, as the AWS SDK lists them."""
    names = Session().get_service_model("ec2").operation_names
    return tuple(f"ec2:{name}" for name in sorted(names) if not name.startswith(("Describe", "Get", "Search", "List")))


KINDS: Final = ("fleet", "instance", "launch-template", "network-interface", "spot-instances-request", "volume")
"""What launches make."""


@pytest.mark.parametrize(
    "known", [{}, plain(resource_tags(THEIRS)), plain(request_tags(THEIRS))], ids=["none", "there", "written"]
)
def test_no_change_of_ec2_is_allowed_without_the_tags(
    known: dict[str, str | tuple[str, ...]], granted: dict[str, Policy]
) -> None:
    assert len(changes()) > 400
    allowed = [
        (name, action, kind)
        for action in changes()
        for kind in KINDS
        for name, policy in granted.items()
        if _may(policy, Attack(action=action, resource=ec2(kind, "x-1"), known={**known, **CREATED_BY}))
    ]
    assert allowed == []


def test_of_what_is_not_tagged_only_use_in_a_launch_is_allowed(granted: dict[str, Policy]) -> None:
    used = ("capacity-reservation", "image", "placement-group", "security-group", "snapshot", "subnet")
    others = ("vpc", "route-table", "internet-gateway", "key-pair", "elastic-ip", "dedicated-host", "vpc-endpoint")
    allowed = {
        (name, action, kind)
        for action in changes()
        for kind in (*used, *others)
        for name, policy in granted.items()
        if _may(policy, Attack(action=action, resource=_shared(kind)))
    }
    assert allowed == {("provision", action, kind) for action in LAUNCHES for kind in used}


def weakened(said: dict[str, Any]) -> Iterator[tuple[str, Statement]]:
    """Answer *said* with each of its conditions left out in turn."""
    for operator, keys in said.get("Condition", {}).items():
        for key in keys:
            others = {name: dict(each) for name, each in said["Condition"].items()}
            del others[operator][key]
            yield f"{said['Sid']}: {operator} {key}", parse_statement({**said, "Condition": others})


def test_each_condition_stops_an_attack(template: Template) -> None:
    [role] = profiles(template).values()
    requests = [attack.request() for attack in (*ATTACKS.values(), Attack(**PASSED_ON, resource=role))]
    idle = [
        named
        for _, said in statements(template)
        for named, statement in weakened(said)
        if not any(statement.applies(request) for request in requests)
    ]
    assert idle == []


PASSED_ON: Final[dict[str, Any]] = {
    "action": "iam:PassRole",
    "known": {"iam:PassedToService": "lambda.amazonaws.com"},
}


def test_no_role_both_launches_and_terminates(template: Template) -> None:
    hands = {
        name: {one for each, said in statements(template) if each == name for one in _actions(said)}
        for name in roles(template)
    }
    assert [name for name, actions in hands.items() if actions & LAUNCHES and "ec2:TerminateInstances" in actions] == []
    assert len(set(roles(template).values())) == len(hands)


def test_a_functions_role_has_no_rights_but_those_that_are_evaluated_here(template: Template) -> None:
    said = resources(template, "AWS::IAM::Role")
    for role in roles(template).values():
        assert said[role].keys() <= {"AssumeRolePolicyDocument", "Description", "PermissionsBoundary", "Tags"}
        [trust] = said[role]["AssumeRolePolicyDocument"]["Statement"]
        assert trust["Principal"] == {"Service": "lambda.amazonaws.com"}
    assert not resources(template, "AWS::IAM::ManagedPolicy")


def test_services_call_live_functions_and_move_their_aliases_and_that_is_all(template: Template) -> None:
    granted, resolver = service_policies(template), Resolver(template)
    functions = {resolver.arn(key) for key in resources(template, "AWS::Lambda::Function")}
    ticking = {target["Arn"] for target in (one["Target"] for one in resources(template, SCHEDULE).values())}
    assert granted.keys() == {"codedeploy", "scheduler"}
    assert {(each, one.resources) for one in granted["scheduler"] for each in one.actions} == {
        ("lambda:InvokeFunction", tuple(sorted(ticking))),
        ("sqs:SendMessage", (f"arn:aws:sqs:{HOME}:{ACCOUNT}:demo-joiner-dead-letters",)),
    }
    assert {arn.removesuffix(":live") for arn in ticking} < functions
    moved = {arn for one in granted["codedeploy"] if "lambda:UpdateAlias" in one.actions for arn in one.resources}
    assert moved == {arn for arn in functions if "installer" not in arn}
    assert {each for one in granted["codedeploy"] for each in one.actions} == {
        "cloudwatch:DescribeAlarms",
        "lambda:GetAlias",
        "lambda:GetProvisionedConcurrencyConfig",
        "lambda:UpdateAlias",
    }


@pytest.mark.parametrize(
    ("service", "ours", "theirs"),
    [
        ("scheduler", "schedule-group/{group}", "schedule-group/default"),
        ("codedeploy", "deploymentgroup:{application}/a", "deploymentgroup:other/a"),
    ],
)
def test_a_service_works_for_nobody_else(service: str, ours: str, theirs: str, template: Template) -> None:
    [group] = [one["Name"] for one in resources(template, "AWS::Scheduler::ScheduleGroup").values()]
    [application] = map(Resolver(template).ref, resources(template, "AWS::CodeDeploy::Application"))
    role = resources(template, "AWS::IAM::Role")[services(template)[service]]
    [trust] = role["AssumeRolePolicyDocument"]["Statement"]
    trusts = (parse_statement({**trust, "Resource": "*"}),)

    def by(what: str, account: str = ACCOUNT, principal: str = service) -> Verdict:
        source = f"arn:aws:{service}:{HOME}:{account}:{what.format(group=group, application=application)}"
        known = context({"aws:SourceArn": source, "aws:SourceAccount": account})
        return verdict(
            [trusts],
            Request(action="sts:AssumeRole", resource="*", context=known, principal=f"{principal}.amazonaws.com"),
        )

    assert by(ours) is Verdict.ALLOWED
    assert {by(theirs), by(ours, "999999999999"), by(ours, principal="lambda")} == {Verdict.SILENT}


@pytest.mark.parametrize("action", ["CreateNetworkInterface", "DeleteNetworkInterface", "AssignPrivateIpAddresses"])
def test_inside_a_vpc_lambda_makes_interfaces_and_the_code_may_not(action: str, private: Template) -> None:
    by_lambda = Attack(action=f"ec2:{action}")
    by_code = msgspec.structs.replace(
        by_lambda, known={"lambda:SourceFunctionArn": f"arn:aws:lambda:{HOME}:{ACCOUNT}:function:x"}
    )
    for policy in policies(private).values():
        assert verdict([policy], by_lambda.request()) is Verdict.ALLOWED
        assert verdict([policy], by_code.request()) is Verdict.DENIED


def test_who_does_not_speak_tls_is_denied(template: Template, granted: dict[str, Policy]) -> None:
    others = resource_policies(template)
    for properties in resources(template, "AWS::SQS::Queue").values():
        arn = f"arn:aws:sqs:{HOME}:{ACCOUNT}:{properties['QueueName']}"
        plain = Request(action="sqs:SendMessage", resource=arn, context=context({"aws:SecureTransport": "false"}))
        assert {verdict([policy, *others], plain) for policy in granted.values()} == {Verdict.DENIED}


def test_only_our_rules_announce(template: Template) -> None:
    def by(source: str, service: str = "events.amazonaws.com") -> Verdict:
        known = context({"aws:SourceArn": source, "aws:SecureTransport": "true"})
        queue = f"arn:aws:sqs:{HOME}:{ACCOUNT}:demo-joiner-interruption"
        asking = Request(action="sqs:SendMessage", resource=queue, context=known, principal=service)
        return verdict(resource_policies(template), asking)

    ours = [key.lower() for key in resources(template, "AWS::Events::Rule") if key.startswith("EventsSpot")]
    rules = f"arn:aws:events:{HOME}:{ACCOUNT}:rule/"
    assert [by(f"{rules}{name}") for name in ours] == [Verdict.ALLOWED]
    assert by(f"{rules}other") is Verdict.SILENT
    assert by(f"{rules}{ours[0]}", "sns.amazonaws.com") is Verdict.SILENT


def _actions(said: Mapping[str, object]) -> list[str]:
    found = said["Action"]
    return found if isinstance(found, list) else [str(found)]


def _may(policy: Policy, attack: Attack) -> bool:
    return verdict([policy], attack.request()) is Verdict.ALLOWED


def _shared(kind: str) -> str:
    account = "" if kind in ("image", "snapshot") else ACCOUNT
    return f"arn:aws:ec2:{HOME}:{account}:{kind}/x-1"
