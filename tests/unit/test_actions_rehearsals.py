"""Who asks EC2 about launches, how often, and who hears of it."""

import json
from datetime import timedelta
from typing import Any, cast

import msgspec
import pytest

from shared.actions.rehearsals import AGAIN, REMEMBERED, rehearse
from shared.errors import Throttled
from shared.launch.catalogues import statuses
from shared.launch.probes import REHEARSAL
from shared.model.action import FollowUp, PatchStatus
from shared.model.cluster import Cluster
from shared.model.ec2 import CapacityReservation, PlacementGroup, Selector
from shared.model.nodeclasses import EC2NodeClass
from shared.model.objects import Condition, Problem
from shared.ports import World
from shared.settings import Settings
from shared.snapshot.account import look
from shared.snapshot.foreseen import foreseen
from sim.clock import Clock
from sim.cloud.cloud import Cloud
from sim.cloud.ports import CloudEc2, CloudEks, CloudParameters, CloudPrices
from sim.memory import MemoryTable
from tests.unit.launch_cases import node_class

TAGS = (Selector(tags=(("karpenter.sh/discovery", "joiner"),)),)


class Stage:
    """A cloud, a world in front of it, and one node class."""

    def __init__(self, **fields: Any) -> None:
        """Begin with nothing asked; *fields* are the class's."""
        self.cloud = Cloud(Clock())
        nothing: Any = None
        self.world = World(
            settings=Settings(cluster_name="joiner", region="us-east-1", instance_profile="nodes"),
            kube=nothing,
            ec2=CloudEc2(self.cloud),
            parameters=CloudParameters(self.cloud),
            prices=CloudPrices(self.cloud),
            eks=CloudEks(self.cloud),
            mailbox=nothing,
            table=MemoryTable(),
            bucket=nothing,
            clock=self.cloud.clock.now,
            emit=nothing,
        )
        defaults: dict[str, Any] = {
            "subnet_selectors": TAGS,
            "security_group_selectors": TAGS,
            "image_selectors": (Selector(alias="al2023@latest"),),
            "role": "nodes",
            "conditions": (),
        }
        self.node_class = node_class(**(defaults | fields))
        self.calls = 0
        self.problems: list[Problem] = []
        admit = self.cloud.admit

        def counted(action: str) -> None:
            self.calls += action == "RunInstances"
            admit(action)

        self.cloud.admit = counted  # type: ignore[method-assign]

    def resolved(self) -> EC2NodeClass:
        """Do what `catalog` does, and keep the class as it leaves it."""
        cluster = Cluster(taken_at=self.cloud.clock.now(), node_classes=(self.node_class,))
        actions = statuses(cluster, look(self.world, cluster.node_classes).found, "nodes")
        [self.node_class] = foreseen(cluster, actions).node_classes
        return self.node_class

    def rehearsed(self) -> list[str]:
        """Do what `provision` does, and answer whom it wakes."""
        facts = self.cloud.facts
        cluster = Cluster(taken_at=self.cloud.clock.now(), node_classes=(self.node_class,), facts=facts)
        return [cast("FollowUp", action).function for action in rehearse(cluster, self.world, self.problems)]

    def state(self, kind: str) -> tuple[str, str, str]:
        [one] = [one for one in self.node_class.conditions if one.type == kind]
        return one.status, one.reason, one.message


def test_a_class_is_ready_before_anybody_asked_and_stays_so_when_nothing_is_refused() -> None:
    stage = Stage()
    assert stage.resolved().is_ready()
    assert stage.rehearsed() == []
    assert stage.resolved().is_ready()
    assert stage.calls == 1


def test_what_ec2_refuses_makes_the_class_unready_with_the_missing_right() -> None:
    stage = Stage()
    stage.resolved()
    stage.cloud.dry_runs.deny("CreateFleet")
    assert stage.rehearsed() == ["catalog"]
    assert not stage.resolved().is_ready()
    status, reason, message = stage.state("ValidationSucceeded")
    assert (status, reason) == ("False", "CreateFleetAuthCheckFailed")
    assert "ec2:CreateFleet" in message


def test_a_right_that_is_given_is_noticed_after_a_while() -> None:
    stage = Stage()
    stage.resolved()
    stage.cloud.dry_runs.deny("CreateFleet")
    stage.rehearsed()
    stage.resolved()
    stage.cloud.dry_runs.allow("CreateFleet")
    assert stage.rehearsed() == []
    assert not stage.resolved().is_ready()
    stage.cloud.clock.advance(AGAIN)
    assert stage.rehearsed() == ["catalog"]
    assert stage.resolved().is_ready()


def test_the_question_is_not_repeated_with_every_tick() -> None:
    stage = Stage()
    stage.resolved()
    for _ in range(5):
        stage.rehearsed()
        stage.cloud.clock.advance(timedelta(minutes=1))
    assert stage.calls == 1
    stage.cloud.clock.advance(REMEMBERED)
    stage.rehearsed()
    assert stage.calls == 2


def test_a_class_that_changed_is_asked_about_at_once() -> None:
    stage = Stage()
    stage.resolved()
    stage.rehearsed()
    stage.node_class = msgspec.structs.replace(stage.node_class, hashed="other")
    stage.rehearsed()
    assert stage.calls == 2


def test_a_throttle_is_no_answer() -> None:
    stage = Stage()
    stage.resolved()
    stage.cloud.throttle_next("CreateLaunchTemplate")
    assert stage.rehearsed() == []
    assert stage.world.table.read(REHEARSAL, "default") is None
    [problem] = stage.problems
    assert (problem.kind, problem.name) == ("EC2NodeClass", "default")
    assert "Throttled: " in problem.message
    stage.rehearsed()
    assert stage.world.table.read(REHEARSAL, "default") is not None


def test_nothing_is_asked_without_facts_or_about_a_class_that_is_not_ready() -> None:
    stage = Stage()
    cluster = Cluster(taken_at=stage.cloud.clock.now(), node_classes=(stage.node_class,))
    assert rehearse(cluster, stage.world, []) == ()
    assert stage.rehearsed() == []
    assert stage.calls == 0


def test_a_deployment_that_only_plans_asks_nothing() -> None:
    stage = Stage()
    stage.resolved()
    settings = msgspec.structs.replace(stage.world.settings, mode="plan")
    stage.world = msgspec.structs.replace(stage.world, settings=settings)
    assert stage.rehearsed() == []
    assert stage.calls == 0


def test_a_row_that_cannot_be_read_is_written_anew() -> None:
    stage = Stage()
    stage.resolved()
    stage.world.table.write(REHEARSAL, "default", "{}", version=0)
    assert stage.rehearsed() == []
    assert stage.calls == 1


def test_a_profile_that_is_not_there_is_named() -> None:
    stage = Stage()
    stage.resolved()
    stage.cloud.dry_runs.lose_profile("nodes")
    stage.rehearsed()
    stage.resolved()
    assert stage.state("ValidationSucceeded")[1] == "InstanceProfileNotFound"


def test_a_class_that_is_wrong_is_told_so_without_asking() -> None:
    stage = Stage(tags=(("karpenter.sh/nodepool", "x"),))
    stage.resolved()
    assert stage.state("ValidationSucceeded")[1] == "TagValidationFailed"
    assert stage.rehearsed() == []


def test_reservations_and_groups_are_found_where_they_are_asked_for() -> None:
    stage = Stage(
        capacity_reservation_selectors=(Selector(instance_match_criteria="targeted"),),
        placement_group_selector=Selector(name="racks"),
    )
    stage.resolved()
    assert stage.state("PlacementGroupReady")[:2] == ("False", "PlacementGroupNotFound")
    stage.cloud.reservations.add_group(PlacementGroup(group_id="pg-1", name="racks"))
    held = CapacityReservation(reservation_id="cr-1", instance_type="m5.large", zone="us-east-1a")
    stage.cloud.reservations.add(held)
    assert [one.reservation_id for one in stage.resolved().resolved_capacity_reservations] == ["cr-1"]
    assert stage.state("PlacementGroupReady")[0] == "True"
    assert stage.node_class.is_ready()


def test_with_the_gate_shut_no_reservation_is_asked_for() -> None:
    stage = Stage(capacity_reservation_selectors=(Selector(instance_match_criteria="targeted"),))
    settings = msgspec.structs.replace(stage.world.settings, feature_gates="ReservedCapacity=false")
    stage.world = msgspec.structs.replace(stage.world, settings=settings)
    stage.cloud.throttle_next("DescribeCapacityReservations")
    assert stage.resolved().is_ready()
    with pytest.raises(Throttled):
        stage.world.ec2.capacity_reservations(TAGS)


def test_the_status_is_json_with_an_image_per_variant() -> None:
    stage = Stage()
    cluster = Cluster(taken_at=stage.cloud.clock.now(), node_classes=(stage.node_class,))
    [action] = statuses(cluster, look(stage.world, cluster.node_classes).found, "nodes")
    written = json.loads(cast("PatchStatus", action).status)
    assert len(written["amis"]) == 5
    assert {one["status"] for one in written["conditions"]} == {"True"}


def test_a_deployment_that_does_not_want_to_ask_asks_nothing_and_heeds_no_answer() -> None:
    stage = Stage()
    stage.resolved()
    stage.cloud.dry_runs.deny("CreateFleet")
    stage.rehearsed()
    assert not stage.resolved().is_ready()
    settings = msgspec.structs.replace(stage.world.settings, disable_dry_run="true")
    stage.world = msgspec.structs.replace(stage.world, settings=settings)
    stage.cloud.clock.advance(REMEMBERED)
    assert stage.resolved().is_ready()
    calls = stage.calls
    assert stage.rehearsed() == []
    assert stage.calls == calls


def test_expressions_make_a_class_unready_unless_the_gate_is_open() -> None:
    for gates, is_ready in (("", False), ("NodeClassCEL=false", False), ("NodeClassCEL=true,Other=true", True)):
        stage = Stage(kubelet_text='{"maxPods": "vcpus * 10"}')
        settings = msgspec.structs.replace(stage.world.settings, aws_feature_gates=gates)
        stage.world = msgspec.structs.replace(stage.world, settings=settings)
        assert stage.resolved().is_ready() is is_ready


def test_what_cannot_be_told_a_machine_or_was_not_found_is_not_asked_about() -> None:
    ready = (Condition(type="Ready", status="True", observed_generation=1),)
    bad = {"ami_family": "Bottlerocket", "user_data": "[["}
    for fields in (bad, {"resolved_images": ()}):
        stage = Stage(conditions=ready, **fields)
        assert stage.rehearsed() == []
        assert (stage.calls, stage.problems) == (0, [])
