"""What may be chosen, without a synthesis."""

import json

import msgspec
import pytest

from infra.application import CDK_JSON
from infra.knobs import Knobs, listed


def test_nothing_has_to_be_chosen() -> None:
    assert Knobs.from_context(lambda _: None) == Knobs()


def test_cdk_json_lists_every_knob_with_its_default() -> None:
    context = json.loads(CDK_JSON.read_text())["context"]
    listed_there = {key.removeprefix("joiner:"): value for key, value in context.items() if key.startswith("joiner:")}
    assert listed_there == msgspec.to_builtins(Knobs())


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
        ({"disruption-paused": "Dirft"}, "joiner:disruption-paused is 'Dirft': want true, or Drifted"),
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
        ({"subnets": "subnet-1"}, "joiner:security-groups"),
        ({"security-groups": "sg-1"}, "joiner:subnets"),
        ({"log-days": "soon"}, "log-days"),
        ({"feature-gates": "NodeOverlay"}, "feature gates"),
        ({"aws-feature-gates": "NodeClassCEL"}, "feature gates"),
        ({"disable-dry-run": "yes"}, "joiner:disable-dry-run"),
        ({"scheduler-config": "[1]"}, "joiner:scheduler-config is no map"),
        ({"scheduler-config": "{"}, "joiner:scheduler-config is neither"),
    ],
)
def test_what_cannot_be_deployed_is_refused_at_once(wrong: dict[str, object], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Knobs.from_context({f"joiner:{name}": value for name, value in wrong.items()}.get)


def test_the_schedulers_configuration_is_kept_as_json() -> None:
    wanted = '{"podTopologySpread":{"defaultConstraints":[]}}'
    some: tuple[object, ...] = (
        "podTopologySpread:\n  defaultConstraints: []\n",
        wanted,
        {"podTopologySpread": {"defaultConstraints": []}},
    )
    for written in some:
        assert Knobs.from_context({"joiner:scheduler-config": written}.get).scheduler_config == wanted


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
