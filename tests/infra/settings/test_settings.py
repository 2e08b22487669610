"""Settings and their validation, without a synthesis."""

import json
import re
from datetime import timedelta

import msgspec
import pytest

from infra.settings.load import load_options
from infra.settings.per_function import parse_log_levels
from infra.settings.settings import StackOptions
from infra.settings.validation import MIN_PRICE_AGE_ALARM_HOURS
from shared.decide.scheduling.constraints.default_topology_spread import parse_default_constraints
from shared.report.metrics.emf import MAX_PRICE_AGE
from shared.settings_text import split_list


def test_all_settings_have_defaults() -> None:
    assert load_options({"cluster": "demo"}) == StackOptions(cluster="demo")


def test_texts_are_converted_to_the_type_of_the_setting() -> None:
    stack_options = load_options({"cluster": "prod", "log-days": "7"})
    assert (stack_options.cluster, stack_options.log_days) == ("prod", 7)


@pytest.mark.parametrize(
    ("wrong", "error_pattern"),
    [
        ({"cluster": ""}, "cluster"),
        ({"cluster": "-a"}, "cluster"),
        ({"cluster": "a" * 61}, "cluster"),
        ({"cluster": "a/b"}, "cluster"),
        ({"mode": "dry"}, "mode"),
        ({"reaction": "soon"}, "reaction is 'soon': must be tick or watch or logs"),
        ({"pod-nominations": "Maybe"}, "pod-nominations is 'Maybe': must be Enabled or Disabled"),
        ({"node-cost-usd-per-hour": "-1"}, "node-cost-usd-per-hour is '-1': must be USD"),
        ({"eviction-price-usd": "-1"}, "eviction-price-usd is '-1': must be USD, like 0.02"),
        ({"workload-cooldown": "soon"}, "workload-cooldown is 'soon': must be a duration like 4h or 90m"),
        ({"workload-cooldown": ""}, "workload-cooldown is '': must be a duration like 4h or 90m"),
        ({"volume-usd-per-gib-month": "cheap"}, "volume-usd-per-gib-month is 'cheap'"),
        ({"disruption-paused": "Dirft"}, "disruption-paused: 'Dirft' is not a reason: did you mean Drifted[?]"),
        (
            {"disruption-paused": "Launches"},
            ("disruption-paused: 'Launches' is not a reason: write true, or one or more"),
        ),
        ({"disruption-paused": "Empty until dawn"}, "disruption-paused: .*dawn"),
        ({"disruption-paused": "Empty at night"}, "disruption-paused: 'Empty at night' is not like REASON"),
        ({"drift-pause-percent": "101"}, "drift-pause-percent is '101': must be 0 to 100"),
        ({"disruption-budgets": "10%"}, "disruption-budgets: Expected `array`"),
        ({"disruption-budgets": '{"nodes": "1"}'}, "disruption-budgets: Expected `array`"),
        ({"disruption-budgets": '[{"nodes": "101%"}]'}, r"disruption-budgets: .*nodes"),
        ({"disruption-budgets": '[{"reasons": ["Expired"]}]'}, "Invalid enum value 'Expired'"),
        ({"disruption-budgets": '[{"schedule": "@weakly", "duration": "1h"}]'}, r"schedule"),
        ({"disruption-budgets": '[{"schedule": "@weekly"}]'}, r"disruption-budgets\[0\]: schedule and duration go"),
        (
            {"disruption-time-zone": "Berlin"},
            "disruption-time-zone is 'Berlin': must be a time zone like Europe/Berlin",
        ),
        ({"on-destroy": "delete"}, "on-destroy is 'delete': must be keep or purge or abandon"),
        ({"windows": "yes"}, "windows is 'yes': must be true or false"),
        ({"permissions-boundary": "mine"}, "permissions-boundary is 'mine': must be"),
        ({"log-days": "soon"}, "log-days is 'soon': must be one of 1, 3, 5"),
        ({"journal-days": 1.5}, "journal-days is '1.5': must be 1 or more"),
        ({"cluster": {"name": "a"}}, "cluster is {'name': 'a'}: must be text"),
        ({"log-days": "8"}, "log-days is '8': must be one of 1, 3, 5, 7, 14, 30"),
        ({"journal-days": "0"}, "journal-days is '0': must be 1 or more"),
        ({"snapshot-days": "0"}, "snapshot-days is '0': must be 1 or more"),
        (
            {"price-age-alarm-hours": "12"},
            "price-age-alarm-hours is 12: must be 13 or more, or 0: prices are read",
        ),
        ({"price-age-alarm-hours": "-1"}, "price-age-alarm-hours is -1"),
        ({"alarm-topic": "pager"}, "alarm-topic is 'pager': must be the ARN of a standard SNS topic"),
        (
            {"report-topic": "arn:aws:sns:us-east-1:111122223333:a.fifo"},
            "report-topic is .*must be the ARN of a st",
        ),
        (
            {"region": "eu-central-1", "report-topic": "arn:aws:sns:us-east-1:111122223333:costs"},
            "report-topic is in us-east-1, but region is eu-central-1",
        ),
        (
            {"network": "isolated", "commitments": "account"},
            "commitments is account, but network is isolated, which has no endpoint for Savings Plans: set",
        ),
        ({"group": "g"}, "group without group-limit-usd-per-hour and group-table: set all three, or none"),
        ({"group": "a b"}, "group is 'a b': must be a name of at most 63 letters"),
        ({"group-table": "groups"}, "group-table is 'groups': must be the ARN of a DynamoDB table"),
        ({"cluster": "a,-b"}, "cluster is 'a,-b'"),
        ({"account": "12"}, "account is '12': must be 12 digits"),
        ({"region": "Frankfurt"}, "region is 'Frankfurt': must be a region like eu-central-1"),
        ({"tags": "team"}, "tags: 'team' is not a tag: use KEY=VALUE"),
        ({"tags": "=platform"}, "tags: '=platform'"),
        (
            {"tags": "kubernetes.io/cluster/demo=owned"},
            "tags: 'kubernetes.io/cluster/demo' is reserved: AWS, EKS and",
        ),
        ({"tags": {"karpenter.sh/nodepool": "a"}}, "tags: 'karpenter.sh/nodepool'"),
        ({"tags": "aws:name=a"}, "tags: 'aws:name'"),
        ({"memory-mb": "provision=128"}, "memory-mb: provision is '128': must be 256 to 10240"),
        (
            {"memory-mb": "provison=512"},
            ("memory-mb: 'provison' is not a function: use NAME=NUMBER,NAME=NUMBER with provision, lifecycle"),
        ),
        ({"memory-mb": "512"}, "memory-mb: '512' is not a function"),
        ({"every-minutes": "disrupt=5"}, "every-minutes: disrupt is '5': must be 1 to 4"),
        ({"every-minutes": "interrupt=1"}, "every-minutes: 'interrupt' is not a function"),
        ({"reserved-concurrency": "provision=0"}, "reserved-concurrency: provision is '0': must be 3 to 100"),
        ({"log-level": "TRACE"}, "log-level: 'TRACE': must be DEBUG or INFO"),
        ({"log-level": "provision=LOUD"}, "log-level: 'provision=LOUD'"),
        ({"log-level": "nobody=DEBUG"}, "log-level: 'nobody=DEBUG'"),
        ({"deployment": "linear"}, "deployment is 'linear': must be canary or all-at-once"),
        ({"preference-policy": "Obey"}, "preference-policy is 'Obey': must be Respect or Ignore"),
        ({"min-values-policy": "Lax"}, "min-values-policy is 'Lax': must be Strict or BestEffort"),
        ({"kube-endpoint": "10.0.0.1"}, "kube-endpoint is '10.0.0.1': must be a URL like https://HOST"),
        ({"vm-memory-overhead-percent": "7.5"}, "vm-memory-overhead-percent is '7.5': must be a fraction of 1"),
        ({"reserved-enis": "one"}, "reserved-enis is 'one': must be 0 or more"),
        ({"cost-label": "billing team"}, "cost-label is 'billing team': must be the key of a label"),
        ({"node-roles": "NodeRole,Admin*"}, r"node-roles has 'Admin\*': must be role names without wild"),
        ({"ip-family": "dual"}, "ip-family is 'dual': must be ipv4 or ipv6"),
        ({"ip-family": "ipv6", "windows": "true"}, "windows is true: EKS has no Windows nodes on clusters with"),
        ({"node-role-policies": "ReadOnlyAccess"}, "node-role-policies has 'ReadOnlyAccess': must be ARNs of"),
        (
            {"node-role-policies": "arn:aws:iam::aws:policy/*"},
            r"node-role-policies has 'arn:aws:iam::aws:policy/\*'",
        ),
        ({"kms-keys": "alias/nodes"}, "kms-keys has 'alias/nodes': must be ARNs of KMS keys"),
        ({"kms-keys": "arn:aws:kms:us-east-1:111122223333:key/*"}, r"kms-keys has '.*key/\*': must be ARNs"),
        (
            {
                "region": "eu-central-1",
                "kms-keys": "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab",
            },
            "kms-keys has a key in us-east-1, but region is eu-central-1",
        ),
        ({"ssm-parameters": "/images/*"}, r"ssm-parameters has '/images/\*': must be parameter names"),
        ({"feature-gates": "NodeOverlay"}, "feature-gates: .*'NodeOverlay': write Name=true or Name=false"),
        ({"aws-feature-gates": "NodeClassCEL"}, "aws-feature-gates: .*write Name=true"),
        ({"disable-dry-run": "yes"}, "disable-dry-run"),
        ({"scheduler-config": "[1]"}, "scheduler-config is not a map"),
        ({"scheduler-config": "{"}, "scheduler-config is neither"),
    ],
)
def test_invalid_setting_value_is_rejected(wrong: dict[str, object], error_pattern: str) -> None:
    with pytest.raises(ValueError, match=error_pattern):
        load_options({"cluster": "demo", **wrong})


def test_alarm_and_report_topic_may_be_equal_and_minimum_price_age_is_accepted() -> None:
    topic = "arn:aws-us-gov:sns:us-gov-west-1:111122223333:pager"
    options = {
        "alarm-topic": topic,
        "report-topic": topic,
        "region": "us-gov-west-1",
        "price-age-alarm-hours": "13",
        "price-list": "prices.json",
    }
    assert load_options({"cluster": "demo", **options}).report_topic == topic
    assert timedelta(hours=MIN_PRICE_AGE_ALARM_HOURS) == MAX_PRICE_AGE


def test_scheduler_configuration_is_stored_as_json() -> None:
    expected = '{"podTopologySpread":{"defaultConstraints":[]}}'
    spellings: tuple[object, ...] = (
        "podTopologySpread:\n  defaultConstraints: []\n",
        expected,
        {"podTopologySpread": {"defaultConstraints": []}},
    )
    for spelling in spellings:
        assert load_options({"cluster": "demo", "scheduler-config": spelling}).scheduler_config == expected


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
        assert parse_default_constraints(load_options({"cluster": "demo", "scheduler-config": config}).scheduler_config)
        return
    with pytest.raises(ValueError, match=f"scheduler-config: .*{error_pattern}"):
        load_options({"cluster": "demo", "scheduler-config": config})
    with pytest.raises(ValueError, match=r"\w"):
        parse_default_constraints(json.dumps(config))


def test_typed_values_are_read_like_texts() -> None:
    options = {"windows": True, "launch-usd-per-hour": 500, "node-roles": ["a", "b"], "node-cost-usd-per-hour": 0.02}
    stack_options = load_options({"cluster": "demo", **options})
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
        assert load_options({"cluster": "demo", "disruption-budgets": spelling}).disruption_budgets == expected


def test_longest_cluster_name_keeps_queue_names_within_80_characters() -> None:
    longest = StackOptions(cluster="a" * 60).cluster
    assert len(f"{longest}-joiner-interruption") <= 80
    assert len(f"{longest}-joiner-dead-letters") <= 80


def test_comma_separated_list_may_be_empty_or_contain_spaces() -> None:
    assert (split_list(""), split_list("a"), split_list(" a, b ,")) == ([], ["a"], ["a", "b"])


def test_launch_breaker_limit_must_be_a_non_negative_number() -> None:
    with pytest.raises(ValueError, match="launch-usd-per-hour is '-1': must be a number, 0 for unlimited"):
        load_options({"cluster": "demo", "launch-usd-per-hour": "-1"})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("clustr", "clustr is not a setting: did you mean cluster?"),
        ("logs-days", "did you mean log-days?"),
        ("log_days", "did you mean log-days?"),
        ("joiner:mode", "joiner:mode is not a setting: write mode"),
        ("joiner:logs-days", "did you mean log-days?"),
        ("hints", "hints is not a setting: did you mean pod-nominations?"),
        ("zzz", "zzz is not a setting: docs/reference/settings.md lists all settings"),
    ],
)
def test_unknown_setting_is_rejected_with_a_suggestion(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        load_options({"cluster": "demo", name: "x"})


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("feature-gates", {"NodeRepair": "true"}, "NodeRepair=true"),
        ("log-level", {"provision": "DEBUG"}, "provision=DEBUG"),
        ("disruption-paused", ["Drifted", "Empty"], "Drifted,Empty"),
        ("memory-mb", {"provision": 3008}, "provision=3008"),
    ],
)
def test_lists_and_maps_are_read_like_their_text(name: str, value: object, text: str) -> None:
    assert load_options({"cluster": "a", name: value}) == load_options({"cluster": "a", name: text})


def test_tags_are_accepted_as_map_or_text() -> None:
    for spelling in ("team=platform,cost-centre=4=2", {"team": "platform", "cost-centre": "4=2"}):
        stack_options = load_options({"cluster": "demo", "tags": spelling})
        assert stack_options.tags == {"team": "platform", "cost-centre": "4=2"}


def test_log_level_for_all_functions_can_be_overridden_per_function() -> None:
    levels = parse_log_levels("WARNING, provision=DEBUG")
    assert (levels["provision"], levels["disrupt"], levels["installer"]) == ("DEBUG", "WARNING", "WARNING")
    assert set(parse_log_levels("").values()) == {"INFO"}
