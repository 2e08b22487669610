"""Each check of `joiner doctor`: its results for healthy, broken and unreadable facts."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from cli.doctor.checks.all_checks import CHECK_GROUPS, run_checks
from cli.doctor.checks.finding import CheckResult
from cli.facts.model import DoctorFacts, InvocationCounts, QuotaUsage, ReadFailure
from cli.facts.quota_families import QUOTAS, list_node_pool_quotas, select_quotas
from shared.crds.definitions import load_shipped_crds
from shared.model.core.labels import CAPACITY_TYPE
from shared.model.core.metadata import ObjectMeta
from shared.model.core.requirements import build_requirements, parse_requirement
from shared.model.ec2.dry_run import DryRunRefusal
from shared.model.ec2.launch_template import LaunchTemplate
from tests.support.cli.doctor_facts import (
    LONG_AGO,
    NOW,
    ROLE,
    make_claim,
    make_control_plane,
    make_facts,
    make_facts_with_node_class,
    make_facts_with_stack,
    make_function_facts,
    make_instance,
    make_node,
    make_node_class,
    make_node_class_facts,
    make_node_pool,
    make_preflight_facts,
    make_stack_facts,
)
from tests.unit.cli.doctor import doctor_worse_cluster as cluster
from tests.unit.cli.doctor import doctor_worse_installed as installed
from tests.unit.cli.doctor import doctor_worse_nodes as nodes
from tests.unit.cli.doctor.doctor_worse_cluster import make_deployment_facts, make_function_parts

WORSE = (*cluster.WORSE, *nodes.WORSE, *installed.WORSE)
DENIED = ReadFailure(reason="Forbidden: no", is_denied=True)
DEAF = ReadFailure(reason="Unreachable: nobody")


def list_results(doctor_facts: DoctorFacts, check: str) -> list[CheckResult]:
    return [result for _, result in run_checks(doctor_facts) if result.check == check]


def test_healthy_installation_passes_every_check_without_fixes() -> None:
    results = list(run_checks(make_facts()))
    assert {result.level for _, result in results} == {"ok"}
    assert not [result for _, result in results if result.fix]


def test_every_check_reports_a_result_except_special_cases() -> None:
    silent = {check.__name__ for _, checks in CHECK_GROUPS for check in checks if not list(check(make_facts()))}
    assert silent == {
        "check_discovery",
        "check_dynamic_resources",
        "check_gangs",
        "check_group",
        "check_ipv6",
        "check_money_limits",
        "check_price_source",
        "check_scheduler_log",
        "check_zonal_shift",
    }


def test_checks_without_cluster_and_account_report_nothing() -> None:
    assert not list(run_checks(DoctorFacts(now=NOW, kubernetes=None, account=None, shipped_crds=load_shipped_crds())))


def test_checks_before_installation_report_only_ok_or_later() -> None:
    results = list(run_checks(make_preflight_facts()))
    assert {result.level for _, result in results} == {"ok", "later"}
    assert {result.check for _, result in results if result.level == "later"} == {
        "crds",
        "nodeclasses",
        "nodepools",
        "permissions",
        "stack",
    }
    assert all(result.fix for _, result in results if result.level == "later")


@pytest.mark.parametrize(
    ("check", "doctor_facts", "level", "expected_message", "remedy"), WORSE, ids=[f"{one[0]}-{one[3]}" for one in WORSE]
)
def test_failed_check_is_reported_with_a_fix(
    check: str, doctor_facts: DoctorFacts, level: str, expected_message: str, remedy: str
) -> None:
    worse = [result for result in list_results(doctor_facts, check) if result.level == level]
    assert [result for result in worse if expected_message in result.message and remedy in result.fix], list_results(
        doctor_facts, check
    )


@pytest.mark.parametrize("part", [DENIED, DEAF], ids=["denied", "deaf"])
@pytest.mark.parametrize(
    ("check", "of_cluster", "of_account"),
    [
        ("identity", {}, {"caller": ...}),
        ("cluster", {}, {"control_plane": ...}),
        ("access-entries", {}, {"access_entries": ...}),
        ("crds", {"crds": ...}, {}),
        ("permissions", {"has_role_binding": ...}, {}),
        ("permissions", {"missing_permissions": ...}, {}),
        ("autoscalers", {"deployments": ...}, {}),
        ("nodepools", {"node_pools": ...}, {}),
        ("nodeclasses", {"node_classes": ...}, {}),
        ("quotas", {}, {"quotas": {"standard spot": ...}}),
        ("stack", {}, {"stack": ...}),
        ("leaks", {}, {"instances": ...}),
        ("leaks", {"node_claims": ...}, {}),
        ("launch-templates", {}, {"launch_templates": ...}),
    ],
    ids=lambda one: one if isinstance(one, str) else "-".join(one),
)
def test_unreadable_fact_is_reported_as_unseen(
    check: str, of_cluster: dict[str, Any], of_account: dict[str, Any], part: ReadFailure
) -> None:
    assert_unseen(list_results(make_facts(put(of_cluster, part), put(of_account, part)), check), part)


@pytest.mark.parametrize("part", [DENIED, DEAF], ids=["denied", "deaf"])
@pytest.mark.parametrize(
    ("check", "field"),
    [
        ("functions", "functions"),
        ("schedules", "schedules"),
        ("interruption", "queues"),
        ("interruption", "rules"),
        ("catalog", "catalog_times"),
    ],
)
def test_unreadable_installation_part_is_reported_as_unseen(check: str, field: str, part: ReadFailure) -> None:
    assert_unseen(list_results(make_facts_with_stack(**{field: part}), check), part)


@pytest.mark.parametrize("part", [DENIED, DEAF], ids=["denied", "deaf"])
@pytest.mark.parametrize(
    ("check", "field"), [("access-entries", "role_arn"), ("volumes", "snapshots"), ("launch", "refusals")]
)
def test_unreadable_node_class_part_is_reported_as_unseen(check: str, field: str, part: ReadFailure) -> None:
    unseen_results = [
        result for result in list_results(make_facts_with_node_class(**{field: part}), check) if result.level != "ok"
    ]
    assert_unseen(unseen_results, part)


@pytest.mark.parametrize(
    ("check", "field"), [("subnets", "subnets"), ("security-groups", "security_groups"), ("images", "images")]
)
def test_missing_aws_response_for_a_node_class_is_reported_as_unseen(check: str, field: str) -> None:
    none_of_it = replace(make_node_class_facts().answers, **{field: None})
    [first_result] = list_results(
        make_facts_with_node_class(answers=none_of_it, errors=("Forbidden: ec2:Describe: no",)), check
    )
    assert (first_result.level, "Forbidden: ec2:Describe: no" in first_result.message) == ("unseen", True)
    assert "grant yourself" in first_result.fix
    [second_result] = list_results(make_facts_with_node_class(answers=none_of_it), check)
    assert (second_result.level, "AWS did not respond" in second_result.message) == ("unseen", True)


def test_unreadable_discovery_tags_are_reported_as_unseen() -> None:
    assert_unseen(list_results(make_preflight_facts(of_account={"discoverable": DENIED}), "discovery"), DENIED)


def test_unreadable_invocation_counts_are_reported_as_unseen() -> None:
    assert_unseen(
        list_results(
            make_facts_with_stack(functions=(make_function_facts("disrupt", invocation_counts=DENIED),)), "functions"
        ),
        DENIED,
    )


def test_api_server_that_denies_access_is_reported_as_unseen() -> None:
    assert_unseen(list_results(make_facts({"response": DENIED}), "api-server"), DENIED)


def test_unknown_authentication_mode_is_reported_as_unseen() -> None:
    [result] = list_results(
        make_facts(of_account={"control_plane": make_control_plane(authentication_mode="")}), "authentication"
    )
    assert result.level == "unseen"


def test_private_endpoint_check_is_unseen_if_functions_are_unreadable() -> None:
    closed = make_control_plane(is_public=False)
    for stacks in (make_stack_facts(functions=DENIED), DENIED):
        [result] = list_results(make_facts(of_account={"control_plane": closed, "stack": stacks}), "endpoint")
        assert result.level == "unseen"


def test_functions_inside_the_vpc_reach_a_private_endpoint() -> None:
    inside = make_stack_facts(functions=(make_function_facts("disrupt", is_in_vpc=True),))
    [result] = list_results(
        make_facts(of_account={"control_plane": make_control_plane(is_public=False), "stack": inside}), "endpoint"
    )
    assert result.level == "ok"


def test_functions_inside_the_vpc_need_the_private_endpoint_on() -> None:
    inside = make_stack_facts(functions=(make_function_facts("disrupt", is_in_vpc=True),))
    [result] = list_results(
        make_facts(of_account={"control_plane": make_control_plane(is_private=False), "stack": inside}), "endpoint"
    )
    assert (result.level, result.fix.endswith("endpointPrivateAccess=true --name prod")) == ("warn", True)


def test_denied_dry_run_of_the_user_is_unseen_for_the_functions() -> None:
    refused = DryRunRefusal(action="RunInstances", code="UnauthorizedOperation", message="you may not")
    [result] = list_results(make_facts_with_node_class(refusals=(refused,)), "launch")
    assert (result.level, "not that of the functions" in result.message) == ("unseen", True)
    assert not list_results(make_facts_with_node_class(refusals=None), "launch")


@pytest.mark.parametrize("disruption", ["plan", "active"])
def test_disruption_plan_mode_passes_the_mode_check(disruption: str) -> None:
    [result] = list_results(make_facts_with_stack(**make_function_parts(disruption=disruption)), "mode")
    assert (result.level, "keeps them" in result.message) == ("ok", disruption == "plan")


def test_checks_of_a_recent_installation_report_later() -> None:
    silent = (make_function_facts("disrupt", invocation_counts=InvocationCounts(invocations=0, errors=0)),)
    new = make_facts_with_stack(created_at=NOW - timedelta(minutes=3), functions=silent, catalog_times=None)
    for check in ("functions", "catalog"):
        [result] = list_results(new, check)
        assert (result.level, result.fix) == ("later", "run doctor again in 15 minutes")


def test_enabled_scheduler_log_passes_the_check() -> None:
    logging_stack = make_stack_facts(**make_function_parts(reaction="logs"))
    [result] = list_results(
        make_facts(of_account={"control_plane": make_control_plane(log_types=("scheduler",)), "stack": logging_stack}),
        "scheduler-log",
    )
    assert result.level == "ok"


@pytest.mark.parametrize("replicas", [0, 2])
def test_autoscaler_with_zero_replicas_is_ignored(replicas: int) -> None:
    [result] = list_results(make_facts(make_deployment_facts("karpenter", replicas=replicas)), "autoscalers")
    assert (result.level == "ok") is (replicas == 0)


def test_interruption_queue_open_to_all_rules_passes_the_check() -> None:
    open_to_all = '{"Statement": [{"Effect": "Allow", "Principal": {"Service": "events.amazonaws.com"}}]}'
    queue = replace(make_stack_facts().queues[0], policy=open_to_all)  # type: ignore[index]  # the queues are readable
    [result] = list_results(make_facts_with_stack(queues=(queue,)), "interruption")
    assert result.level == "ok"


def test_recently_launched_instance_is_not_a_leak() -> None:
    young = make_instance("i-9", launched_at=NOW - timedelta(minutes=1))
    ending = make_instance("i-8", state="shutting-down")
    instances = (make_instance("i-1"), young, ending)
    going = make_claim("c-3", "i-3", deleted_at=NOW)
    new = make_claim("c-4", "i-4", created_at=NOW)
    claims = (make_claim("c-1", "i-1"), going, new)
    assert {
        result.level for result in list_results(make_facts({"node_claims": claims}, {"instances": instances}), "leaks")
    } == {"ok"}


@pytest.mark.parametrize("limits", [None, make_node_pool().limits])
def test_quota_is_compared_with_usage_and_with_limits_if_all_nodepools_have_limits(limits: Any) -> None:
    pools = (make_node_pool(), make_node_pool(meta=ObjectMeta(name="other"), limits=limits))
    [result] = list_results(
        make_facts({"node_pools": pools}, {"quotas": {"standard spot": QuotaUsage(vcpus=640.0)}}), "quotas"
    )
    assert (result.level == "warn") is (limits is not None)
    [unseen] = list_results(
        make_facts({"node_pools": DENIED, "nodes": DENIED}, {"quotas": {"standard spot": QuotaUsage(vcpus=8.0)}}),
        "quotas",
    )
    assert (unseen.level, "in use" in unseen.message) == ("ok", False)


def test_on_demand_nodepool_does_not_count_against_the_spot_quota() -> None:
    on_demand_pool = make_node_pool(
        requirements=build_requirements((parse_requirement(CAPACITY_TYPE, "In", ("on-demand",)),))
    )
    for kind, level in (("spot", "ok"), ("on-demand", "warn")):
        [result] = list_results(
            make_facts(
                {"node_pools": (on_demand_pool,), "nodes": ()}, {"quotas": {f"standard {kind}": QuotaUsage(vcpus=64)}}
            ),
            "quotas",
        )
        assert result.level == level


def test_windows_nodes_need_an_ec2_windows_access_entry() -> None:
    windows = make_node_class_facts(node_class=make_node_class(ami_family="Windows2022"), role_arn=f"{ROLE}windows")
    [warning] = [
        result
        for result in list_results(make_facts(of_account={"node_classes": (windows,)}), "access-entries")
        if result.level == "warn"
    ]
    assert "--type EC2_WINDOWS" in warning.fix


def test_only_managed_nodes_count_against_a_quota() -> None:
    managed_node = replace(make_node(500, "spot"), meta=ObjectMeta(name="managed"))
    [result] = list_results(
        make_facts(
            {"nodes": (managed_node, make_node(4, "spot"), make_node(8, "on-demand"))},
            {"quotas": {"standard spot": QuotaUsage(vcpus=640.0)}},
        ),
        "quotas",
    )
    assert "4 in use" in result.message


@pytest.mark.parametrize(
    ("label_values", "names"),
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
def test_nodepool_counts_against_quotas_of_its_possible_instance_types(
    label_values: dict[str, str], names: list[str]
) -> None:
    assert [quota.name for quota in list_node_pool_quotas(nodes.make_pool_requiring(**label_values))] == names


def test_standard_quotas_are_selected_without_nodepools() -> None:
    assert [quota.name for quota in select_quotas(())] == ["standard on-demand", "standard spot"]
    assert select_quotas((make_node_pool(),)) == QUOTAS


def test_unreadable_quotas_are_reported_in_one_line() -> None:
    [result] = list_results(make_facts(of_account={"quotas": {"standard spot": DENIED, "P spot": DENIED}}), "quotas")
    assert "standard spot, P spot: cannot be read" in result.message


def test_zero_quota_of_a_special_family_is_ok_if_nodepools_have_other_families() -> None:
    [result] = list_results(make_facts(of_account={"quotas": {"P on-demand": QuotaUsage(vcpus=0)}}), "quotas")
    assert (result.level, result.fix) == ("ok", "")
    assert "NodePools use their other instance families" in result.message


def test_launch_templates_in_use_are_not_leftovers() -> None:
    old = LaunchTemplate(name="joiner/prod/t", image_id="", user_data="", created_at=LONG_AGO)
    for doctor_facts in (
        make_facts(of_account={"launch_templates": (old,)}),
        make_preflight_facts(of_account={"launch_templates": (old,)}),
    ):
        [result] = list_results(doctor_facts, "launch-templates")
        assert result.level == "ok"


def put(parts: dict[str, Any], unseen: ReadFailure) -> dict[str, Any]:
    return {
        key: unseen if value is ... else put(value, unseen) if isinstance(value, dict) else value
        for key, value in parts.items()
    }


def assert_unseen(results: list[CheckResult], part: ReadFailure) -> None:
    assert [result.level for result in results] == ["unseen"]
    assert part.reason in results[0].message
    assert ("grant yourself " in results[0].fix) is part.is_denied
