"""Which actions may be performed at the same time, and which must keep their order.

Actions on different NodeClaims do not depend on each other. Actions on one NodeClaim, its Nodes and the pods on these
Nodes keep their order: a Node is tainted before its pods are evicted, and its finalizer is removed before that of the
NodeClaim.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Final, Literal, TypeAlias
from zlib import crc32

from shared.model.decisions.action import (
    Action,
    CreateNodeClaim,
    DeleteObject,
    DeletePod,
    EvictPod,
    LaunchInstances,
    MarkUnavailable,
    NominatePod,
    PatchMetadata,
    PatchStatus,
    PublishEvent,
    RegisterNode,
    SetDeletionCost,
    TagInstance,
    TaintNode,
)

ActionGroup: TypeAlias = tuple[int, ...]
"""Positions of actions that are performed one after the other, ascending."""
ObjectKey: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name."""
StageKind: TypeAlias = Literal["creations", "writes", "launches", "marks", "single"]

MAX_PARALLEL_EC2_CALLS: Final = 4
"""How many CreateFleet calls, or CreateTags calls, are made at once. EC2 limits the rate of mutating calls: a bucket of
at least 5 calls is refilled with at least 2 per second, and one call takes a second or more.
"""
NO_CLAIMS: Final[Mapping[str, str]] = MappingProxyType({})
_OWN_KINDS: Final = frozenset({"Node", "NodeClaim"})
"""Kinds of which each object stands for itself. Patches of the others summarize many objects: a NodePool gets its new
hash after its NodeClaims."""


def group_independent_actions(
    actions: Sequence[Action], claim_by_node: Mapping[str, str] = NO_CLAIMS
) -> tuple[tuple[ActionGroup, ...], ...]:
    """Split *actions* into stages, and each stage into groups that do not depend on each other.

    Every action of a stage is performed before the next stage begins. A stage is a run of NodeClaim creations, a run of
    other Kubernetes writes, a run of launches, a run of unavailable offerings (one group), or one action of another
    type: other calls to AWS, follow-ups, and writes that need the lease checked each time. Launches, and the tags of
    instances among the writes, form at most `MAX_PARALLEL_EC2_CALLS` groups: no other action of a stage depends on
    them, and EC2 limits the rate of such calls.

    *claim_by_node* has the NodeClaim of each Node, by name. Positions and groups are in the order of *actions*.

    >>> from shared.model.decisions.action import TerminateInstances
    >>> taint = TaintNode(name="n", resource_version="", taints=())
    >>> delete = DeleteObject(kind="NodeClaim", name="c", message="")
    >>> evict = EvictPod(namespace="shop", name="cart", uid="", node="n")
    >>> terminate = TerminateInstances(instance_ids=(), message="")
    >>> group_independent_actions((taint, delete, evict, terminate))
    (((0, 2), (1,)), ((3,),))
    >>> group_independent_actions((taint, delete, evict, terminate), {"n": "c"})
    (((0, 1, 2),), ((3,),))
    """
    return tuple(
        _group_by_object(actions, positions, claim_by_node) if is_parallel else (positions,)
        for positions, is_parallel in _split_into_stages(actions)
    )


def _split_into_stages(actions: Sequence[Action]) -> Iterator[tuple[ActionGroup, bool]]:
    """Yield the positions of each stage, and whether its actions may be independent."""
    for kind, run in groupby(range(len(actions)), key=lambda position: _classify(actions[position])):
        positions = tuple(run)
        if kind == "single":
            yield from (((position,), False) for position in positions)
        else:
            yield positions, kind != "marks"


def _classify(action: Action) -> StageKind:
    match action:
        case CreateNodeClaim():
            return "creations"
        case LaunchInstances():
            return "launches"
        case MarkUnavailable():
            return "marks"
        case PatchMetadata() | PatchStatus():
            return "writes" if action.kind in _OWN_KINDS else "single"
        case (
            TaintNode()
            | RegisterNode()
            | EvictPod()
            | NominatePod()
            | SetDeletionCost()
            | DeletePod()
            | DeleteObject()
            | PublishEvent()
            | TagInstance()
        ):
            return "writes"
        case _:
            return "single"


def _group_by_object(
    actions: Sequence[Action], positions: ActionGroup, claim_by_node: Mapping[str, str]
) -> tuple[ActionGroup, ...]:
    """Return the groups of *positions* whose actions share an object, directly or through other actions."""
    representatives: dict[ObjectKey, ObjectKey] = {}
    first_keys: list[ObjectKey] = []
    for position in positions:
        first_key, *other_keys = _list_objects(actions[position], claim_by_node)
        first_keys.append(first_key)
        for other_key in other_keys:
            representatives[_find(representatives, other_key)] = _find(representatives, first_key)
    groups: dict[ObjectKey, list[int]] = {}
    for position, key in zip(positions, first_keys, strict=True):
        groups.setdefault(_find(representatives, key), []).append(position)
    return tuple(tuple(group) for group in groups.values())


def _find(representatives: dict[ObjectKey, ObjectKey], key: ObjectKey) -> ObjectKey:
    """Return the representative of *key*'s group (union-find with path halving)."""
    parent = representatives.setdefault(key, key)
    while parent != key:
        representatives[key] = parent = representatives[parent]
        key, parent = parent, representatives[parent]
    return key


def _list_objects(action: Action, claim_by_node: Mapping[str, str]) -> Iterable[ObjectKey]:  # noqa: PLR0911 - one case each
    """Return the objects that *action* writes or depends on, at least one; a Node stands for its NodeClaim, if any."""

    def get_node_key(name: str) -> ObjectKey:
        claim = claim_by_node.get(name)
        return ("Node", "", name) if claim is None else ("NodeClaim", "", claim)

    match action:
        case CreateNodeClaim():
            return (("NodeClaim", "", action.claim.name),)
        case TaintNode():
            return (get_node_key(action.name),)
        case RegisterNode():
            owners = (("NodeClaim", "", owner.name) for owner in action.owners if owner.kind == "NodeClaim")
            pods = (("Pod", nomination.namespace, nomination.name) for nomination in action.nominations)
            return (get_node_key(action.name), *owners, *pods)
        case EvictPod() | DeletePod() | NominatePod() | SetDeletionCost():
            return (get_node_key(action.node), ("Pod", action.namespace, action.name))
        case PatchMetadata() | PatchStatus() | DeleteObject() | PublishEvent():
            namespace = action.namespace if isinstance(action, PatchStatus | PublishEvent) else ""
            key = (action.kind, namespace, action.name)
            return (get_node_key(action.name),) if action.kind == "Node" else (key,)
        case TagInstance():
            return (_get_ec2_key(action.instance_id),)
        case LaunchInstances():
            return (_get_ec2_key(action.group.name),)
        case _:
            return ((type(action).__name__, "", ""),)


def _get_ec2_key(name: str) -> ObjectKey:
    """Return the key of the calls to EC2 that are made one after the other; all calls about *name* have the same."""
    return ("EC2", "", str(crc32(name.encode()) % MAX_PARALLEL_EC2_CALLS))
