"""Settings and their validation, without a synthesis."""

import json
import os
import re
import subprocess
import sys
from datetime import timedelta
from itertools import pairwise

import msgspec
import pytest

from infra.settings.context_parsing import check_option_names
from infra.settings.load import load_options
from infra.settings.per_function import parse_log_levels
from infra.settings.settings import StackOptions, format_context_key, list_options
from infra.settings.validation import MIN_PRICE_AGE_ALARM_HOURS
from infra.stack.application import CDK_JSON
from shared.decide.scheduling.constraints.default_topology_spread import parse_default_constraints
from shared.report.metrics.emf import MAX_PRICE_AGE
from shared.settings_text import split_list
from sim.lambda_runtime.stack_template.synthesis import REPOSITORY_ROOT


def test_all_settings_have_defaults() -> None:
    assert load_options(lambda _: None) == StackOptions()


def test_cdk_json_lists_every_setting_with_its_default() -> None:
    context = json.loads(CDK_JSON.read_text())["context"]
    listed_there = {key.removeprefix("joiner:"): value for key, value in context.items() if key.startswith("joiner:")}
    assert list(listed_there) == [format_context_key(field.name).removeprefix("joiner:") for field in list_options()]
    assert load_options(context.get) == StackOptions()


def test_cdk_json_describes_each_setting_on_the_line_before_it() -> None:
    keys = list(json.loads(CDK_JSON.read_text())["context"].items())
    for (comment, says), (key, _) in pairwise(keys):
        if key.startswith("joiner:"):
            assert comment == f"//{key}"
            assert len(str(says)) > 10, key


def test_string_values_from_the_command_line_are_converted() -> None:
    stack_options = load_options({"joiner:cluster": "prod", "joiner:log-days": "7"}.get)
    assert (stack_options.cluster, stack_options.log_days) == ("prod", 7)


@pytest.mark.parametrize(
    ("wrong", "error_pattern"),
    [
        ({"cluster": ""}, "joiner:cluster"),
        ({"cluster": "-a"}, "joiner:cluster"),
        ({"cluster": "a" * 61}, "joiner:cluster"),
        ({"cluster": "a/b"}, "joiner:cluster"),
        ({"mode": "dry"}, "joiner:mode"),
        ({"reaction": "soon"}, "joiner:reaction is 'soon': must be tick or watch or logs"),
        ({"pod-nominations": "Maybe"}, "joiner:pod-nominations is 'Maybe': must be Enabled or Disabled"),
        ({"node-cost-usd-per-hour": "-1"}, "joiner:node-cost-usd-per-hour is '-1': must be USD"),
        ({"eviction-price-usd": "-1"}, "joiner:eviction-price-usd is '-1': must be USD, like 0.02"),
        ({"workload-cooldown": "soon"}, "joiner:workload-cooldown is 'soon': must be a duration like 4h or 90m"),
        ({"workload-cooldown": ""}, "joiner:workload-cooldown is '': must be a duration like 4h or 90m"),
        ({"volume-usd-per-gib-month": "cheap"}, "joiner:volume-usd-per-gib-month is 'cheap'"),
        ({"disruption-paused": "Dirft"}, "joiner:disruption-paused: 'Dirft' is not a reason: did you mean Drifted[?]"),
        (
            {"disruption-paused": "Launches"},
            ("joiner:disruption-paused: 'Launches' is not a reason: write true, or one or more"),
        ),
        ({"disruption-paused": "Empty until dawn"}, "joiner:disruption-paused: .*dawn"),
        ({"disruption-paused": "Empty at night"}, "joiner:disruption-paused: 'Empty at night' is not like REASON"),
        ({"drift-pause-percent": "101"}, "joiner:drift-pause-percent is '101': must be 0 to 100"),
        ({"disruption-budgets": "10%"}, "joiner:disruption-budgets: Expected `array`"),
        ({"disruption-budgets": '{"nodes": "1"}'}, "joiner:disruption-budgets: Expected `array`"),
        ({"disruption-budgets": '[{"nodes": "101%"}]'}, r"joiner:disruption-budgets: .*nodes"),
        ({"disruption-budgets": '[{"reasons": ["Expired"]}]'}, "Invalid enum value 'Expired'"),
        ({"disruption-budgets": '[{"schedule": "@weakly", "duration": "1h"}]'}, r"schedule"),
        ({"disruption-budgets": '[{"schedule": "@weekly"}]'}, r"disruption-budgets\[0\]: schedule and duration go"),
        (
            {"disruption-time-zone": "Berlin"},
            "joiner:disruption-time-zone is 'Berlin': must be a time zone like Europe/Berlin",
        ),
        ({"on-destroy": "delete"}, "joiner:on-destroy is 'delete': must be keep or purge or abandon"),
        ({"windows": "yes"}, "joiner:windows is 'yes': must be true or false"),
        ({"permissions-boundary": "mine"}, "joiner:permissions-boundary is 'mine': must be"),
        ({"log-days": "soon"}, "joiner:log-days is 'soon': must be one of 1, 3, 5"),
        ({"journal-days": 1.5}, "joiner:journal-days is '1.5': must be 1 or more"),
        ({"cluster": {"name": "a"}}, "joiner:cluster is {'name': 'a'}: must be text"),
        ({"log-days": "8"}, "joiner:log-days is '8': must be one of 1, 3, 5, 7, 14, 30"),
        ({"journal-days": "0"}, "joiner:journal-days is '0': must be 1 or more"),
        ({"snapshot-days": "0"}, "joiner:snapshot-days is '0': must be 1 or more"),
        (
            {"price-age-alarm-hours": "12"},
            "joiner:price-age-alarm-hours is 12: must be 13 or more, or 0: prices are read",
        ),
        ({"price-age-alarm-hours": "-1"}, "joiner:price-age-alarm-hours is -1"),
        ({"alarm-topic": "pager"}, "joiner:alarm-topic is 'pager': must be the ARN of a standard SNS topic"),
        (
            {"report-topic": "arn:aws:sns:us-east-1:111122223333:a.fifo"},
            "joiner:report-topic is .*must be the ARN of a st",
        ),
        (
            {"region": "eu-central-1", "report-topic": "arn:aws:sns:us-east-1:111122223333:costs"},
            "joiner:report-topic is in us-east-1, but joiner:region is eu-central-1",
        ),
        ({"cluster": "a,a"}, "joiner:cluster is 'a,a': must be .*, without duplicates"),
        ({"cluster": "a,-b"}, "joiner:cluster is 'a,-b'"),
        ({"cluster": "a,b", "kube-endpoint": "https://a"}, "joiner:kube-endpoint applies to one cluster"),
        ({"account": "12"}, "joiner:account is '12': must be 12 digits"),
        ({"region": "Frankfurt"}, "joiner:region is 'Frankfurt': must be a region like eu-central-1"),
        ({"tags": "team"}, "joiner:tags: 'team' is not a tag: use KEY=VALUE"),
        ({"tags": "=platform"}, "joiner:tags: '=platform'"),
        (
            {"tags": "kubernetes.io/cluster/demo=owned"},
            "joiner:tags: 'kubernetes.io/cluster/demo' is reserved: AWS, EKS and",
        ),
        ({"tags": {"karpenter.sh/nodepool": "a"}}, "joiner:tags: 'karpenter.sh/nodepool'"),
        ({"tags": "aws:name=a"}, "joiner:tags: 'aws:name'"),
        ({"memory-mb": "provision=128"}, "joiner:memory-mb: provision is '128': must be 256 to 10240"),
        (
            {"memory-mb": "provison=512"},
            ("joiner:memory-mb: 'provison' is not a function: use NAME=NUMBER,NAME=NUMBER with provision, lifecycle"),
        ),
        ({"memory-mb": "512"}, "joiner:memory-mb: '512' is not a function"),
        ({"every-minutes": "disrupt=5"}, "joiner:every-minutes: disrupt is '5': must be 1 to 4"),
        ({"every-minutes": "interrupt=1"}, "joiner:every-minutes: 'interrupt' is not a function"),
        ({"reserved-concurrency": "provision=0"}, "joiner:reserved-concurrency: provision is '0': must be 3 to 100"),
        ({"log-level": "TRACE"}, "joiner:log-level: 'TRACE': must be DEBUG or INFO"),
        ({"log-level": "provision=LOUD"}, "joiner:log-level: 'provision=LOUD'"),
        ({"log-level": "nobody=DEBUG"}, "joiner:log-level: 'nobody=DEBUG'"),
        ({"deployment": "linear"}, "joiner:deployment is 'linear': must be canary or all-at-once"),
        ({"preference-policy": "Obey"}, "joiner:preference-policy is 'Obey': must be Respect or Ignore"),
        ({"min-values-policy": "Lax"}, "joiner:min-values-policy is 'Lax': must be Strict or BestEffort"),
        ({"kube-endpoint": "10.0.0.1"}, "joiner:kube-endpoint is '10.0.0.1': must be a URL like https://HOST"),
        ({"vm-memory-overhead-percent": "7.5"}, "joiner:vm-memory-overhead-percent is '7.5': must be a fraction of 1"),
        ({"reserved-enis": "one"}, "joiner:reserved-enis is 'one': must be 0 or more"),
        ({"cost-label": "billing team"}, "joiner:cost-label is 'billing team': must be the key of a label"),
        ({"node-roles": "NodeRole,Admin*"}, r"joiner:node-roles has 'Admin\*': must be role names without wild"),
        ({"ip-family": "dual"}, "joiner:ip-family is 'dual': must be ipv4 or ipv6"),
        ({"ip-family": "ipv6", "windows": "true"}, "joiner:windows is true: EKS has no Windows nodes on clusters with"),
        ({"node-role-policies": "ReadOnlyAccess"}, "joiner:node-role-policies has 'ReadOnlyAccess': must be ARNs of"),
        (
            {"node-role-policies": "arn:aws:iam::aws:policy/*"},
            r"joiner:node-role-policies has 'arn:aws:iam::aws:policy/\*'",
        ),
        ({"kms-keys": "alias/nodes"}, "joiner:kms-keys has 'alias/nodes': must be ARNs of KMS keys"),
        ({"kms-keys": "arn:aws:kms:us-east-1:111122223333:key/*"}, r"joiner:kms-keys has '.*key/\*': must be ARNs"),
        (
            {
                "region": "eu-central-1",
                "kms-keys": "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab",
            },
            "joiner:kms-keys has a key in us-east-1, but joiner:region is eu-central-1",
        ),
        ({"ssm-parameters": "/images/*"}, r"joiner:ssm-parameters has '/images/\*': must be parameter names"),
        ({"feature-gates": "NodeOverlay"}, "joiner:feature-gates: .*'NodeOverlay': write Name=true or Name=false"),
        ({"aws-feature-gates": "NodeClassCEL"}, "joiner:aws-feature-gates: .*write Name=true"),
        ({"disable-dry-run": "yes"}, "joiner:disable-dry-run"),
        ({"scheduler-config": "[1]"}, "joiner:scheduler-config is not a map"),
        ({"scheduler-config": "{"}, "joiner:scheduler-config is neither"),
    ],
)
def test_invalid_setting_value_is_rejected(wrong: dict[str, object], error_pattern: str) -> None:
    with pytest.raises(ValueError, match=error_pattern):
        load_options({f"joiner:{name}": value for name, value in wrong.items()}.get)


def test_alarm_and_report_topic_may_be_equal_and_minimum_price_age_is_accepted() -> None:
    topic = "arn:aws-us-gov:sns:us-gov-west-1:111122223333:pager"
    options = {
        "alarm-topic": topic,
        "report-topic": topic,
        "region": "us-gov-west-1",
        "price-age-alarm-hours": "13",
        "price-list": "prices.json",
    }
    assert load_options({f"joiner:{name}": value for name, value in options.items()}.get).report_topic == topic
    assert timedelta(hours=MIN_PRICE_AGE_ALARM_HOURS) == MAX_PRICE_AGE


def test_scheduler_configuration_is_stored_as_json() -> None:
    expected = '{"podTopologySpread":{"defaultConstraints":[]}}'
    spellings: tuple[object, ...] = (
        "podTopologySpread:\n  defaultConstraints: []\n",
        expected,
        {"podTopologySpread": {"defaultConstraints": []}},
    )
    for spelling in spellings:
        assert load_options({"joiner:scheduler-config": spelling}.get).scheduler_config == expected


SPREAD: dict[str, object] = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}


@pytest.mark.parametrize(
    ("constraints", "error_pattern"),
    [
        ([SPREAD], ""),
        ([SPREAD, SPREAD | {"whenUnsatisfiable": "DoNotSchedule", "minDomains": 2}], ""),
        ([SPREAD | {"nodeTaintsPolicy": "Honor", "topologyKey": "k" * 316}], ""),
        ([SPREAD, SPREAD], "zone with ScheduleAnyway is there twice"),
        ([SPREAD | {"maxSkew": 0}], "maxSkew"),
        ([SPREAD | {"topologyKey": ""}], "topologyKey"),
        ([SPREAD | {"topologyKey": "k" * 317}], "topologyKey"),
        ([SPREAD | {"whenUnsatisfiable": "Perhaps"}], "Invalid enum value 'Perhaps'"),
        ([SPREAD | {"labelSelector": {}}], "unknown field `labelSelector`"),
        ([{"maxSkew": 1}], "missing required field"),
    ],
)
def test_invalid_default_topology_spread_constraints_are_rejected_at_synthesis(
    constraints: list[object], error_pattern: str
) -> None:
    config = {"podTopologySpread": {"defaultConstraints": constraints}}
    if not error_pattern:
        assert parse_default_constraints(load_options({"joiner:scheduler-config": config}.get).scheduler_config)
        return
    with pytest.raises(ValueError, match=f"joiner:scheduler-config: .*{error_pattern}"):
        load_options({"joiner:scheduler-config": config}.get)
    with pytest.raises(ValueError, match=r"\w"):
        parse_default_constraints(json.dumps(config))


def test_typed_values_in_cdk_json_are_read_like_command_line_strings() -> None:
    options = {"windows": True, "launch-usd-per-hour": 500, "node-roles": ["a", "b"], "node-cost-usd-per-hour": 0.02}
    stack_options = load_options({f"joiner:{name}": value for name, value in options.items()}.get)
    parsed = (
        stack_options.windows,
        stack_options.launch_usd_per_hour,
        stack_options.node_roles,
        stack_options.node_cost_usd_per_hour,
    )
    assert parsed == (True, 500, ("a", "b"), 0.02)


def test_disruption_budgets_are_accepted_as_list_or_json_text() -> None:
    expected = '[{"nodes":"5%","schedule":"0 9 * * mon-fri","duration":"8h"}]'
    for spelling in (expected, msgspec.json.decode(expected)):
        assert load_options({"joiner:disruption-budgets": spelling}.get).disruption_budgets == expected


def test_longest_cluster_name_keeps_queue_names_within_80_characters() -> None:
    longest = StackOptions(cluster="a" * 60).cluster
    assert len(f"{longest}-joiner-interruption") <= 80
    assert len(f"{longest}-joiner-dead-letters") <= 80


def test_comma_separated_list_may_be_empty_or_contain_spaces() -> None:
    assert (split_list(""), split_list("a"), split_list(" a, b ,")) == ([], ["a"], ["a", "b"])


def test_launch_breaker_limit_must_be_a_non_negative_number() -> None:
    with pytest.raises(ValueError, match="joiner:launch-usd-per-hour is '-1': must be a number, 0 for unlimited"):
        load_options({"joiner:launch-usd-per-hour": "-1"}.get)


def test_settings_are_split_by_cluster() -> None:
    assert [options.cluster for options in StackOptions(cluster="a, b").split_by_cluster()] == ["a", "b"]
    assert StackOptions(cluster="a").split_by_cluster() == (StackOptions(cluster="a"),)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("joiner:clustr", "joiner:clustr is not a setting: did you mean joiner:cluster?"),
        ("joiner:logs-days", "did you mean joiner:log-days?"),
        ("joiner:hints", "joiner:hints is not a setting: did you mean joiner:pod-nominations?"),
        ("joiner:zzz", "joiner:zzz is not a setting: cdk.json lists all settings"),
    ],
)
def test_unknown_setting_is_rejected_with_a_suggestion(key: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        check_option_names(
            ["joiner:cluster", "//joiner:cluster", "@aws-cdk/core:x", key],
            map(format_context_key, StackOptions.__struct_fields__),
        )


def test_tags_are_accepted_as_map_or_text() -> None:
    for spelling in ("team=platform,cost-centre=4=2", {"team": "platform", "cost-centre": "4=2"}):
        stack_options = load_options({"joiner:tags": spelling}.get)
        assert stack_options.tags == {"team": "platform", "cost-centre": "4=2"}


def test_log_level_for_all_functions_can_be_overridden_per_function() -> None:
    levels = parse_log_levels("WARNING, provision=DEBUG")
    assert (levels["provision"], levels["disrupt"], levels["installer"]) == ("DEBUG", "WARNING", "WARNING")
    assert set(parse_log_levels("").values()) == {"INFO"}


def test_invalid_setting_prints_a_one_line_error_without_traceback() -> None:
    environment = {**os.environ, "CDK_CONTEXT_JSON": '{"joiner:clustr": "prod"}'}
    completed = subprocess.run(
        [sys.executable, str(REPOSITORY_ROOT / "app.py")],
        cwd=REPOSITORY_ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 1
    assert completed.stderr.splitlines()[-1] == "joiner: joiner:clustr is not a setting: did you mean joiner:cluster?"
    assert "Traceback" not in completed.stderr
