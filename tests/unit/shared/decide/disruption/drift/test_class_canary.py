"""Drift while the canary of an EC2NodeClass runs."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.decide.disruption.drift.drifted_condition import find_drifts, find_recovered_claims
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import (
    CANARY,
    CANARY_REJECTED,
    CANARY_STATE,
    NODECLASS_HASH,
    NODECLASS_HASH_VERSION,
    NODECLASS_HASH_VERSION_VALUE,
)
from shared.model.core.metadata import ObjectMeta, build_pairs
from shared.model.karpenter.health.canary import CanaryState, CanaryTrial, Verdict, encode_canary_state
from shared.model.karpenter.node_class import EC2NodeClass, ResolvedImage
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import NOW, make_node_class
from tests.support.disruption_fleet import STAGES, Machine, make_conditions, make_fleet, make_node_with_pods

OLD, NEW = ResolvedImage(image_id="ami-old"), ResolvedImage(image_id="ami-new")
STARTED_AT = NOW - timedelta(hours=1)
TRIAL = CanaryTrial(identity="ami-new", image=NEW, known_since=STARTED_AT, started_at=STARTED_AT)
OLD_HASH, NEW_HASH = "a" * 32, "b" * 32


def make_class(state: CanaryState, nodes: int = 1, **annotations: str) -> EC2NodeClass:
    values = {CANARY: f"nodes={nodes} soak=1h", CANARY_STATE: encode_canary_state(state)}
    keys = {"rejected": CANARY_REJECTED}
    values |= {keys[key]: text for key, text in annotations.items()}
    return replace(
        make_node_class(),
        meta=ObjectMeta(name="default", annotations=build_pairs(values)),
        resolved_images=(OLD,),
        spec_hash=NEW_HASH,
    )


def make_machine(name: str, image: str = "ami-old", spec_hash: str = NEW_HASH, *, is_drifted: bool = False) -> Machine:
    annotations = {NODECLASS_HASH: spec_hash, NODECLASS_HASH_VERSION: NODECLASS_HASH_VERSION_VALUE}
    node, claim, pods = make_node_with_pods(name)
    drifted = make_conditions("Drifted", reason="AMIDrift") if is_drifted else ()
    meta = replace(claim.meta, annotations=build_pairs(annotations))
    return node, replace(claim, image_id=image, meta=meta, conditions=(*make_conditions(*STAGES), *drifted)), pods


def build_cluster(node_class: EC2NodeClass, *machines: Machine) -> ClusterSnapshot:
    return make_fleet(*machines, node_classes=(node_class,))


def list_drifted(node_class: EC2NodeClass, *machines: Machine) -> dict[str, str]:
    drifts = find_drifts(ClusterState(build_cluster(node_class, *machines)))
    return {drift.inputs.claim.name.removeprefix("claim-"): drift.reason for drift in drifts if drift.reason}


def test_as_many_nodes_drift_as_the_canary_needs() -> None:
    node_class, old_nodes = make_class(CanaryState(trials=(TRIAL,)), nodes=2), [make_machine(name) for name in "abc"]
    assert list_drifted(node_class, *old_nodes) == {"a": "AMIDrift", "b": "AMIDrift"}
    assert list_drifted(node_class, *old_nodes, make_machine("d", "ami-new")) == {"a": "AMIDrift"}
    assert list_drifted(node_class, *old_nodes, make_machine("d", "ami-new"), make_machine("e", "ami-new")) == {}


def test_nodes_that_passed_and_nodes_in_flight_count_as_canary_nodes() -> None:
    passed = replace(TRIAL, passed=("gone",))
    assert list_drifted(make_class(CanaryState(trials=(passed,))), make_machine("a")) == {}
    node, claim, _ = make_machine("b", "")
    in_flight = (node, replace(claim, provider_id="", conditions=()), ())
    assert list_drifted(make_class(CanaryState(trials=(TRIAL,))), make_machine("a"), in_flight) == {}


def test_node_with_the_name_of_a_passed_node_claim_is_another_node() -> None:
    new_node = make_machine("b", "ami-new")
    for uid, drifted in (("uid-b", {"a": "AMIDrift"}), ("uid-earlier", {})):
        node_class = make_class(CanaryState(trials=(replace(TRIAL, passed=(f"claim-b/{uid}",)),)), nodes=2)
        assert list_drifted(node_class, make_machine("a"), new_node) == drifted


def test_image_before_the_good_one_drifts_while_the_canary_runs() -> None:
    node_class = make_class(CanaryState(trials=(replace(TRIAL, passed=("gone",)),)))
    assert list_drifted(node_class, make_machine("a", "ami-older"), make_machine("b")) == {"a": "AMIDrift"}


@pytest.mark.parametrize(
    "node_class",
    [
        make_class(CanaryState(verdicts={"ami-new": Verdict(is_rejected=True, at=NOW)})),
        make_class(CanaryState(trials=(TRIAL,)), rejected="ami-new"),
    ],
)
def test_nodes_of_a_rejected_image_drift_back(node_class: EC2NodeClass) -> None:
    assert list_drifted(node_class, make_machine("a"), make_machine("b", "ami-new")) == {"b": "AMIDrift"}


def test_drift_of_a_canary_node_is_resolved_by_the_rejection_only() -> None:
    drifted = make_machine("a", is_drifted=True)
    running = build_cluster(make_class(CanaryState(trials=(TRIAL,))), drifted)
    assert find_recovered_claims(ClusterState(running)) == frozenset()
    rejected = build_cluster(make_class(CanaryState()), drifted)
    assert find_recovered_claims(ClusterState(rejected)) == frozenset({"claim-a"})


def test_nodes_wait_for_the_canary_of_a_launch_configuration() -> None:
    trial = CanaryTrial(identity=NEW_HASH, known_since=STARTED_AT, started_at=STARTED_AT)
    node_class = make_class(CanaryState(good_hash=OLD_HASH, configuration_trial=trial))
    old_nodes = [make_machine(name, spec_hash=OLD_HASH) for name in "ab"]
    assert list_drifted(node_class, *old_nodes) == {"a": "NodeClassDrift"}
    assert list_drifted(node_class, *old_nodes, make_machine("c")) == {}


def test_no_node_drifts_to_a_launch_configuration_that_is_rejected_or_not_seen_yet() -> None:
    rejected = CanaryState(good_hash=OLD_HASH, verdicts={NEW_HASH: Verdict(is_rejected=True, at=NOW)})
    for state in (rejected, CanaryState(good_hash=OLD_HASH)):
        assert list_drifted(make_class(state), make_machine("a", spec_hash=OLD_HASH)) == {}


def test_all_nodes_drift_to_a_proven_launch_configuration() -> None:
    proven = CanaryState(good_hash=OLD_HASH, verdicts={NEW_HASH: Verdict(is_rejected=False, at=NOW)})
    assert list_drifted(make_class(proven), make_machine("a", spec_hash=OLD_HASH)) == {"a": "NodeClassDrift"}
