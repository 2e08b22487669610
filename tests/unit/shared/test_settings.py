"""Settings in the environment of a function."""

import pytest

from shared.model.core.feature_gates import FeatureGates
from shared.settings import ChosenSettings, Settings
from shared.settings_text import describe_allowed, encode_text, get_variable_names

ENVIRONMENT = {"CLUSTER_NAME": "demo", "JOINER_REGION": "us-east-1"}


def test_environment_variables_use_karpenter_names_for_karpenter_settings() -> None:
    variables = get_variable_names(Settings)
    assert {name for name in variables.values() if not name.startswith("JOINER_")} == {
        *("AWS_FEATURE_GATES", "CLUSTER_NAME", "DISABLE_DRY_RUN", "FEATURE_GATES", "LOG_LEVEL", "MIN_VALUES_POLICY"),
        *("PREFERENCE_POLICY", "RESERVED_ENIS", "SCHEDULER_CONFIG", "VM_MEMORY_OVERHEAD_PERCENT"),
    }
    assert variables["launch_usd_per_hour"] == "JOINER_LAUNCH_USD_PER_HOUR"


def test_environment_variables_are_parsed_by_setting_type() -> None:
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
def test_invalid_setting_is_rejected_with_its_variable_name(variable: str, text: str, allowed: str) -> None:
    with pytest.raises(ValueError, match="must be") as raised:
        ChosenSettings.from_environment({variable: text})
    assert str(raised.value) == f"{variable} is {text!r}: must be {allowed}"


def test_feature_gates_are_parsed_only_when_they_are_read() -> None:
    settings = ChosenSettings.from_environment({"FEATURE_GATES": "NodeOverlay"})
    with pytest.raises(ValueError, match="NodeOverlay"):
        _ = settings.gates


def test_allowed_values_are_described_by_type_by_default() -> None:
    assert [describe_allowed(kind) for kind in (int, bool, str, tuple[bool, ...])] == [
        *("a whole number", "true or false", "", "true or false"),
    ]


def test_maps_are_encoded_as_on_the_command_line() -> None:
    assert encode_text({"team": "platform", "cost-centre": "42"}) == "team=platform,cost-centre=42"
