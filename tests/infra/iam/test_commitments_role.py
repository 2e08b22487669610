"""The setting commitments-role: `catalog` may assume exactly this role, if the role trusts it, and nothing else."""

from typing import Any

import pytest

from infra.settings.load import load_options
from sim.authorization.template_policies import map_function_role_arns, parse_function_policies
from sim.cloud.resources.payer_role import PAYER_ACCOUNT_ID
from sim.iam.payer_role import COMMITMENT_ACTIONS
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.infra.iam.payer_policies import (
    DOCUMENTED_EXTERNAL_ID,
    build_permissions_policy,
    build_trust_policy,
    read_documented_trust_policy,
)
from tests.infra.iam.test_commitments import list_actions, run_catalog
from tests.scenario.worlds import World

ROLE = f"arn:aws:iam::{PAYER_ACCOUNT_ID}:role/joiner-commitments"
SETTINGS = ACTIVE_SETTINGS | {
    "commitments": "account",
    "commitments-role": ROLE,
    "commitments-external-id": DOCUMENTED_EXTERNAL_ID,
}


def build_world(trust_policy: dict[str, Any] | None = None, permissions: dict[str, Any] | None = None) -> World:
    """Return a world whose payer account has commitments, and the role with the policies of the page by default."""
    template = synthesize_template(settings=SETTINGS)
    world = World(template=template)
    caller_arn = map_function_role_arns(template)["catalog"]
    world.cloud.payer.commitments.add_plan(2.0, world.clock.get_time())
    world.cloud.payer.commitments.add_reserved("m5.large", 3, world.clock.get_time())
    world.cloud.payer.create_role(
        "joiner-commitments", trust_policy or build_trust_policy(caller_arn), permissions or build_permissions_policy()
    )
    return world


def test_only_catalog_may_assume_the_role_and_only_this_one() -> None:
    policies = parse_function_policies(synthesize_template(settings=SETTINGS))
    resources = {
        function: [
            statement.resources
            for statement in policy
            if any(action.startswith("sts:") for action in statement.actions)
        ]
        for function, policy in policies.items()
    }
    assert {function: found for function, found in resources.items() if found} == {"catalog": [(ROLE,)]}
    assert not {action for actions in list_actions("account").values() for action in actions if "sts" in action}


def test_commitments_of_both_accounts_are_read_with_the_policies_of_the_guide() -> None:
    world = build_world()
    now = world.clock.get_time()
    account_reserved = world.cloud.commitments.add_reserved("m5.xlarge", 1, now)
    catalog, calls = run_catalog(world)
    assert catalog.commitments is not None
    assert account_reserved in catalog.commitments.reserved
    assert {item.count for item in catalog.commitments.reserved} == {1, 3}
    assert [plan.commitment_usd_per_hour for plan in catalog.commitments.plans] == [2.0]
    assert "describe_commitments" in calls
    assert not world.list_errors()


@pytest.mark.parametrize(
    "trust_policy",
    [
        build_trust_policy("arn:aws:iam::111122223333:role/other"),
        build_trust_policy("arn:aws:iam::111122223333:root", "another-external-id"),
    ],
)
def test_role_that_does_not_trust_catalog_is_reported_with_its_name_and_the_fix(trust_policy: dict[str, Any]) -> None:
    world = build_world(trust_policy)
    catalog, _ = run_catalog(world)
    assert catalog.commitments is None
    [message] = [problem for problem in world.list_problems() if problem.startswith("Commitments ")]
    assert ROLE in message
    assert "sts:AssumeRole" in message
    assert f"check the trust policy and the permissions of {ROLE}: docs/guide/money.md" in message


@pytest.mark.parametrize("action", COMMITMENT_ACTIONS)
def test_role_without_one_of_the_permissions_is_reported(action: str) -> None:
    policy = build_permissions_policy()
    [statement] = policy["Statement"]
    actions = [name for name in statement["Action"] if name != action]
    world = build_world(permissions={**policy, "Statement": [{**statement, "Action": actions}]})
    catalog, _ = run_catalog(world)
    assert catalog.commitments is None


def test_policies_of_the_guide_are_exact() -> None:
    [statement] = read_documented_trust_policy()["Statement"]
    assert statement["Action"] == "sts:AssumeRole"
    assert statement["Condition"] == {"StringEquals": {"sts:ExternalId": DOCUMENTED_EXTERNAL_ID}}
    [permissions] = build_permissions_policy()["Statement"]
    assert sorted(permissions["Action"]) == sorted(COMMITMENT_ACTIONS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"commitments-role": ROLE}, "commitments-role is set, but commitments is off: set commitments: account"),
        (
            {"commitments-role": ROLE, "commitments": "bucket"},
            "commitments-role is set, but commitments is bucket: set commitments: account",
        ),
        (
            {"commitments-external-id": "x1", "commitments": "account"},
            "commitments-external-id is set, but commitments-role is not",
        ),
        ({"commitments-role": "joiner-commitments", "commitments": "account"}, "commitments-role"),
        ({"commitments-role": "arn:aws:iam::1:role/x", "commitments": "account"}, "commitments-role"),
        ({"commitments-role": f"{ROLE}*", "commitments": "account"}, "commitments-role"),
    ],
)
def test_invalid_settings_are_errors_before_the_deployment(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match="commitments") as error:
        load_options({"cluster": "demo", **options})
    assert message in str(error.value)
