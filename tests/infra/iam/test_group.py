"""The setting group: its permissions exist only with the setting, and only for the item of the group."""

from sim.authorization.template_policies import parse_function_policies
from sim.iam.patterns_and_variables import IamRequest, build_context
from sim.iam.policy import AccessDecision, evaluate_policies
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.scenario.provisioning.test_cluster_group import TABLE_ARN, build_worlds
from tests.scenario.worlds import make_deployment

GROUP_SETTINGS = {"group": "batch", "group-table": TABLE_ARN, "group-limit-usd-per-hour": "10"}
POLICIES = parse_function_policies(synthesize_template(settings=ACTIVE_SETTINGS | GROUP_SETTINGS))


def list_group_actions(settings: dict[str, str]) -> dict[str, set[str]]:
    policies = parse_function_policies(synthesize_template(settings=ACTIVE_SETTINGS | settings))
    return {
        function: actions
        for function, policy in policies.items()
        if (
            actions := {
                action for statement in policy if TABLE_ARN in statement.resources for action in statement.actions
            }
        )
    }


def is_allowed(function: str, action: str, key: str, table: str = TABLE_ARN) -> bool:
    context = {"dynamodb:LeadingKeys": (key,), "aws:RequestedRegion": "us-east-1", "aws:SecureTransport": "true"}
    request = IamRequest(action=action, resource=table, context=build_context(context))
    return evaluate_policies((POLICIES[function],), request) is AccessDecision.ALLOWED


def test_only_provision_writes_and_planning_functions_read_and_only_with_the_setting() -> None:
    assert list_group_actions({}) == {}
    assert list_group_actions(GROUP_SETTINGS) == {
        "disrupt": {"dynamodb:GetItem"},
        "interrupt": {"dynamodb:GetItem"},
        "provision": {"dynamodb:GetItem", "dynamodb:PutItem"},
    }


def test_items_of_other_groups_and_other_actions_are_denied() -> None:
    assert is_allowed("provision", "dynamodb:PutItem", "group/batch")
    assert is_allowed("disrupt", "dynamodb:GetItem", "group/batch")
    assert not is_allowed("provision", "dynamodb:PutItem", "group/other")
    assert not is_allowed("provision", "dynamodb:GetItem", "group/other")
    assert not is_allowed("disrupt", "dynamodb:PutItem", "group/batch")
    assert not is_allowed("catalog", "dynamodb:GetItem", "group/batch")
    for action in ("dynamodb:DeleteItem", "dynamodb:Query", "dynamodb:Scan", "dynamodb:UpdateItem"):
        assert not is_allowed("provision", action, "group/batch")


def test_nodes_are_launched_with_the_permissions_of_the_roles() -> None:
    world, _ = build_worlds()
    world.apply([make_deployment(4)])
    world.wait_until_settled(4)
    assert not world.access_control.denials
    assert not world.list_errors()
