"""A settings file is YAML; each error has the line and the fix."""

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.settings.errors import InvalidSettingsError
from infra.settings.files.command import main
from infra.settings.files.reading import parse_settings
from infra.settings.files.selection import select_clusters
from infra.settings.load import load_options
from infra.settings.settings import StackOptions


def test_every_form_of_a_value_is_read() -> None:
    options = parse_settings(
        """
# a comment
mode: plan
log-days: 7
node-cost-usd-per-hour: 0.02
windows: true
dashboard: False
subnets: subnet-00000001,subnet-00000002
network: private
security-groups:
  - sg-00000001
tags: {team: platform, cost-centre: 042}
memory-mb:
  provision: 3008
feature-gates: {NodeRepair: true}
disruption-paused: Drifted in batch until 2026-11-22T09:00:00Z
disruption-budgets:
  - nodes: 5%
  - {nodes: 0, schedule: 0 9 * * mon-fri, duration: 8h, reasons: [Drifted]}
scheduler-config:
  podTopologySpread:
    defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
""",
        "prod",
    )
    assert (options.cluster, options.mode, options.log_days, options.node_cost_usd_per_hour) == (
        "prod",
        "plan",
        7,
        0.02,
    )
    assert (options.windows, options.dashboard) == (True, False)
    assert (options.subnets, options.security_groups) == (("subnet-00000001", "subnet-00000002"), ("sg-00000001",))
    assert (options.tags, options.memory_mb) == ({"team": "platform", "cost-centre": "042"}, {"provision": 3008})
    assert (options.feature_gates, options.gates.node_repair) == ("NodeRepair=true", True)
    assert options.disruption_paused == "Drifted in batch until 2026-11-22T09:00:00Z"
    assert msgspec.json.decode(options.disruption_budgets)[1]["schedule"] == "0 9 * * mon-fri"
    assert msgspec.json.decode(options.scheduler_config)["podTopologySpread"]["defaultConstraints"][0]["maxSkew"] == 1


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("snapshots: off", "snapshots", "off"),
        ("snapshots: on", "snapshots", "on"),
        ("account: 012345678901", "account", "012345678901"),
        ("account: '111122223333'", "account", "111122223333"),
        ("disruption-paused: true", "disruption_paused", "true"),
        ("price-list: 2026-11-22", "price_list", "2026-11-22"),
        ('alarm-topic: ""', "alarm_topic", ""),
    ],
)
def test_a_scalar_is_the_text_in_the_file_whatever_yaml_takes_it_for(text: str, field: str, value: object) -> None:
    assert getattr(parse_settings(text, "prod"), field) == value


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", 'cluster: ""\n'])
def test_a_file_without_settings_has_the_defaults(text: str) -> None:
    assert parse_settings(text, "prod") == StackOptions(cluster="prod")


def test_a_file_can_name_another_cluster() -> None:
    assert parse_settings("cluster: prod", "prod-eu").cluster == "prod"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mode: plan\nlog-day: 7", "line 2: log-day is not a setting: did you mean log-days?"),
        ("joiner:mode: plan", "line 1: joiner:mode is not a setting: write mode"),
        ("\nlog-days: 8", "line 2: log-days is '8': must be one of 1, 3, 5"),
        ("mode: [plan]", "line 1: mode is ['plan']: must be text"),
        ("windows: yes", "line 1: windows is 'yes': must be true or false"),
        ("mode: plan\nlog-days: 7\nmode: active", "line 3: mode is set twice, first in line 1: remove one of them"),
        ("tags: {team: a, team: b}", "line 1: tags: team is there twice: remove one of them"),
        ("mode:", "line 1: mode has no value: write one, or remove the line to get the default"),
        ("mode: null", "line 1: mode has no value"),
        ("- mode: plan", "is not a map: write each setting on a line of its own, like `mode: active`"),
        ("mode", "is not a map"),
        ("mode: plan\n  log-days: 7", "line 2: is not YAML: mapping values are not allowed here"),
        ("mode: 'plan", "is not YAML"),
        ("mode: plan\n---\nmode: active", "is not YAML"),
        ("? [a]\n: b", "line 1: a name is missing before the value"),
        ("tags: {team: [a]}", "line 1: tags is {'team': ['a']}: must be text"),
        ("network: private", "network is private: set subnets"),
    ],
)
def test_an_error_has_line_setting_and_fix(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_settings(text, "prod")


@given(days=st.sampled_from((1, 3, 5, 7)), mode=st.sampled_from(("active", "plan")), usd=st.integers(0, 10_000))
def test_a_file_and_its_values_give_the_same_settings(days: int, mode: str, usd: int) -> None:
    values: dict[str, object] = {"cluster": "a", "log-days": days, "mode": mode, "launch-usd-per-hour": usd}
    text = "".join(f"{name}: {value}\n" for name, value in values.items())
    assert parse_settings(text, "a") == load_options(values)


def read_errors(text: str) -> tuple[str, ...]:
    with pytest.raises(InvalidSettingsError) as caught:
        parse_settings(text, "demo")
    return caught.value.errors


def test_all_errors_of_a_file_are_reported_with_their_lines() -> None:
    """*subnets* has no value, so it is not reported that network: private needs one."""
    text = "mode: often\nlog_day: 7\nsubnets:\nwindows: yes\njournal-days: 0\nnetwork: private\nmode: plan\n"
    assert read_errors(text) == (
        "line 1: mode is 'often': must be active or plan",
        "line 2: log_day is not a setting: did you mean log-days?",
        "line 3: subnets has no value: write one, or remove the line to get the default",
        "line 4: windows is 'yes': must be true or false",
        "line 5: journal-days is '0': must be 1 or more",
        "line 7: mode is set twice, first in line 1: remove one of them",
    )


def test_settings_that_do_not_fit_together_are_all_reported() -> None:
    text = "network: isolated\nprice-age-alarm-hours: 5\nroute-tables: rtb-0123456789abcdef0\n"
    text += "vpc-cidrs: [0.0.0.0/0, 10.0.0.0/33]\n"
    beginnings = (
        "line 1: network is isolated: set subnets too",
        "line 1: network is isolated, which has no endpoint of the pricing service",
        "line 2: price-age-alarm-hours is 5: must be 13 or more",
        "line 3: route-tables has no effect without vpc-endpoints",
        "line 4: vpc-cidrs: 0.0.0.0/0 contains all addresses",
        "line 4: vpc-cidrs: '10.0.0.0/33' does not appear to be an IPv4 or IPv6 network",
        "security-groups is empty, so the stack creates a security group: set vpc and cluster-security-group too",
    )
    errors = read_errors(text)
    assert len(errors) == len(beginnings)
    assert all(error.startswith(beginning) for error, beginning in zip(errors, beginnings, strict=True)), errors


def test_errors_of_several_files_name_their_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("mode: often\n")
    (tmp_path / "b.yaml").write_text("mode: seldom\nlog-days: 8\n")
    with pytest.raises(InvalidSettingsError) as caught:
        select_clusters({"cluster": "a,b,c", "clusters-folder": str(tmp_path)})
    *value_errors, missing_file_error = caught.value.errors
    assert [message.partition(" is ")[0] for message in value_errors] == [
        f"{tmp_path}/a.yaml: line 1: mode",
        f"{tmp_path}/b.yaml: line 1: mode",
        f"{tmp_path}/b.yaml: line 2: log-days",
    ]
    assert "CLUSTER=c" in missing_file_error


def test_make_settings_prints_each_error_on_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--folder", str(tmp_path), "prod", "mode=often", "log-days=8"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" is ")[0].rpartition(" ")[2] for line in lines] == ["mode", "log-days"]
    assert all(line.startswith(f"make settings: {tmp_path}/prod.yaml: line ") for line in lines)
