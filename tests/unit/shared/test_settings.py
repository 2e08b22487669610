"""Settings in the environment of a function."""

import pytest

from shared.model.core.feature_gates import FeatureGates
from shared.settings import ChosenSettings, Settings
from shared.settings_text import describe_allowed, encode_text, get_variable_names

ENVIRONMENT = {"CLUSTER_NAME": "demo", "JOINER_REGION": "us-east-1"}


def test_variables_have_karpenters_names_where_karpenter_has_the_setting() -> None:
    variables = get_variable_names(Settings)
    assert {name for name in variables.values() if not name.startswith("JOINER_")} == {
        *("AWS_FEATURE_GATES", "CLUSTER_NAME", "DISABLE_DRY_RUN", "FEATURE_GATES", "LOG_LEVEL", "MIN_VALUES_POLICY"),
        *("PREFERENCE_POLICY", "RESERVED_ENIS", "SCHEDULER_CONFIG", "VM_MEMORY_OVERHEAD_PERCENT"),
    }
    assert variables["launch_usd_per_hour"] == "JOINER_LAUNCH_USD_PER_HOUR"


def test_variables_have_the_types_of_their_settings() -> None:
    texts = {"DISABLE_DRY_RUN": "true", "RESERVED_ENIS": "01", "VM_MEMORY_OVERHEAD_PERCENT": ".05"}
    settings = Settings.from_environment({**ENVIRONMENT, **texts, "FEATURE_GATES": "NodeOverlay=true"})
    assert (settings.disable_dry_run, settings.reserved_enis, settings.vm_memory_overhead_percent) == (True, 1, 0.05)
    assert settings.gates == FeatureGates(node_overlay=True)
    assert not settings.aws_gates.node_class_cel


@pytest.mark.parametrize(
    ("variable", "text", "allowed"),
    [
        ("JOINER_MODE", "dry", "active or plan"),
        ("DISABLE_DRY_RUN", "1", "true or false"),
        ("JOINER_DRIFT_PAUSE_PERCENT", "101", "0 to 100"),
        ("RESERVED_ENIS", "1e3", "0 or more"),
        ("JOINER_NODE_COST_USD_PER_HOUR", "nan", "USD, like 0.08"),
        ("JOINER_REPORT_TOPIC", "arn:aws:sns:us-east-1:111122223333:costs\n", "the ARN of a standard SNS topic"),
    ],
)
def test_a_value_that_is_not_allowed_is_named_with_its_variable(variable: str, text: str, allowed: str) -> None:
    with pytest.raises(ValueError, match="must be") as raised:
        ChosenSettings.from_environment({variable: text})
    assert str(raised.value) == f"{variable} is {text!r}: must be {allowed}"


def test_a_grammar_is_parsed_by_the_cycle_that_reads_it() -> None:
    settings = ChosenSettings.from_environment({"FEATURE_GATES": "NodeOverlay"})
    with pytest.raises(ValueError, match="NodeOverlay"):
        _ = settings.gates


def test_allowed_values_are_described_by_type_if_nothing_else_is_declared() -> None:
    assert [describe_allowed(kind) for kind in (int, bool, str, tuple[bool, ...])] == [
        *("a whole number", "true or false", "", "true or false"),
    ]


def test_maps_are_written_as_on_the_command_line() -> None:
    assert encode_text({"team": "platform", "cost-centre": "42"}) == "team=platform,cost-centre=42"
