"""Each invariant of an optional feature finds a violation: a rule of Joiner is broken, and a short script fails."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.decide.disruption import consolidation_policy
from shared.decide.launch.canaries.canary_launches import CanaryLaunches
from shared.decide.lifecycle import gang_nodes
from shared.decide.node_class import canary_rollout, canary_status
from shared.decide.provisioning import gang_planning
from shared.model.cloud_provider.cluster_group import GroupUsage
from shared.model.karpenter.health.canary import is_rejected
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_class import EC2NodeClass, ResolvedImage
from shared.report.event_bus import send_events
from sim.fault_simulation.events.script import Script, ScriptSetup
from sim.fault_simulation.events.script_events import AnyEvent, CallFailure, Release, Scale
from sim.fault_simulation.features.feature_events import (
    BadRelease,
    Gang,
    OtherCluster,
    PartialCapacity,
    Request,
)
from sim.fault_simulation.features.feature_setup import FeatureSetup
from sim.fault_simulation.run import run_script

Plant = Callable[[pytest.MonkeyPatch], None]
GANG = Gang(at=10, name="gang-0", size=3)
LONG = timedelta(hours=10)


def build_script(features: FeatureSetup, *events: AnyEvent, length: int = 200, web: int = 1) -> Script:
    setup = ScriptSetup(replicas=(("web", web),), features=features, allows_spot=False)
    return Script(seed=3, setup=setup, length_seconds=length, events=events)


def launch_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launch nodes also for gangs and ProvisioningRequests that do not fit as a whole."""
    monkeypatch.setattr(gang_planning._GangPlanner, "_is_whole", lambda *_: True)  # noqa: SLF001 - the rule


def keep_partial_gangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never return the nodes of a gang that is not complete."""
    monkeypatch.setattr(gang_nodes, "GANG_LAUNCH_TIMEOUT", LONG)


def move_gangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let consolidation move pods of gangs."""
    monkeypatch.setattr(consolidation_policy, "_explain_gang", lambda *_: None)


def promise_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report capacity on nodes that are not initialized."""
    monkeypatch.setattr(
        "shared.decide.provisioning.provisioning_requests._describe_capacity",
        lambda *_: ("Provisioned", "True", "CapacityIsProvisioned", "soon"),
    )


def use_images_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launch all nodes with the image of a canary."""

    def choose_images(launches: CanaryLaunches, claim: NodeClaim) -> frozenset[str]:
        trials = launches._trials_by_class.get(claim.node_class.name)  # noqa: SLF001 - the rule
        images = frozenset(trial.identity for trial in trials[1]) if trials is not None else frozenset()
        launches._images_by_claim[claim.name] = images  # noqa: SLF001
        return images

    monkeypatch.setattr(CanaryLaunches, "choose_images", choose_images)


def use_rejected_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the newest image as soon as it is rejected."""
    choose_image = canary_status._choose_image  # noqa: SLF001 - the rule

    def choose_newest(
        node_class: EC2NodeClass, newest: ResolvedImage, good: ResolvedImage | None, previous: ResolvedImage | None
    ) -> ResolvedImage:
        return newest if is_rejected(node_class, newest.image_id) else choose_image(node_class, newest, good, previous)

    monkeypatch.setattr(canary_status, "_choose_image", choose_newest)


def ignore_the_age(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use an image before its minimum age."""
    monkeypatch.setattr(
        canary_rollout, "_start_if_old_enough", lambda trial, _class, now: replace(trial, started_at=now)
    )


def ignore_other_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count only the nodes of this cluster against the limit of the group."""
    monkeypatch.setattr(GroupUsage, "used_by_others", property(lambda _: 0))


class NeverRaised(Exception):
    """What nothing raises."""


def fail_with_the_bus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a cycle end with the error of the event bus."""
    monkeypatch.setattr(send_events, "Fault", NeverRaised)


def name_other_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send events with the key of a journal entry that does not exist."""
    monkeypatch.setattr(send_events, "build_entry_key", lambda *_: "journal/none")


BUS_OUTAGE = CallFailure(at=0, lasts=300, port="event_bus", fault="throttled", ratio=1.0)
CANARY = FeatureSetup(canary="nodes=1 soak=30m")
CASES: dict[str, tuple[Plant, Script]] = {
    "blocked": (launch_parts, build_script(FeatureSetup(has_gangs=True))),
    "gang-partial": (
        keep_partial_gangs,
        build_script(
            FeatureSetup(has_gangs=True),
            PartialCapacity(at=5, lasts=1400, zone="us-east-1a", free=1),
            GANG,
            length=1400,
        ),
    ),
    "gang-moved": (
        move_gangs,
        build_script(FeatureSetup(has_gangs=True), GANG, Scale(at=300, name="gang-0", replicas=1), length=900),
    ),
    "request-early": (
        promise_early,
        build_script(FeatureSetup(has_requests=True), Request(at=10, lasts=150, name="request-0", pods=3)),
    ),
    "canary-nodes": (
        use_images_at_once,
        build_script(CANARY, Release(at=10), Scale(at=320, name="web", replicas=9), length=600),
    ),
    "rejected-image": (
        use_rejected_images,
        build_script(
            CANARY, BadRelease(at=10, defect="restarts"), Scale(at=1300, name="web", replicas=9), length=1500, web=6
        ),
    ),
    "young-image": (
        ignore_the_age,
        build_script(
            FeatureSetup(image_minimum_age="1h"), Release(at=10), Scale(at=700, name="web", replicas=9), length=900
        ),
    ),
    "group-limit": (
        ignore_other_clusters,
        build_script(
            FeatureSetup(group_limit_usd_per_hour=0.7),
            OtherCluster(at=300, share=1.0),
            Scale(at=310, name="web", replicas=6),
            length=500,
        ),
    ),
    "event-stopped": (fail_with_the_bus, build_script(FeatureSetup(has_event_bus=True), BUS_OUTAGE)),
    "event-unrecorded": (name_other_entries, build_script(FeatureSetup(has_event_bus=True))),
}


@pytest.mark.parametrize("kind", CASES)
def test_broken_rule_of_a_feature_is_found(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, script = CASES[kind]
    plant(monkeypatch)
    result = run_script(script)
    assert kind in result.list_violated_kinds(), "\n".join(result.timeline)


@pytest.mark.parametrize("kind", CASES)
def test_script_violates_nothing_while_the_rule_holds(kind: str) -> None:
    result = run_script(CASES[kind][1])
    assert not result.violations, "\n".join(result.timeline)
