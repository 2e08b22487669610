"""Tests of claim lookup: an instance without a visible claim is looked up again before termination."""

from typing import cast

import pytest
from msgspec.structs import replace

from shared.decide.lifecycle.node_claim.garbage_collection import without_spared_instances
from shared.errors import NotFound, Unreachable
from shared.model.cluster import ClusterSnapshot
from shared.model.decisions.action import NO_CLAIM_MESSAGE, Action, DeleteObject, TerminateInstances
from shared.model.ec2.instance import NODE_CLAIM_TAG
from shared.ports.kubernetes import Kube
from shared.ports.world import World
from shared.take.kubernetes.claim_lookup import find_spared_instances
from tests.support.actions_world import Outside
from tests.support.lifecycle_cases import Case, make_cluster, make_instance, make_node
from tests.unit.shared.decide.lifecycle.termination.test_termination import (
    TAGGED_INSTANCE,
    make_fleet_result,
    make_launch_group,
)

INSTANCE_WITH_CLAIM_TAG = replace(make_instance("x"), tags=((NODE_CLAIM_TAG, "a"),))
INSTANCE_WITHOUT_CLAIM_TAG = make_instance("y")
NODE = make_node("x")
CLAIM_OF_INSTANCE_X = b'{"status": {"providerID": "aws:///us-east-1a/i-x"}}'


class Reads:
    """The Kubernetes port with only reads by name."""

    def __init__(self, answers: bytes | Exception) -> None:
        """Return *answers* from every read, or raise it, and record the names that are read."""
        self.answers, self.read_names = answers, list[str]()

    def read(self, path: str) -> bytes:
        self.read_names.append(path.rpartition("/")[2])
        if isinstance(self.answers, Exception):
            raise self.answers
        return self.answers


def make_world(reads: Reads) -> World:
    return replace(Outside().build_world(), kube=cast("Kube", reads))


def remove_spared_instances(
    actions: tuple[Action, ...], snapshot: ClusterSnapshot, outside: World
) -> tuple[Action, ...]:
    return without_spared_instances(actions, snapshot, find_spared_instances(actions, snapshot, outside.kube))


def make_termination(*ids: str) -> TerminateInstances:
    return TerminateInstances(instance_ids=ids, message=NO_CLAIM_MESSAGE)


ACTIONS: tuple[Action, ...] = (
    DeleteObject(kind="Node", name=NODE.name, uid="n", message=NO_CLAIM_MESSAGE),
    make_termination("i-x", "i-y"),
    TerminateInstances(instance_ids=("i-z",), message="its NodeClaim is being deleted"),
)


@pytest.mark.parametrize(
    ("orphan", "groups", "response", "is_kept"),
    [
        (INSTANCE_WITH_CLAIM_TAG, (), CLAIM_OF_INSTANCE_X, True),
        (INSTANCE_WITH_CLAIM_TAG, (), b"{}", True),
        (INSTANCE_WITH_CLAIM_TAG, (), b'{"status": {"providerID": "aws:///us-east-1a/i-other"}}', False),
        (INSTANCE_WITH_CLAIM_TAG, (), NotFound("a"), False),
        (INSTANCE_WITH_CLAIM_TAG, (), Unreachable("a"), True),
        (INSTANCE_WITH_CLAIM_TAG, (), b"?", True),
        (TAGGED_INSTANCE, (make_launch_group(),), CLAIM_OF_INSTANCE_X, True),
        (TAGGED_INSTANCE, (make_launch_group(make_fleet_result("x")),), CLAIM_OF_INSTANCE_X, True),
        (TAGGED_INSTANCE, (make_launch_group(make_fleet_result("other")),), CLAIM_OF_INSTANCE_X, False),
        (TAGGED_INSTANCE, (), CLAIM_OF_INSTANCE_X, False),
    ],
)
def test_instance_with_an_existing_nodeclaim_is_not_terminated(
    orphan: Case,
    groups: Case,
    response: Case,
    is_kept: bool,  # noqa: FBT001
) -> None:
    snapshot = make_cluster(nodes=(NODE,), instances=(orphan, INSTANCE_WITHOUT_CLAIM_TAG), launch_groups=groups)
    remaining_actions = remove_spared_instances(ACTIONS, snapshot, make_world(Reads(response)))
    assert remaining_actions == ((make_termination("i-y"), ACTIONS[2]) if is_kept else ACTIONS)


def test_termination_is_dropped_if_all_instances_have_nodeclaims() -> None:
    snapshot = make_cluster(nodes=(NODE,), instances=(INSTANCE_WITH_CLAIM_TAG,))
    assert (
        remove_spared_instances((ACTIONS[0], make_termination("i-x")), snapshot, make_world(Reads(CLAIM_OF_INSTANCE_X)))
        == ()
    )


def test_nodeclaims_are_read_only_for_leaked_instances_with_a_claim_tag() -> None:
    reads = Reads(CLAIM_OF_INSTANCE_X)
    assert remove_spared_instances(
        (ACTIONS[2],), make_cluster(instances=(INSTANCE_WITH_CLAIM_TAG,)), make_world(reads)
    ) == (ACTIONS[2],)
    assert not reads.read_names
    remove_spared_instances(
        ACTIONS, make_cluster(instances=(INSTANCE_WITH_CLAIM_TAG, INSTANCE_WITHOUT_CLAIM_TAG)), make_world(reads)
    )
    assert reads.read_names == ["a"]
