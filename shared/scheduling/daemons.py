"""What DaemonSets take: on each type a template may become, and still to come on a node that is there.

A daemon runs where it tolerates the taints (PreferNoSchedule always) and where any of its required terms holds.
"""

from collections.abc import Iterable, Iterator

import msgspec

from shared.model.labels import INITIALIZED, REGISTERED, WELL_KNOWN
from shared.model.pods import DaemonSet, HostPort, PodSpec, strict_requirements
from shared.model.requirements import Requirements, requirements_from_labels
from shared.model.resources import Axes, Resources, Vector, resources, total
from shared.model.state import StateNode
from shared.model.taints import PREFER_NO_SCHEDULE, Taint, first_untolerated
from shared.scheduling.shelf import Mask, Shelf

SIMULATED = requirements_from_labels({REGISTERED: "true", INITIALIZED: "true"})
"""What a node will be in the end: daemons may select on it, pods may not."""


class Overhead(msgspec.Struct, frozen=True, kw_only=True):
    """Types on which the same daemons run, and what these take together."""

    mask: Mask
    needs: Vector
    requests: Resources
    ports: tuple[HostPort, ...]
    count: int


def overheads(
    taints: tuple[Taint, ...], described: Requirements, shelf: Shelf, daemon_sets: Iterable[DaemonSet], axes: Axes
) -> tuple[Overhead, ...]:
    """Part the types that *described* leaves by the daemons that would run on them."""
    groups: list[tuple[Mask, tuple[PodSpec, ...]]] = [(shelf.compatible(described), ())]
    for daemon in _sorted(daemon_sets):
        if not _tolerates(daemon.spec, taints):
            continue
        runs = _types_with(daemon.spec, described & SIMULATED, shelf)
        groups = [part for mask, some in groups for part in _split(mask, some, runs, daemon.spec) if part[0]]
    return tuple(_overhead(mask, some, axes) for mask, some in groups)


def missing_on(
    state: StateNode, labels: Requirements, daemon_sets: Iterable[DaemonSet]
) -> tuple[Resources, frozenset[HostPort]]:
    """Answer what daemons that belong on the node will still take, never negative, and the ports of all of them."""
    expected = daemons_on(state.taints(), labels, daemon_sets)
    wanted = total(daemon.spec.requests for daemon in expected)
    running = total(pod.spec.requests for pod in state.pods if pod.is_daemon() and not pod.is_terminal())
    missing = resources({name: max(0, amount) for name, amount in (wanted - running).amounts})
    return missing, frozenset(port for daemon in expected for port in daemon.spec.host_ports)


def daemons_on(
    taints: tuple[Taint, ...], labels: Requirements, daemon_sets: Iterable[DaemonSet]
) -> tuple[DaemonSet, ...]:
    """Answer the daemons that the DaemonSet controller would put on a node with *labels*, by name."""
    return tuple(
        daemon
        for daemon in _sorted(daemon_sets)
        if _tolerates(daemon.spec, taints) and any(labels.is_compatible(term) for term in terms_of(daemon.spec))
    )


def terms_of(spec: PodSpec) -> Iterator[Requirements]:
    """Answer nodeSelector with each of the required terms; any one of them is enough."""
    return (strict_requirements(spec, term) for term in range(max(1, len(spec.required_terms))))


def _sorted(daemon_sets: Iterable[DaemonSet]) -> list[DaemonSet]:
    some = (daemon for daemon in daemon_sets if not daemon.spec.has_resource_claims)
    return sorted(some, key=lambda daemon: (daemon.meta.namespace, daemon.meta.name))


def _tolerates(spec: PodSpec, taints: tuple[Taint, ...]) -> bool:
    return first_untolerated(taints, (*spec.tolerations, PREFER_NO_SCHEDULE)) is None


def _types_with(spec: PodSpec, described: Requirements, shelf: Shelf) -> Mask:
    mask = 0
    for term in terms_of(spec):
        if described.is_compatible(term, WELL_KNOWN):
            mask |= shelf.compatible(term)
    return mask


def _split(
    mask: Mask, some: tuple[PodSpec, ...], runs: Mask, spec: PodSpec
) -> tuple[tuple[Mask, tuple[PodSpec, ...]], tuple[Mask, tuple[PodSpec, ...]]]:
    return (mask & runs, (*some, spec)), (mask & ~runs, some)


def _overhead(mask: Mask, some: tuple[PodSpec, ...], axes: Axes) -> Overhead:
    requests = total(spec.requests for spec in some)
    ports = tuple(port for spec in some for port in spec.host_ports)
    return Overhead(mask=mask, needs=axes.vector(requests), requests=requests, ports=ports, count=len(some))
