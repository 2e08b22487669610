"""A node is opened with its places taken: hints to kube-scheduler, so that what was planned together stays together.

kube-scheduler alone binds pods, and spreads them over the emptiest nodes: pods that wait for other nodes would take the
room of those that a node was made for. Pods with a hint to a node are counted there when others look at it (all but
those of higher priority), and look there first. But kube-scheduler drops the hint of a pod that it tried in vain, and
it tries all that wait when any node joins or opens. So hints are given while a node still has its `unregistered` taint,
right before that is taken away, and when no other taint is left that goes by itself.

Hints cost a request each. None is given where none matters: where all that waits is alike, or has the same home.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

import msgspec

from shared.model.action import NominatePod
from shared.model.cluster import Cluster
from shared.model.labels import UNREGISTERED_TAINT
from shared.model.nodes import Node
from shared.model.pods import Pod, PodSpec
from shared.model.resources import CPU, MEMORY, total
from shared.model.state import StateNode, state_nodes
from shared.model.taints import is_ephemeral
from shared.scheduling.homes import Hints, hints_of, homes_of, pod_mark

MOST: Final = 1000
"""Pods whose nodes are opened in one cycle, unless one node has more: a hint takes 10 ms, more or less."""
UNREADY: Final = timedelta(seconds=45)
"""So long after it joined a node that others keep closed may be kept so by us: a pod that it needs may be kept out."""
UNTOLD: Final = timedelta(minutes=2)
"""The same for one that only waits until its pods are told."""


class Reservations(msgspec.Struct, frozen=True, kw_only=True):
    """What pods are to be told, and which nodes are not to be opened yet; of a node, the smallest pods first."""

    hints: tuple[NominatePod, ...] = ()
    """To nodes that are open already."""
    places: Mapping[str, tuple[NominatePod, ...]] = MappingProxyType({})
    """By Node that is still closed and to be opened now: what its pods are to be told before."""
    closed: frozenset[str] = frozenset()
    """Names of Nodes."""


def reservations(cluster: Cluster, most: int = MOST) -> Reservations:
    """Answer the hints that are missing on nodes that are open or about to be; no more than *most* pods' are opened."""
    states = state_nodes(cluster)
    hints = hints_of(cluster)
    waiting = [pod for pod in cluster.pods if pod.is_provisionable() or hints.has(pod)]
    at_home = _at_home(waiting, homes_of(states, cluster.taken_at, cluster.pods))
    if len(at_home) <= 1 or _are_alike(waiting):
        return Reservations()
    given: list[NominatePod] = []
    places: dict[str, tuple[NominatePod, ...]] = {}
    closed, count = set[str](), 0
    for state, node in _joined(states):
        pods, is_usable = at_home.get(state.name, []), _is_usable(state, node)
        is_late = count > 0 and count + len(pods) > most
        if state.is_registered():
            given += _told(node.name, _missing(state, node.name, pods, hints)) if is_usable else ()
        elif pods and (is_late or not is_usable) and _may_wait(state, node, cluster.taken_at):
            closed.add(node.name)
        elif pods and is_usable:
            count += len(pods)
            places[node.name] = _told(node.name, pods)
    return Reservations(hints=tuple(given), places=places, closed=frozenset(closed))


def _joined(states: Iterable[StateNode]) -> Iterator[tuple[StateNode, Node]]:
    for state in sorted(states, key=lambda one: one.name):
        if state.node is not None and state.node.meta.deleted_at is None:
            yield state, state.node


def _at_home(waiting: list[Pod], homes: Mapping[str, StateNode]) -> dict[str, list[Pod]]:
    """Answer the pods by the name of their home, "" for those that have none."""
    found: dict[str, list[Pod]] = {}
    for pod in waiting:
        home = homes.get(pod_mark(pod.name))
        found.setdefault("" if home is None else home.name, []).append(pod)
    return found


def _are_alike(waiting: list[Pod]) -> bool:
    """Whether any of *waiting* could have any other's place."""
    return len({pod.spec for pod in waiting}) <= 1 and not any(_looks_around(pod.spec) for pod in waiting)


def _looks_around(spec: PodSpec) -> bool:
    return bool(spec.spread or spec.pod_affinity or spec.pod_anti_affinity)


def _is_usable(state: StateNode, node: Node) -> bool:
    """Whether *node* is Ready, and nobody's taint but ours keeps pods out: hints would be dropped meanwhile."""
    startup = state.claim.startup_taints if state.claim is not None else ()
    others = (taint for taint in node.taints if taint.key != UNREGISTERED_TAINT)
    return node.is_ready() and not any(is_ephemeral(one) or any(one.is_same(own) for own in startup) for one in others)


def _may_wait(state: StateNode, node: Node, now: datetime) -> bool:
    """Whether *node*, which is closed still, has not been for long.

    One with startup taints does not wait at all: they are written when it is registered, and whoever takes them away
    does so but once.
    """
    joined, patience = node.meta.created_at, UNTOLD if _is_usable(state, node) else UNREADY
    startup = state.claim is not None and state.claim.startup_taints
    return not startup and joined is not None and now - joined < patience


def _missing(state: StateNode, name: str, pods: list[Pod], hints: Hints) -> Iterator[Pod]:
    """Answer those of *pods* that have no hint to the open node that is their home, and still have room there."""
    told = [pod for pod in pods if hints.ours.get(pod.name) == name]
    left = state.available() - total(pod.spec.requests for pod in told)
    for pod in sorted((one for one in pods if hints.ours.get(one.name) != name), key=_size, reverse=True):
        if pod.spec.requests.fits(left):
            left -= pod.spec.requests
            yield pod


def _told(node: str, pods: Iterable[Pod]) -> tuple[NominatePod, ...]:
    return tuple(
        NominatePod(
            namespace=pod.meta.namespace,
            name=pod.meta.name,
            uid=pod.meta.uid,
            node=node,
            why="the node was made for it",
        )
        for pod in sorted(pods, key=_size)
    )


def _size(pod: Pod) -> tuple[int, int, str]:
    return pod.spec.requests[MEMORY], pod.spec.requests[CPU], pod.name
