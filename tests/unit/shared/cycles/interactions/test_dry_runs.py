"""Dry runs of launches: which function runs them, how often, and which function is woken."""

import json
from datetime import timedelta
from typing import Any, Literal, cast

import msgspec
import pytest

from shared.cycles.interactions.account_lookup import query_account
from shared.cycles.interactions.dry_runs import DRY_RUN_INTERVAL, REFUSED_DRY_RUN_INTERVAL, run_dry_runs
from shared.decide.node_class.status import plan_status_patches
from shared.errors import Throttled
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Condition, Problem
from shared.model.decisions.action import FollowUp, PatchStatus
from shared.model.ec2.account import CapacityReservation, PlacementGroup, SelectorTerm
from shared.model.karpenter.node_class import EC2NodeClass
from shared.ports.world import World
from shared.settings import Settings
from shared.store.dry_runs import DRY_RUN_KIND
from shared.take.kubernetes.status_after_write import apply_status_patches
from sim.cloud.cloud import Cloud
from sim.cloud.in_process_aws import CloudEc2, CloudEks, CloudParameters, CloudPricing
from sim.time.virtual_clock import Clock
from sim.world.memory_ports import MemoryTable
from tests.support.launch_cases import make_node_class

TAGS = (SelectorTerm(tags=(("karpenter.sh/discovery", "joiner"),)),)


class Stage:
    """A cloud, a world in front of it, and one node class."""

    def __init__(self, **fields: Any) -> None:
        """Start without dry runs; *fields* override those of the node class."""
        self.cloud = Cloud(Clock())
        unused_port: Any = None
        self.world = World(
            settings=Settings(cluster_name="joiner", region="us-east-1", instance_profile="nodes"),
            kube=unused_port,
            ec2=CloudEc2(self.cloud),
            parameters=CloudParameters(self.cloud),
            prices=CloudPricing(self.cloud),
            eks=CloudEks(self.cloud),
            mailbox=unused_port,
            table=MemoryTable(),
            bucket=unused_port,
            clock=self.cloud.clock.get_time,
            emit=unused_port,
        )
        defaults: dict[str, Any] = {
            "subnet_selectors": TAGS,
            "security_group_selectors": TAGS,
            "image_selectors": (SelectorTerm(alias="al2023@latest"),),
            "role": "nodes",
            "conditions": (),
        }
        self.node_class = make_node_class(**(defaults | fields))
        self.calls = 0
        self.problems: list[Problem] = []
        admit = self.cloud.rate_limiter.check_call

        def count_and_check_rate_limit(action: str) -> None:
            self.calls += action == "RunInstances"
            admit(action)

        self.cloud.rate_limiter.check_call = count_and_check_rate_limit  # type: ignore[method-assign]

    def resolve_node_class(self) -> EC2NodeClass:
        """Do what `catalog` does, and keep the node class with its new status."""
        cluster = ClusterSnapshot(taken_at=self.cloud.clock.get_time(), node_classes=(self.node_class,))
        actions = plan_status_patches(
            cluster, query_account(self.world, cluster.node_classes).node_class_answers, "nodes"
        )
        [self.node_class] = apply_status_patches(cluster, actions).node_classes
        return self.node_class

    def run_and_list_woken(self) -> list[str]:
        """Do what `provision` does, and return the names of the functions that it wakes."""
        facts = self.cloud.facts
        cluster = ClusterSnapshot(taken_at=self.cloud.clock.get_time(), node_classes=(self.node_class,), facts=facts)
        return [cast("FollowUp", action).function for action in run_dry_runs(cluster, self.world, self.problems)]

    def get_condition(self, kind: str) -> tuple[str, str, str]:
        [matching_condition] = [condition for condition in self.node_class.conditions if condition.type == kind]
        return matching_condition.status, matching_condition.reason, matching_condition.message


def test_node_class_is_ready_before_and_after_a_successful_dry_run() -> None:
    stage = Stage()
    assert stage.resolve_node_class().is_ready()
    assert stage.run_and_list_woken() == []
    assert stage.resolve_node_class().is_ready()
    assert stage.calls == 1


def test_node_class_is_not_ready_if_a_dry_run_lacks_a_permission() -> None:
    stage = Stage()
    stage.resolve_node_class()
    stage.cloud.dry_runs.deny("CreateFleet")
    assert stage.run_and_list_woken() == ["catalog"]
    assert not stage.resolve_node_class().is_ready()
    status, reason, message = stage.get_condition("ValidationSucceeded")
    assert (status, reason) == ("False", "CreateFleetAuthCheckFailed")
    assert "ec2:CreateFleet" in message


def test_granted_permission_is_noticed_after_the_retry_interval() -> None:
    stage = Stage()
    stage.resolve_node_class()
    stage.cloud.dry_runs.deny("CreateFleet")
    stage.run_and_list_woken()
    stage.resolve_node_class()
    stage.cloud.dry_runs.allow("CreateFleet")
    assert stage.run_and_list_woken() == []
    assert not stage.resolve_node_class().is_ready()
    stage.cloud.clock.advance(REFUSED_DRY_RUN_INTERVAL)
    assert stage.run_and_list_woken() == ["catalog"]
    assert stage.resolve_node_class().is_ready()


def test_dry_run_is_repeated_only_after_its_interval() -> None:
    stage = Stage()
    stage.resolve_node_class()
    for _ in range(5):
        stage.run_and_list_woken()
        stage.cloud.clock.advance(timedelta(minutes=1))
    assert stage.calls == 1
    stage.cloud.clock.advance(DRY_RUN_INTERVAL)
    stage.run_and_list_woken()
    assert stage.calls == 2


def test_changed_node_class_gets_a_dry_run_immediately() -> None:
    stage = Stage()
    stage.resolve_node_class()
    stage.run_and_list_woken()
    stage.node_class = msgspec.structs.replace(stage.node_class, spec_hash="other")
    stage.run_and_list_woken()
    assert stage.calls == 2


def test_throttled_dry_run_is_reported_and_not_stored() -> None:
    stage = Stage()
    stage.resolve_node_class()
    stage.cloud.rate_limiter.reject_next_calls("CreateLaunchTemplate")
    assert stage.run_and_list_woken() == []
    assert stage.world.table.read(DRY_RUN_KIND, "default") is None
    [problem] = stage.problems
    assert (problem.kind, problem.name) == ("EC2NodeClass", "default")
    assert "Throttled: " in problem.message
    stage.run_and_list_woken()
    assert stage.world.table.read(DRY_RUN_KIND, "default") is not None


def test_no_dry_run_without_cluster_facts_or_for_an_unready_node_class() -> None:
    stage = Stage()
    cluster = ClusterSnapshot(taken_at=stage.cloud.clock.get_time(), node_classes=(stage.node_class,))
    assert run_dry_runs(cluster, stage.world, []) == ()
    assert stage.run_and_list_woken() == []
    assert stage.calls == 0


def test_mode_plan_makes_no_dry_run() -> None:
    stage = Stage()
    stage.resolve_node_class()
    settings = msgspec.structs.replace(stage.world.settings, mode="plan")
    stage.world = msgspec.structs.replace(stage.world, settings=settings)
    assert stage.run_and_list_woken() == []
    assert stage.calls == 0


def test_unreadable_dry_run_row_is_rewritten() -> None:
    stage = Stage()
    stage.resolve_node_class()
    stage.world.table.write(DRY_RUN_KIND, "default", "{}", version=0)
    assert stage.run_and_list_woken() == []
    assert stage.calls == 1


def test_missing_instance_profile_is_reported() -> None:
    stage = Stage()
    stage.resolve_node_class()
    stage.cloud.dry_runs.delete_profile("nodes")
    stage.run_and_list_woken()
    stage.resolve_node_class()
    assert stage.get_condition("ValidationSucceeded")[1] == "InstanceProfileNotFound"


def test_node_class_with_a_restricted_tag_fails_validation_without_a_dry_run() -> None:
    stage = Stage(tags=(("karpenter.sh/nodepool", "x"),))
    stage.resolve_node_class()
    assert stage.get_condition("ValidationSucceeded")[1] == "TagValidationFailed"
    assert stage.run_and_list_woken() == []


def test_capacity_reservations_and_placement_group_are_resolved() -> None:
    stage = Stage(
        capacity_reservation_selectors=(SelectorTerm(instance_match_criteria="targeted"),),
        placement_group_selector=SelectorTerm(name="racks"),
    )
    stage.resolve_node_class()
    assert stage.get_condition("PlacementGroupReady")[:2] == ("False", "PlacementGroupNotFound")
    stage.cloud.reservations.add_group(PlacementGroup(group_id="pg-1", name="racks"))
    reservation = CapacityReservation(reservation_id="cr-1", instance_type="m5.large", zone="us-east-1a")
    stage.cloud.reservations.add(reservation)
    assert [
        resolved_reservation.reservation_id
        for resolved_reservation in stage.resolve_node_class().resolved_capacity_reservations
    ] == ["cr-1"]
    assert stage.get_condition("PlacementGroupReady")[0] == "True"
    assert stage.node_class.is_ready()


def test_disabled_reserved_capacity_gate_skips_the_reservation_lookup() -> None:
    stage = Stage(capacity_reservation_selectors=(SelectorTerm(instance_match_criteria="targeted"),))
    settings = msgspec.structs.replace(stage.world.settings, feature_gates="ReservedCapacity=false")
    stage.world = msgspec.structs.replace(stage.world, settings=settings)
    stage.cloud.rate_limiter.reject_next_calls("DescribeCapacityReservations")
    assert stage.resolve_node_class().is_ready()
    with pytest.raises(Throttled):
        stage.world.ec2.describe_capacity_reservations(TAGS)


@pytest.mark.parametrize(
    ("gangs", "kind", "scheduled_ids"),
    [("off", "capacity-block", None), ("on", "capacity-block", ["cr-2"]), ("on", "default", [])],
)
def test_scheduled_capacity_blocks_are_read_only_for_gangs_and_never_launched_into(
    gangs: Literal["off", "on"], kind: str, scheduled_ids: list[str] | None
) -> None:
    stage = Stage(capacity_reservation_selectors=(SelectorTerm(instance_match_criteria="targeted"),))
    settings = msgspec.structs.replace(stage.world.settings, gangs=gangs)
    stage.world = msgspec.structs.replace(stage.world, settings=settings)
    active = CapacityReservation(reservation_id="cr-1", instance_type="m5.large", zone="us-east-1a")
    starts_at = stage.cloud.clock.get_time() + timedelta(hours=3)
    stage.cloud.reservations.add(active)
    stage.cloud.reservations.add(
        msgspec.structs.replace(active, reservation_id="cr-2", reservation_type=kind, starts_at=starts_at)
    )
    [(_, answers)] = query_account(stage.world, (stage.node_class,)).node_class_answers
    assert [reservation.reservation_id for reservation in answers.capacity_reservations or ()] == ["cr-1"]
    blocks = answers.scheduled_blocks
    assert (None if blocks is None else [block.reservation_id for block in blocks]) == scheduled_ids
    stage.cloud.rate_limiter.reject_next_calls("DescribeCapacityReservations")
    [(_, answers)] = query_account(stage.world, (stage.node_class,)).node_class_answers
    assert (answers.capacity_reservations, answers.scheduled_blocks) == (None, None)


def test_node_class_status_is_json_with_all_image_variants_and_conditions() -> None:
    stage = Stage()
    cluster = ClusterSnapshot(taken_at=stage.cloud.clock.get_time(), node_classes=(stage.node_class,))
    [action] = plan_status_patches(
        cluster, query_account(stage.world, cluster.node_classes).node_class_answers, "nodes"
    )
    status = json.loads(cast("PatchStatus", action).status)
    assert len(status["amis"]) == 5
    assert {condition["status"] for condition in status["conditions"]} == {"True"}


def test_disabled_dry_runs_are_not_made_and_earlier_results_are_ignored() -> None:
    stage = Stage()
    stage.resolve_node_class()
    stage.cloud.dry_runs.deny("CreateFleet")
    stage.run_and_list_woken()
    assert not stage.resolve_node_class().is_ready()
    settings = msgspec.structs.replace(stage.world.settings, disable_dry_run=True)
    stage.world = msgspec.structs.replace(stage.world, settings=settings)
    stage.cloud.clock.advance(DRY_RUN_INTERVAL)
    assert stage.resolve_node_class().is_ready()
    calls = stage.calls
    assert stage.run_and_list_woken() == []
    assert stage.calls == calls


def test_kubelet_expressions_require_the_node_class_cel_feature_gate() -> None:
    for gates, is_ready in (("", False), ("NodeClassCEL=false", False), ("NodeClassCEL=true,Other=true", True)):
        stage = Stage(kubelet_text='{"maxPods": "vcpus * 10"}')
        settings = msgspec.structs.replace(stage.world.settings, aws_feature_gates=gates)
        stage.world = msgspec.structs.replace(stage.world, settings=settings)
        assert stage.resolve_node_class().is_ready() is is_ready


def test_no_dry_run_for_a_node_class_with_invalid_user_data_or_without_images() -> None:
    ready = (Condition(type="Ready", status="True", observed_generation=1),)
    bad = {"ami_family": "Bottlerocket", "user_data": "[["}
    for fields in (bad, {"resolved_images": ()}):
        stage = Stage(conditions=ready, **fields)
        assert stage.run_and_list_woken() == []
        assert (stage.calls, stage.problems) == (0, [])
