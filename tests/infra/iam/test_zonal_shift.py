"""The setting zonal-shift: permission, endpoint and ARN exist only with the setting."""

from typing import Any

import pytest

from sim.authorization.template_policies import parse_function_policies
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template

ACTION = "arc-zonal-shift:GetManagedResource"
FUNCTIONS = {"provision", "lifecycle", "disrupt", "interrupt"}


def synthesize(setting: str) -> dict[str, Any]:
    return synthesize_template(settings=ACTIVE_SETTINGS | {"zonal-shift": setting})


@pytest.mark.parametrize("setting", ["off", "on", "drain"])
def test_functions_that_plan_nodes_may_read_the_shifts_of_their_cluster_only(setting: str) -> None:
    statements = {
        function: [statement for statement in policy if ACTION in statement.actions]
        for function, policy in parse_function_policies(synthesize(setting)).items()
    }
    assert {function for function, own in statements.items() if own} == (FUNCTIONS if setting != "off" else set())
    for statement in (statement for own in statements.values() for statement in own):
        assert "arc-zonal-shift:ResourceIdentifier" in str(statement.condition)
        assert ":cluster/demo" in str(statement.condition)


def test_template_without_the_setting_does_not_mention_it() -> None:
    text = str(synthesize("off"))
    assert "arc-zonal-shift" not in text
    assert ":cluster/demo" not in str(
        [
            resource["Properties"].get("Environment", {}).get("Variables", {}).get("JOINER_CLUSTER_ARN")
            for resource in synthesize("off")["Resources"].values()
            if resource["Type"] == "AWS::Lambda::Function"
        ]
    )
