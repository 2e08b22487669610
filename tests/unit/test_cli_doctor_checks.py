"""Each check of `joiner doctor`: what it says of what is well, of what is wrong, and of what it may not look at."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from cli.checks.every import GROUPS, examine
from cli.checks.facts import Allowed, Called, Facts, Unseen
from cli.checks.families import QUOTAS, quotas_of, wanted
from cli.checks.findings import Finding
from cli.doctor_cluster import shipped
from shared.model.ec2 import LaunchTemplate, Refusal
from shared.model.labels import CAPACITY_TYPE
from shared.model.objects import Meta
from shared.model.requirements import requirement, requirements
from tests.unit import doctor_worse_cluster as cluster
from tests.unit import doctor_worse_installed as installed
from tests.unit import doctor_worse_nodes as nodes
from tests.unit.doctor_facts import (
    LONG_AGO,
    NOW,
    ROLE,
    claim,
    class_facts,
    classed,
    facts,
    function,
    instance,
    node,
    node_class,
    plane,
    pool,
    preflight,
    stack,
    stacked,
)
from tests.unit.doctor_worse_cluster import settings_of, workload

WORSE = (*cluster.WORSE, *nodes.WORSE, *installed.WORSE)
DENIED = Unseen(why="Forbidden: no", is_denied=True)
DEAF = Unseen(why="Unreachable: nobody")


def lines(some: Facts, check: str) -> list[Finding]:
    return [one for _, one in examine(some) if one.check == check]


def test_all_is_well_where_all_is_well() -> None:
    every = list(examine(facts()))
    assert {one.level for _, one in every} == {"ok"}
    assert not [one for _, one in every if one.remedy]


def test_every_check_speaks_where_everything_was_seen_but_those_of_special_cases() -> None:
    silent = {check.__name__ for _, checks in GROUPS for check in checks if not list(check(facts()))}
    assert silent == {"discovery", "scheduler_log"}


def test_nothing_is_said_of_what_nobody_asked_for() -> None:
    assert not list(examine(Facts(now=NOW, kubernetes=None, account=None, shipped=shipped())))


def test_before_an_installation_nothing_is_wrong() -> None:
    every = list(examine(preflight()))
    assert {one.level for _, one in every} == {"ok", "later"}
    assert {one.check for _, one in every if one.level == "later"} == {
        "definitions",
        "nodeclasses",
        "nodepools",
        "rights",
        "stack",
    }
    assert all(one.remedy for _, one in every if one.level == "later")


@pytest.mark.parametrize(
    ("check", "some", "level", "what", "remedy"), WORSE, ids=[f"{one[0]}-{one[3]}" for one in WORSE]
)
def test_what_is_not_well_is_said_with_a_remedy(check: str, some: Facts, level: str, what: str, remedy: str) -> None:
    worse = [one for one in lines(some, check) if one.level == level]
    assert [one for one in worse if what in one.what and remedy in one.remedy], lines(some, check)


@pytest.mark.parametrize("part", [DENIED, DEAF], ids=["denied", "deaf"])
@pytest.mark.parametrize(
    ("check", "of_cluster", "of_account"),
    [
        ("identity", {}, {"caller": ...}),
        ("cluster", {}, {"plane": ...}),
        ("access-entries", {}, {"entries": ...}),
        ("definitions", {"definitions": ...}, {}),
        ("rights", {"is_bound": ...}, {}),
        ("autoscalers", {"workloads": ...}, {}),
        ("nodepools", {"node_pools": ...}, {}),
        ("nodeclasses", {"node_classes": ...}, {}),
        ("quotas", {}, {"quotas": {"standard spot": ...}}),
        ("stack", {}, {"stack": ...}),
        ("leaks", {}, {"instances": ...}),
        ("leaks", {"node_claims": ...}, {}),
        ("launch-templates", {}, {"templates": ...}),
    ],
    ids=lambda one: one if isinstance(one, str) else "-".join(one),
)
def test_what_cannot_be_looked_at_is_neither_well_nor_wrong(
    check: str, of_cluster: dict[str, Any], of_account: dict[str, Any], part: Unseen
) -> None:
    says_unseen(lines(facts(put(of_cluster, part), put(of_account, part)), check), part)


@pytest.mark.parametrize("part", [DENIED, DEAF], ids=["denied", "deaf"])
@pytest.mark.parametrize(
    ("check", "field"),
    [
        ("functions", "functions"),
        ("schedules", "schedules"),
        ("interruption", "queues"),
        ("interruption", "rules"),
        ("catalogue", "catalogue"),
    ],
)
def test_a_part_of_the_installation_that_cannot_be_looked_at_is_said(check: str, field: str, part: Unseen) -> None:
    says_unseen(lines(stacked(**{field: part}), check), part)


@pytest.mark.parametrize("part", [DENIED, DEAF], ids=["denied", "deaf"])
@pytest.mark.parametrize(
    ("check", "field"), [("access-entries", "role_arn"), ("volumes", "snapshots"), ("launch", "refusals")]
)
def test_a_part_of_a_node_class_that_cannot_be_looked_at_is_said(check: str, field: str, part: Unseen) -> None:
    seen = [one for one in lines(classed(**{field: part}), check) if one.level != "ok"]
    says_unseen(seen, part)


@pytest.mark.parametrize(
    ("check", "field"), [("subnets", "subnets"), ("security-groups", "security_groups"), ("images", "images")]
)
def test_what_the_account_did_not_answer_of_a_node_class_is_said(check: str, field: str) -> None:
    none_of_it = replace(class_facts().found, **{field: None})
    [one] = lines(classed(found=none_of_it, told=("Forbidden: ec2:Describe: no",)), check)
    assert (one.level, "Forbidden: ec2:Describe: no" in one.what) == ("unseen", True)
    assert "let yourself have" in one.remedy
    [other] = lines(classed(found=none_of_it), check)
    assert (other.level, "AWS did not answer" in other.what) == ("unseen", True)


def test_a_tag_that_cannot_be_looked_at_is_said() -> None:
    says_unseen(lines(preflight(of_account={"discovered": DENIED}), "discovery"), DENIED)


def test_calls_that_cannot_be_looked_at_are_said() -> None:
    says_unseen(lines(stacked(functions=(function("disrupt", called=DENIED),)), "functions"), DENIED)


def test_an_api_server_that_lets_nobody_in_has_answered() -> None:
    says_unseen(lines(facts({"answer": DENIED}), "api-server"), DENIED)


def test_a_cluster_that_does_not_say_whom_it_lets_in_is_not_well() -> None:
    [one] = lines(facts(of_account={"plane": plane(authentication="")}), "authentication")
    assert one.level == "unseen"


def test_where_the_functions_are_not_seen_nobody_says_that_they_reach_a_private_endpoint() -> None:
    closed = plane(is_public=False)
    for stacks in (stack(functions=DENIED), DENIED):
        [one] = lines(facts(of_account={"plane": closed, "stack": stacks}), "endpoint")
        assert one.level == "unseen"


def test_functions_inside_the_vpc_reach_a_private_endpoint() -> None:
    inside = stack(functions=(function("disrupt", is_in_vpc=True),))
    [one] = lines(facts(of_account={"plane": plane(is_public=False), "stack": inside}), "endpoint")
    assert one.level == "ok"


def test_functions_inside_the_vpc_need_the_private_endpoint_on() -> None:
    inside = stack(functions=(function("disrupt", is_in_vpc=True),))
    [one] = lines(facts(of_account={"plane": plane(is_private=False), "stack": inside}), "endpoint")
    assert (one.level, one.remedy.endswith("endpointPrivateAccess=true --name prod")) == ("warn", True)


def test_what_you_may_not_launch_says_nothing_of_the_functions() -> None:
    refused = Refusal(action="RunInstances", code="UnauthorizedOperation", message="you may not")
    [one] = lines(classed(refusals=(refused,)), "launch")
    assert (one.level, "not the functions'" in one.what) == ("unseen", True)
    assert not lines(classed(refusals=None), "launch")


@pytest.mark.parametrize("disruption", ["plan", "active"])
def test_a_fresh_installation_that_keeps_all_nodes_is_well(disruption: str) -> None:
    [one] = lines(stacked(**settings_of(disruption=disruption)), "mode")
    assert (one.level, "keeps them" in one.what) == ("ok", disruption == "plan")


def test_an_installation_of_minutes_ago_has_not_begun_with_everything() -> None:
    silent = (function("disrupt", called=Called(calls=0, errors=0)),)
    new = stacked(since=NOW - timedelta(minutes=3), functions=silent, catalogue=None)
    for check in ("functions", "catalogue"):
        [one] = lines(new, check)
        assert (one.level, one.remedy) == ("later", "look again in a quarter of an hour")


def test_a_scheduler_log_that_is_on_is_well() -> None:
    told = stack(**settings_of(reaction="logs"))
    [one] = lines(facts(of_account={"plane": plane(logs=("scheduler",)), "stack": told}), "scheduler-log")
    assert one.level == "ok"


@pytest.mark.parametrize("replicas", [0, 2])
def test_an_autoscaler_that_is_scaled_to_zero_is_none(replicas: int) -> None:
    [one] = lines(facts(workload("karpenter", replicas=replicas)), "autoscalers")
    assert (one.level == "ok") is (replicas == 0)


def test_an_interruption_queue_that_lets_all_rules_in_is_well() -> None:
    open_to_all = '{"Statement": [{"Effect": "Allow", "Principal": {"Service": "events.amazonaws.com"}}]}'
    [one] = lines(stacked(queues=(replace(stack().queues[0], policy=open_to_all),)), "interruption")  # type: ignore[index]
    assert one.level == "ok"


def test_a_machine_that_has_just_been_started_is_no_leak() -> None:
    young = instance("i-9", launched_at=NOW - timedelta(minutes=1))
    ending = instance("i-8", state="shutting-down")
    seen = (instance("i-1"), young, ending)
    going = claim("c-3", "i-3", deleted_at=NOW)
    new = claim("c-4", "i-4", created_at=NOW)
    claims = (claim("c-1", "i-1"), going, new)
    assert {one.level for one in lines(facts({"node_claims": claims}, {"instances": seen}), "leaks")} == {"ok"}


@pytest.mark.parametrize("limits", [None, pool().limits])
def test_a_quota_is_compared_with_what_is_in_use_and_with_limits_where_all_pools_have_some(limits: Any) -> None:
    pools = (pool(), pool(meta=Meta(name="other"), limits=limits))
    [one] = lines(facts({"node_pools": pools}, {"quotas": {"standard spot": Allowed(vcpus=640.0)}}), "quotas")
    assert (one.level == "warn") is (limits is not None)
    [unseen] = lines(
        facts({"node_pools": DENIED, "nodes": DENIED}, {"quotas": {"standard spot": Allowed(vcpus=8.0)}}), "quotas"
    )
    assert (unseen.level, "in use" in unseen.what) == ("ok", False)


def test_a_pool_that_may_not_have_spot_does_not_count_against_its_quota() -> None:
    held = pool(requirements=requirements((requirement(CAPACITY_TYPE, "In", ("on-demand",)),)))
    for kind, level in (("spot", "ok"), ("on-demand", "warn")):
        [one] = lines(
            facts({"node_pools": (held,), "nodes": ()}, {"quotas": {f"standard {kind}": Allowed(vcpus=64)}}), "quotas"
        )
        assert one.level == level


def test_nodes_of_windows_have_an_entry_of_their_own_type() -> None:
    windows = class_facts(node_class=node_class(ami_family="Windows2022"), role_arn=f"{ROLE}windows")
    [one] = [
        each for each in lines(facts(of_account={"classes": (windows,)}), "access-entries") if each.level == "warn"
    ]
    assert "--type EC2_WINDOWS" in one.remedy


def test_only_nodes_of_nodepools_count_against_a_quota() -> None:
    other = replace(node(500, "spot"), meta=Meta(name="managed"))
    [one] = lines(
        facts(
            {"nodes": (other, node(4, "spot"), node(8, "on-demand"))},
            {"quotas": {"standard spot": Allowed(vcpus=640.0)}},
        ),
        "quotas",
    )
    assert "4 in use" in one.what


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ({"kind": "spot", "type": "p5.48xlarge"}, ["P5 spot"]),
        ({"kind": "on-demand", "type": "p5.48xlarge"}, ["P on-demand"]),
        ({"kind": "spot", "type": "u-6tb1.56xlarge"}, []),
        ({"kind": "on-demand", "type": "u7i-12tb.224xlarge"}, ["high memory on-demand"]),
        ({"kind": "spot", "instance_family": "im4gn"}, ["standard spot"]),
        ({"kind": "spot", "instance_category": "p"}, ["P spot", "P5 spot"]),
        ({"kind": "on-demand", "instance_category": "p"}, ["P on-demand"]),
        ({"kind": "spot", "instance_family": "g6"}, ["G and VT spot"]),
        ({"kind": "spot", "instance_family": "vt1"}, ["G and VT spot"]),
        ({"kind": "spot", "instance_family": "inf2"}, ["Inf spot"]),
        ({"kind": "spot", "instance_family": "trn1n"}, ["Trn spot"]),
        ({"kind": "spot", "instance_family": "dl1"}, ["DL spot"]),
        ({"kind": "spot", "instance_family": "f1"}, ["F spot"]),
        ({"kind": "spot", "instance_family": "x2iedn"}, ["X spot"]),
        ({"kind": "spot", "instance_gpu_name": "t4"}, ["G and VT spot", "P spot", "P5 spot"]),
        ({"kind": "spot", "instance_accelerator_count": "1"}, ["Inf spot", "Trn spot", "DL spot"]),
        ({"kind": "spot", "instance_family": "1000"}, []),
        ({"kind": "reserved"}, []),
    ],
)
def test_a_nodepool_counts_by_the_quotas_of_what_it_may_come_to(what: dict[str, str], names: list[str]) -> None:
    assert [one.name for one in quotas_of(nodes.asking(**what))] == names


def test_without_nodepools_the_usual_quotas_are_asked() -> None:
    assert [one.name for one in wanted(())] == ["standard on-demand", "standard spot"]
    assert wanted((pool(),)) == QUOTAS


def test_quotas_that_may_not_be_seen_are_one_line() -> None:
    [one] = lines(facts(of_account={"quotas": {"standard spot": DENIED, "P spot": DENIED}}), "quotas")
    assert "standard spot, P spot: could not be looked at" in one.what


def test_a_special_family_of_which_the_account_has_none_is_told_and_well_where_there_is_another() -> None:
    [one] = lines(facts(of_account={"quotas": {"P on-demand": Allowed(vcpus=0)}}), "quotas")
    assert (one.level, one.remedy) == ("ok", "")
    assert "NodePools get what else they allow" in one.what


def test_launch_templates_that_are_in_use_are_no_leftovers() -> None:
    old = LaunchTemplate(name="joiner/prod/t", image_id="", user_data="", created_at=LONG_AGO)
    for some in (facts(of_account={"templates": (old,)}), preflight(of_account={"templates": (old,)})):
        [one] = lines(some, "launch-templates")
        assert one.level == "ok"


def put(parts: dict[str, Any], unseen: Unseen) -> dict[str, Any]:
    return {
        key: unseen if value is ... else put(value, unseen) if isinstance(value, dict) else value
        for key, value in parts.items()
    }


def says_unseen(some: list[Finding], part: Unseen) -> None:
    assert [one.level for one in some] == ["unseen"]
    assert part.why in some[0].what
    assert ("let yourself have " in some[0].remedy) is part.is_denied
