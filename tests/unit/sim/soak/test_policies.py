"""Tests of the policies of simulated weeks: their names, their settings, and the payback period."""

from datetime import timedelta

import pytest

from shared.cycles.setup.options_from_settings import build_disruption_settings
from shared.errors import Invalid
from shared.settings import Settings
from sim.soak.policies import (
    POLICIES,
    SoakPolicy,
    apply_payback,
    parse_policies,
    with_options,
)

SETTINGS = Settings(cluster_name="demo", region="eu-central-1")


def test_policies_and_points_of_a_curve_are_parsed_in_order() -> None:
    policies = parse_policies("default, price=0.001,0.01,never")
    assert [policy.name for policy in policies] == ["default", "price=0.001", "price=0.01", "never"]
    assert [policy.curve for policy in policies] == ["", "price", "price", ""]
    assert policies[1].settings == {"eviction-price-usd": "0.001"}


@pytest.mark.parametrize("text", ["sometimes", "speed=1", "price=cheap", "price", "0.001", "default,0.001"])
def test_an_unknown_policy_is_an_error_that_names_the_known_ones(text: str) -> None:
    with pytest.raises(ValueError, match=r"write .*price"):
        parse_policies(text)


def test_setting_that_does_not_exist_is_an_error_that_names_the_policy() -> None:
    assert SoakPolicy(name="new", settings={"mode": "plan"}).build_settings() == {"mode": "plan"}
    with pytest.raises(Invalid, match=r"policy new: the functions have no setting no-such-setting"):
        SoakPolicy(name="new", settings={"no-such-setting": "1"}).build_settings()


def test_every_named_policy_can_be_deployed() -> None:
    settings_by_policy = {name: policy.build_settings() for name, policy in POLICIES.items()}
    assert settings_by_policy["default"] == {}
    assert settings_by_policy["never"] == {"disruption-paused": "Underutilized"}


def test_options_of_the_command_line_are_part_of_the_name() -> None:
    policy = with_options(POLICIES["default"], {"mode": "plan"}, [("*", "joiner.dev/image-soak", "1h")])
    assert policy.name == "default mode=plan *:image-soak=1h"
    assert policy.settings == {"mode": "plan"}
    assert policy.annotations == (("*", "joiner.dev/image-soak", "1h"),)
    assert with_options(POLICIES["never"], {}, []) is POLICIES["never"]


def test_payback_is_off_only_while_a_policy_without_payback_is_applied() -> None:
    with apply_payback(POLICIES["karpenter"]):
        assert build_disruption_settings(SETTINGS).overlap == timedelta()
    with apply_payback(POLICIES["default"]):
        assert build_disruption_settings(SETTINGS).overlap > timedelta()
    assert build_disruption_settings(SETTINGS).overlap > timedelta()
