"""Attacks with the role of each function: all of them are refused, for every role and all request contexts.

Tables of single attacks first; then every change that EC2 knows, tried on every kind of foreign resource.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
import pytest
from botocore.session import Session

from sim.authorization.template_policies import (
    Template,
    get_resources,
    iterate_statements,
    map_function_roles,
    map_profile_roles,
    map_service_roles,
    parse_function_policies,
    parse_resource_policies,
    parse_service_policies,
)
from sim.iam.patterns_and_variables import IamRequest, build_context
from sim.iam.policy import AccessDecision, Policy, PolicyStatement, evaluate_policies, parse_statement
from sim.iam.tag_condition_keys import build_request_tag_keys, build_resource_tag_keys
from sim.lambda_runtime.stack_template.generated_references import ACCOUNT_ID, IntrinsicResolver
from sim.lambda_runtime.stack_template.synthesis import synthesize_template
from tests.infra.attacks import (
    ALLOWED_REQUESTS,
    ATTACKS,
    CREATED_BY,
    OTHER_CLUSTER_TAGS,
    REGION,
    ROLE_ARN_PREFIX,
    TABLE_PLACEHOLDER,
    TOPIC_ARN,
    WORKSPACE_URL,
    Attack,
    build_ec2_arn,
    build_pass_role_attack,
    flatten_context,
)

SCHEDULE: Final = "AWS::Scheduler::Schedule"
LAUNCH_ACTIONS: Final = frozenset({"ec2:CreateFleet", "ec2:RunInstances"})


@pytest.fixture(scope="module")
def template() -> Template:
    """With all functions that there are."""
    settings = {"report-topic": TOPIC_ARN, "event-bus": "alerts", "remote-write-url": WORKSPACE_URL}
    return synthesize_template(settings={"reaction": "watch", **settings})


@pytest.fixture(scope="module")
def private() -> Template:
    inside = {"network": "private", "subnets": "subnet-00000001", "security-groups": "sg-00000001"}
    return synthesize_template(settings=inside)


@pytest.fixture(scope="module")
def granted(template: Template) -> dict[str, Policy]:
    return parse_function_policies(template)


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_attack_is_denied_for_every_role(attack: Attack, granted: dict[str, Policy], template: Template) -> None:
    shared_policies, resolver = parse_resource_policies(template), IntrinsicResolver(template)
    [table] = map(resolver.resolve_ref, get_resources(template, "AWS::DynamoDB::Table"))
    request = msgspec.structs.replace(
        attack, resource=attack.resource.replace(TABLE_PLACEHOLDER, table)
    ).build_request()
    policies_by_role = granted | parse_service_policies(template)
    answers = {
        name: evaluate_policies([policy, *shared_policies], request) for name, policy in policies_by_role.items()
    }
    assert [name for name, answer in answers.items() if answer is AccessDecision.ALLOWED] == []


@pytest.mark.parametrize(("attack", "may"), ALLOWED_REQUESTS.values(), ids=ALLOWED_REQUESTS.keys())
def test_legitimate_request_is_allowed_only_for_its_role(
    attack: Attack, may: set[str], granted: dict[str, Policy]
) -> None:
    request = attack.build_request()
    assert {
        name for name, policy in granted.items() if evaluate_policies([policy], request) is AccessDecision.ALLOWED
    } == may


def test_node_role_can_be_passed_only_to_ec2(template: Template, granted: dict[str, Policy]) -> None:
    [role] = map_profile_roles(template).values()
    for service in ("ec2.amazonaws.com", "lambda.amazonaws.com", "ecs-tasks.amazonaws.com"):
        request = build_pass_role_attack(role, service).build_request()
        may = {
            name for name, policy in granted.items() if evaluate_policies([policy], request) is AccessDecision.ALLOWED
        }
        assert may == ({"provision"} if service == "ec2.amazonaws.com" else set())


def test_no_function_can_pass_a_function_role(template: Template, granted: dict[str, Policy]) -> None:
    for role in get_resources(template, "AWS::IAM::Role"):
        if role in map_function_roles(template).values():
            request = build_pass_role_attack(f"{ROLE_ARN_PREFIX}{role.lower()}").build_request()
            assert {evaluate_policies([policy], request) for policy in granted.values()} == {
                AccessDecision.IMPLICIT_DENY
            }


def list_ec2_changes() -> tuple[str, ...]:
    """Return every operation of EC2 that is not read-only, as the AWS SDK lists them."""
    names = Session().get_service_model("ec2").operation_names
    return tuple(f"ec2:{name}" for name in sorted(names) if not name.startswith(("Describe", "Get", "Search", "List")))


LAUNCHED_KINDS: Final = (
    "fleet",
    "instance",
    "launch-template",
    "network-interface",
    "spot-instances-request",
    "volume",
)
"""Resource kinds that a launch creates."""


@pytest.mark.parametrize(
    "context",
    [
        {},
        flatten_context(build_resource_tag_keys(OTHER_CLUSTER_TAGS)),
        flatten_context(build_request_tag_keys(OTHER_CLUSTER_TAGS)),
    ],
    ids=["none", "there", "written"],
)
def test_ec2_changes_without_cluster_tags_are_denied(
    context: dict[str, str | tuple[str, ...]], granted: dict[str, Policy]
) -> None:
    assert len(list_ec2_changes()) > 400
    allowed = [
        (name, action, kind)
        for action in list_ec2_changes()
        for kind in LAUNCHED_KINDS
        for name, policy in granted.items()
        if _is_allowed(
            policy, Attack(action=action, resource=build_ec2_arn(kind, "x-1"), context={**context, **CREATED_BY})
        )
    ]
    assert allowed == []


def test_untagged_resources_can_only_be_used_in_a_launch(granted: dict[str, Policy]) -> None:
    used_kinds = ("capacity-reservation", "image", "placement-group", "security-group", "snapshot", "subnet")
    unused_kinds = (
        "vpc",
        "route-table",
        "internet-gateway",
        "key-pair",
        "elastic-ip",
        "dedicated-host",
        "vpc-endpoint",
    )
    allowed = {
        (name, action, kind)
        for action in list_ec2_changes()
        for kind in (*used_kinds, *unused_kinds)
        for name, policy in granted.items()
        if _is_allowed(policy, Attack(action=action, resource=_build_shared_arn(kind)))
    }
    assert allowed == {("provision", action, kind) for action in LAUNCH_ACTIONS for kind in used_kinds}


def iterate_weakened_statements(document: dict[str, Any]) -> Iterator[tuple[str, PolicyStatement]]:
    """Yield *document* with each of its conditions left out in turn."""
    for operator, keys in document.get("Condition", {}).items():
        for key in keys:
            conditions = {name: dict(condition_keys) for name, condition_keys in document["Condition"].items()}
            del conditions[operator][key]
            yield f"{document['Sid']}: {operator} {key}", parse_statement({**document, "Condition": conditions})


def test_every_policy_condition_blocks_at_least_one_attack(template: Template) -> None:
    [role] = map_profile_roles(template).values()
    requests = [attack.build_request() for attack in (*ATTACKS.values(), Attack(**PASSED_ON, resource=role))]
    idle = [
        label
        for _, document in iterate_statements(template)
        for label, statement in iterate_weakened_statements(document)
        if not any(statement.is_applicable(request) for request in requests)
    ]
    assert idle == []


PASSED_ON: Final[dict[str, Any]] = {
    "action": "iam:PassRole",
    "context": {"iam:PassedToService": "lambda.amazonaws.com"},
}


def test_no_role_can_both_launch_and_terminate_instances(template: Template) -> None:
    actions_by_function = {
        name: {
            action
            for owner, document in iterate_statements(template)
            if owner == name
            for action in _list_actions(document)
        }
        for name in map_function_roles(template)
    }
    assert [
        name
        for name, actions in actions_by_function.items()
        if actions & LAUNCH_ACTIONS and "ec2:TerminateInstances" in actions
    ] == []
    assert len(set(map_function_roles(template).values())) == len(actions_by_function)


def test_function_roles_have_only_the_permissions_evaluated_in_these_tests(template: Template) -> None:
    iam_roles = get_resources(template, "AWS::IAM::Role")
    for role in map_function_roles(template).values():
        assert iam_roles[role].keys() <= {"AssumeRolePolicyDocument", "Description", "PermissionsBoundary", "Tags"}
        [trust] = iam_roles[role]["AssumeRolePolicyDocument"]["Statement"]
        assert trust["Principal"] == {"Service": "lambda.amazonaws.com"}
    assert not get_resources(template, "AWS::IAM::ManagedPolicy")


def test_service_roles_can_only_invoke_live_aliases_and_shift_traffic(template: Template) -> None:
    granted, resolver = parse_service_policies(template), IntrinsicResolver(template)
    functions = {resolver.get_arn(key) for key in get_resources(template, "AWS::Lambda::Function")}
    ticking = {
        target["Arn"] for target in (schedule["Target"] for schedule in get_resources(template, SCHEDULE).values())
    }
    assert granted.keys() == {"codedeploy", "scheduler"}
    assert {
        (action, policy_statement.resources)
        for policy_statement in granted["scheduler"]
        for action in policy_statement.actions
    } == {
        ("lambda:InvokeFunction", tuple(sorted(ticking))),
        ("sqs:SendMessage", (f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:demo-joiner-dead-letters",)),
    }
    assert {arn.removesuffix(":live") for arn in ticking} < functions
    moved = {
        arn
        for policy_statement in granted["codedeploy"]
        if "lambda:UpdateAlias" in policy_statement.actions
        for arn in policy_statement.resources
    }
    assert moved == {arn for arn in functions if "installer" not in arn}
    assert {action for policy_statement in granted["codedeploy"] for action in policy_statement.actions} == {
        "cloudwatch:DescribeAlarms",
        "lambda:GetAlias",
        "lambda:GetProvisionedConcurrencyConfig",
        "lambda:UpdateAlias",
    }


@pytest.mark.parametrize(
    ("service", "own_source", "foreign_source"),
    [
        ("scheduler", "schedule-group/{group}", "schedule-group/default"),
        ("codedeploy", "deploymentgroup:{application}/a", "deploymentgroup:other/a"),
    ],
)
def test_service_role_trusts_only_its_own_account_and_resource(
    service: str, own_source: str, foreign_source: str, template: Template
) -> None:
    [group] = [
        schedule_group["Name"] for schedule_group in get_resources(template, "AWS::Scheduler::ScheduleGroup").values()
    ]
    [application] = map(
        IntrinsicResolver(template).resolve_ref, get_resources(template, "AWS::CodeDeploy::Application")
    )
    role = get_resources(template, "AWS::IAM::Role")[map_service_roles(template)[service]]
    [trust] = role["AssumeRolePolicyDocument"]["Statement"]
    trusts = (parse_statement({**trust, "Resource": "*"}),)

    def assume_role(source_suffix: str, account: str = ACCOUNT_ID, principal: str = service) -> AccessDecision:
        source = f"arn:aws:{service}:{REGION}:{account}:{source_suffix.format(group=group, application=application)}"
        context = build_context({"aws:SourceArn": source, "aws:SourceAccount": account})
        return evaluate_policies(
            [trusts],
            IamRequest(action="sts:AssumeRole", resource="*", context=context, principal=f"{principal}.amazonaws.com"),
        )

    assert assume_role(own_source) is AccessDecision.ALLOWED
    assert {
        assume_role(foreign_source),
        assume_role(own_source, "999999999999"),
        assume_role(own_source, principal="lambda"),
    } == {AccessDecision.IMPLICIT_DENY}


@pytest.mark.parametrize("action", ["CreateNetworkInterface", "DeleteNetworkInterface", "AssignPrivateIpAddresses"])
def test_network_interface_calls_are_allowed_for_lambda_but_denied_for_function_code(
    action: str, private: Template
) -> None:
    by_lambda = Attack(action=f"ec2:{action}")
    by_code = msgspec.structs.replace(
        by_lambda, context={"lambda:SourceFunctionArn": f"arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:x"}
    )
    for policy in parse_function_policies(private).values():
        assert evaluate_policies([policy], by_lambda.build_request()) is AccessDecision.ALLOWED
        assert evaluate_policies([policy], by_code.build_request()) is AccessDecision.DENIED


def test_sqs_requests_without_tls_are_denied(template: Template, granted: dict[str, Policy]) -> None:
    queue_policies = parse_resource_policies(template)
    for properties in get_resources(template, "AWS::SQS::Queue").values():
        arn = f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:{properties['QueueName']}"
        plain = IamRequest(
            action="sqs:SendMessage", resource=arn, context=build_context({"aws:SecureTransport": "false"})
        )
        assert {evaluate_policies([policy, *queue_policies], plain) for policy in granted.values()} == {
            AccessDecision.DENIED
        }


def test_only_the_stack_event_rules_can_send_to_the_interruption_queue(template: Template) -> None:
    def send_message(source: str, service: str = "events.amazonaws.com") -> AccessDecision:
        context = build_context({"aws:SourceArn": source, "aws:SecureTransport": "true"})
        queue = f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:demo-joiner-interruption"
        asking = IamRequest(action="sqs:SendMessage", resource=queue, context=context, principal=service)
        return evaluate_policies(parse_resource_policies(template), asking)

    rule_names = [key.lower() for key in get_resources(template, "AWS::Events::Rule") if key.startswith("EventsSpot")]
    rules = f"arn:aws:events:{REGION}:{ACCOUNT_ID}:rule/"
    assert [send_message(f"{rules}{name}") for name in rule_names] == [AccessDecision.ALLOWED]
    assert send_message(f"{rules}other") is AccessDecision.IMPLICIT_DENY
    assert send_message(f"{rules}{rule_names[0]}", "sns.amazonaws.com") is AccessDecision.IMPLICIT_DENY


def _list_actions(document: Mapping[str, object]) -> list[str]:
    actions = document["Action"]
    return actions if isinstance(actions, list) else [str(actions)]


def _is_allowed(policy: Policy, attack: Attack) -> bool:
    return evaluate_policies([policy], attack.build_request()) is AccessDecision.ALLOWED


def _build_shared_arn(kind: str) -> str:
    account = "" if kind in ("image", "snapshot") else ACCOUNT_ID
    return f"arn:aws:ec2:{REGION}:{account}:{kind}/x-1"
