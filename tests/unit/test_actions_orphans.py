"""An instance that seems to have no claim is looked up once more before it is ended."""

from typing import cast

import pytest
from msgspec.structs import replace

from shared.actions import orphans
from shared.errors import Gone, Unreachable
from shared.lifecycle.garbage import NO_CLAIM
from shared.lifecycle.tagging import NODE_CLAIM_TAG
from shared.model.action import Action, DeleteObject, TerminateInstances
from shared.model.cluster import Cluster
from shared.ports import Kube, World
from tests.unit.actions_world import Outside
from tests.unit.lifecycle_cases import Case, cluster, instance, node
from tests.unit.test_lifecycle_termination import TAGGED, answer, group

NAMED = replace(instance("x"), tags=((NODE_CLAIM_TAG, "a"),))
STRANGER = instance("y")
NODE = node("x")
MINE = b'{"status": {"providerID": "aws:///us-east-1a/i-x"}}'


class Reads:
    """Kubernetes as far as it is read by name."""

    def __init__(self, answers: bytes | Exception) -> None:
        """Answer every read so, and remember what was asked for."""
        self.answers, self.asked = answers, list[str]()

    def read(self, path: str) -> bytes:
        self.asked.append(path.rpartition("/")[2])
        if isinstance(self.answers, Exception):
            raise self.answers
        return self.answers


def world(reads: Reads) -> World:
    return replace(Outside().world(), kube=cast("Kube", reads))


def reconsidered(actions: tuple[Action, ...], seen: Cluster, outside: World) -> tuple[Action, ...]:
    return orphans.reconsidered(actions, seen, orphans.spared(actions, seen, outside.kube))


def ends(*ids: str) -> TerminateInstances:
    return TerminateInstances(instance_ids=ids, why=NO_CLAIM)


ACTIONS: tuple[Action, ...] = (
    DeleteObject(kind="Node", name=NODE.name, uid="n", why=NO_CLAIM),
    ends("i-x", "i-y"),
    TerminateInstances(instance_ids=("i-z",), why="its claim is deleted"),
)


@pytest.mark.parametrize(
    ("orphan", "groups", "said", "spared"),
    [
        (NAMED, (), MINE, True),
        (NAMED, (), b"{}", True),
        (NAMED, (), b'{"status": {"providerID": "aws:///us-east-1a/i-other"}}', False),
        (NAMED, (), Gone("a"), False),
        (NAMED, (), Unreachable("a"), True),
        (NAMED, (), b"?", True),
        (TAGGED, (group(),), MINE, True),
        (TAGGED, (group(answer("x")),), MINE, True),
        (TAGGED, (group(answer("other")),), MINE, False),
        (TAGGED, (), MINE, False),
    ],
)
def test_who_has_a_claim_after_all_is_not_ended(orphan: Case, groups: Case, said: Case, spared: bool) -> None:  # noqa: FBT001
    seen = cluster(nodes=(NODE,), instances=(orphan, STRANGER), launch_groups=groups)
    left = reconsidered(ACTIONS, seen, world(Reads(said)))
    assert left == ((ends("i-y"), ACTIONS[2]) if spared else ACTIONS)


def test_nothing_is_left_to_do_where_all_have_claims() -> None:
    seen = cluster(nodes=(NODE,), instances=(NAMED,))
    assert reconsidered((ACTIONS[0], ends("i-x")), seen, world(Reads(MINE))) == ()


def test_nobody_is_asked_where_nobody_is_to_be_ended() -> None:
    reads = Reads(MINE)
    assert reconsidered((ACTIONS[2],), cluster(instances=(NAMED,)), world(reads)) == (ACTIONS[2],)
    assert not reads.asked
    reconsidered(ACTIONS, cluster(instances=(NAMED, STRANGER)), world(reads))
    assert reads.asked == ["a"]
