"""What may be chosen, without a synthesis."""

import json
import os
import re
import subprocess
import sys
from datetime import timedelta
from itertools import pairwise

import msgspec
import pytest

from infra.application import CDK_JSON
from infra.by_function import levels
from infra.checks import PRICES_OLD_HOURS
from infra.knobs import Knobs
from infra.written import check_names, listed, tags_from
from shared.report.metrics import PRICES_OLD
from shared.scheduling.spread import default_constraints
from sim.lambdas.template import ROOT


def test_nothing_has_to_be_chosen() -> None:
    assert Knobs.from_context(lambda _: None) == Knobs()


def test_cdk_json_lists_every_knob_with_its_default() -> None:
    context = json.loads(CDK_JSON.read_text())["context"]
    listed_there = {key.removeprefix("joiner:"): value for key, value in context.items() if key.startswith("joiner:")}
    assert listed_there == msgspec.to_builtins(Knobs())


def test_cdk_json_says_what_each_knob_does_on_the_line_before_it() -> None:
    keys = list(json.loads(CDK_JSON.read_text())["context"].items())
    for (comment, says), (key, _) in pairwise(keys):
        if key.startswith("joiner:"):
            assert comment == f"//{key}"
            assert len(str(says)) > 10, key


def test_the_command_line_knows_only_strings() -> None:
    knobs = Knobs.from_context({"joiner:cluster": "prod", "joiner:log-days": "7"}.get)
    assert (knobs.cluster, knobs.log_days) == ("prod", 7)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"cluster": ""}, "joiner:cluster"),
        ({"cluster": "-a"}, "joiner:cluster"),
        ({"cluster": "a" * 61}, "joiner:cluster"),
        ({"cluster": "a/b"}, "joiner:cluster"),
        ({"mode": "dry"}, "joiner:mode"),
        ({"reaction": "soon"}, "joiner:reaction is 'soon': want tick or watch or logs"),
        ({"hints": "Maybe"}, "joiner:hints is 'Maybe': want Given or Withheld"),
        ({"node-cost-usd-per-hour": "-1"}, "joiner:node-cost-usd-per-hour is '-1': want dollars"),
        ({"volume-usd-per-gib-month": "cheap"}, "joiner:volume-usd-per-gib-month is 'cheap'"),
        ({"disruption-paused": "Dirft"}, "joiner:disruption-paused: 'Dirft' is no reason: did you mean Drifted[?]"),
        ({"disruption-paused": "Launches"}, "joiner:disruption-paused: 'Launches' is no reason: write true, or some"),
        ({"disruption-paused": "Empty until dawn"}, "joiner:disruption-paused: .*dawn"),
        ({"disruption-paused": "Empty at night"}, "joiner:disruption-paused: 'Empty at night' is not like REASON"),
        ({"drift-pause-percent": "101"}, "joiner:drift-pause-percent is '101': want 0 to 100"),
        ({"disruption-budgets": "10%"}, "joiner:disruption-budgets: Expected `array`"),
        ({"disruption-budgets": '{"nodes": "1"}'}, "joiner:disruption-budgets: Expected `array`"),
        ({"disruption-budgets": '[{"nodes": "101%"}]'}, r"joiner:disruption-budgets: .*nodes"),
        ({"disruption-budgets": '[{"reasons": ["Expired"]}]'}, "Invalid enum value 'Expired'"),
        ({"disruption-budgets": '[{"schedule": "@weakly", "duration": "1h"}]'}, r"schedule"),
        ({"disruption-budgets": '[{"schedule": "@weekly"}]'}, r"disruption-budgets\[0\]: schedule and duration go"),
        ({"disruption-time-zone": "Berlin"}, "joiner:disruption-time-zone is 'Berlin': want one like Europe/Berlin"),
        ({"on-destroy": "delete"}, "joiner:on-destroy is 'delete': want keep or purge or abandon"),
        ({"windows": "yes"}, "joiner:windows is 'yes': want true or false"),
        ({"permissions-boundary": "mine"}, "joiner:permissions-boundary is 'mine': want"),
        ({"log-days": "soon"}, "joiner:log-days is 'soon': want a whole number"),
        ({"journal-days": 1.5}, "joiner:journal-days is '1.5': want a whole number"),
        ({"cluster": {"name": "a"}}, "joiner:cluster is {'name': 'a'}: want text"),
        ({"log-days": "8"}, "joiner:log-days is 8: want one of 1, 3, 5, 7, 14, 30"),
        ({"journal-days": "0"}, "joiner:journal-days is 0: want 1 or more"),
        ({"snapshot-days": "0"}, "joiner:snapshot-days is 0: want 1 or more"),
        ({"price-age-alarm-hours": "12"}, "joiner:price-age-alarm-hours is 12: want 13 or more, or 0: prices are ask"),
        ({"price-age-alarm-hours": "-1"}, "joiner:price-age-alarm-hours is -1"),
        ({"alarm-topic": "pager"}, "joiner:alarm-topic is 'pager': want the ARN of a standard SNS topic"),
        (
            {"report-topic": "arn:aws:sns:us-east-1:111122223333:a.fifo"},
            "joiner:report-topic is .*want the ARN of a st",
        ),
        (
            {"region": "eu-central-1", "report-topic": "arn:aws:sns:us-east-1:111122223333:costs"},
            "joiner:report-topic is in us-east-1, and joiner:region is eu-central-1",
        ),
        ({"cluster": "a,a"}, "joiner:cluster is 'a,a': want .*, each once"),
        ({"cluster": "a,-b"}, "joiner:cluster is 'a,-b'"),
        ({"cluster": "a,b", "kube-endpoint": "https://a"}, "joiner:kube-endpoint is that of one cluster"),
        ({"account": "12"}, "joiner:account is '12': want twelve digits"),
        ({"region": "Frankfurt"}, "joiner:region is 'Frankfurt': want one like eu-central-1"),
        ({"tags": "team"}, "joiner:tags has 'team': want KEY=VALUE"),
        ({"tags": "=platform"}, "joiner:tags has '=platform'"),
        ({"tags": "kubernetes.io/cluster/demo=owned"}, "joiner:tags has 'kubernetes.io/cluster/demo': AWS, EKS and"),
        ({"tags": {"karpenter.sh/nodepool": "a"}}, "joiner:tags has 'karpenter.sh/nodepool'"),
        ({"tags": "aws:name=a"}, "joiner:tags has 'aws:name'"),
        ({"memory-mb": "provision=128"}, "joiner:memory-mb: provision is '128': want 256 to 10240"),
        ({"memory-mb": "provison=512"}, "joiner:memory-mb: 'provison' is none of provision, lifecycle"),
        ({"memory-mb": "512"}, "joiner:memory-mb: '512' is none of"),
        ({"every-minutes": "disrupt=5"}, "joiner:every-minutes: disrupt is '5': want 1 to 4"),
        ({"every-minutes": "interrupt=1"}, "joiner:every-minutes: 'interrupt' is none of"),
        ({"reserved-concurrency": "provision=0"}, "joiner:reserved-concurrency: provision is '0': want 3 to 100"),
        ({"log-level": "TRACE"}, "joiner:log-level has TRACE=: want DEBUG or INFO"),
        ({"log-level": "provision=LOUD"}, "joiner:log-level has provision=LOUD"),
        ({"log-level": "nobody=DEBUG"}, "joiner:log-level has nobody=DEBUG"),
        ({"deployment": "linear"}, "joiner:deployment is 'linear': want canary or all-at-once"),
        ({"preference-policy": "Obey"}, "joiner:preference-policy is 'Obey': want Respect or Ignore"),
        ({"min-values-policy": "Lax"}, "joiner:min-values-policy is 'Lax': want Strict or BestEffort"),
        ({"kube-endpoint": "10.0.0.1"}, "joiner:kube-endpoint is '10.0.0.1': want a URL like https://HOST"),
        ({"vm-memory-overhead-percent": "7.5"}, "joiner:vm-memory-overhead-percent is '7.5': want a part of one"),
        ({"reserved-enis": "one"}, "joiner:reserved-enis is 'one': want a number"),
        ({"cost-label": "billing team"}, "joiner:cost-label is 'billing team': want the key of a label"),
        ({"node-roles": "NodeRole,Admin*"}, r"joiner:node-roles has 'Admin\*': want names of roles, without wild"),
        ({"ssm-parameters": "/images/*"}, r"joiner:ssm-parameters has '/images/\*': want names of parameters"),
        ({"feature-gates": "NodeOverlay"}, "joiner:feature-gates: .*'NodeOverlay': write Name=true or Name=false"),
        ({"aws-feature-gates": "NodeClassCEL"}, "joiner:aws-feature-gates: .*write Name=true"),
        ({"disable-dry-run": "yes"}, "joiner:disable-dry-run"),
        ({"scheduler-config": "[1]"}, "joiner:scheduler-config is no map"),
        ({"scheduler-config": "{"}, "joiner:scheduler-config is neither"),
    ],
)
def test_what_cannot_be_deployed_is_refused_at_once(wrong: dict[str, object], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Knobs.from_context({f"joiner:{name}": value for name, value in wrong.items()}.get)


def test_topics_may_be_one_and_the_youngest_price_alarm_rings() -> None:
    topic = "arn:aws-us-gov:sns:us-gov-west-1:111122223333:pager"
    some = {"alarm-topic": topic, "report-topic": topic, "region": "us-gov-west-1", "price-age-alarm-hours": "13"}
    assert Knobs.from_context({f"joiner:{name}": value for name, value in some.items()}.get).report_topic == topic
    assert timedelta(hours=PRICES_OLD_HOURS) == PRICES_OLD


def test_the_schedulers_configuration_is_kept_as_json() -> None:
    wanted = '{"podTopologySpread":{"defaultConstraints":[]}}'
    some: tuple[object, ...] = (
        "podTopologySpread:\n  defaultConstraints: []\n",
        wanted,
        {"podTopologySpread": {"defaultConstraints": []}},
    )
    for written in some:
        assert Knobs.from_context({"joiner:scheduler-config": written}.get).scheduler_config == wanted


SPREAD: dict[str, object] = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}


@pytest.mark.parametrize(
    ("constraints", "said"),
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
def test_spreading_is_refused_beforehand_if_functions_could_not_read_it(constraints: list[object], said: str) -> None:
    config = {"podTopologySpread": {"defaultConstraints": constraints}}
    if not said:
        assert default_constraints(Knobs.from_context({"joiner:scheduler-config": config}.get).scheduler_config)
        return
    with pytest.raises(ValueError, match=f"joiner:scheduler-config: .*{said}"):
        Knobs.from_context({"joiner:scheduler-config": config}.get)
    with pytest.raises(ValueError, match=r"\w"):
        default_constraints(json.dumps(config))


def test_what_cdk_json_has_as_a_number_a_truth_or_a_list_is_read_as_the_command_line_has_it() -> None:
    written = {"windows": True, "launch-usd-per-hour": 500, "node-roles": ["a", "b"], "node-cost-usd-per-hour": 0.02}
    knobs = Knobs.from_context({f"joiner:{name}": value for name, value in written.items()}.get)
    found = (knobs.windows, knobs.launch_usd_per_hour, knobs.node_roles, knobs.node_cost_usd_per_hour)
    assert found == ("true", "500", "a,b", "0.02")


def test_budgets_may_be_a_list_or_its_text() -> None:
    wanted = '[{"nodes":"5%","schedule":"0 9 * * mon-fri","duration":"8h"}]'
    for written in (wanted, msgspec.json.decode(wanted)):
        assert Knobs.from_context({"joiner:disruption-budgets": written}.get).disruption_budgets == wanted


def test_the_longest_cluster_name_leaves_room_for_every_queue() -> None:
    longest = Knobs(cluster="a" * 60).cluster
    assert len(f"{longest}-joiner-interruption") <= 80
    assert len(f"{longest}-joiner-dead-letters") <= 80


def test_a_list_may_be_empty_or_untidy() -> None:
    assert (listed(""), listed("a"), listed(" a, b ,")) == ([], ["a"], ["a", "b"])


def test_a_fuse_of_the_launch_breaker_is_a_whole_number() -> None:
    with pytest.raises(ValueError, match="joiner:launch-usd-per-hour is '-1': want a number, 0 for any"):
        Knobs(launch_usd_per_hour="-1")


def test_of_several_clusters_each_has_knobs_of_its_own() -> None:
    assert [one.cluster for one in Knobs(cluster="a, b").of_each_cluster()] == ["a", "b"]
    assert Knobs(cluster="a").of_each_cluster() == (Knobs(cluster="a"),)


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("joiner:clustr", "joiner:clustr is no knob: did you mean joiner:cluster?"),
        ("joiner:logs-days", "did you mean joiner:log-days?"),
        ("joiner:zzz", "joiner:zzz is no knob: cdk.json has them all"),
    ],
)
def test_a_knob_that_there_is_not_is_refused_with_what_was_meant(key: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        check_names(["joiner:cluster", "//joiner:cluster", "@aws-cdk/core:x", key], Knobs.__struct_encode_fields__)


def test_tags_may_be_a_map_or_its_text() -> None:
    for written in ("team=platform,cost-centre=4=2", {"team": "platform", "cost-centre": "4=2"}):
        knobs = Knobs.from_context({"joiner:tags": written}.get)
        assert tags_from(knobs.tags) == {"team": "platform", "cost-centre": "4=2"}


def test_what_is_said_of_all_functions_may_be_said_otherwise_of_one() -> None:
    said = levels("log-level", "WARNING, provision=DEBUG")
    assert (said["provision"], said["disrupt"], said["installer"]) == ("DEBUG", "WARNING", "WARNING")
    assert set(levels("log-level", "").values()) == {"INFO"}


def test_who_deploys_is_told_in_one_line() -> None:
    environment = {**os.environ, "CDK_CONTEXT_JSON": '{"joiner:clustr": "prod"}'}
    done = subprocess.run(
        [sys.executable, str(ROOT / "app.py")], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "joiner: joiner:clustr is no knob: did you mean joiner:cluster?"
    assert "Traceback" not in done.stderr
