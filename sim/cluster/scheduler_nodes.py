"""What the scheduler knows of nodes and the pods on them: sums that are kept, not computed.

Every change of a node is written into a log; whoever derived something from all nodes looks again only at those that
appear in the log since.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from sim.cluster.scheduler_match import UNSCHEDULABLE, Labels, Obj
from sim.cluster.scheduler_shape import Resources, Shape, Term, resources

_WILDCARD: Final = "0.0.0.0"  # noqa: S104 - the address a host port without address has


class NodeInfo:
    """One node, and the sums over its pods."""

    __slots__ = (
        "allocatable",
        "claims",
        "labels",
        "name",
        "node",
        "pods",
        "ports",
        "taints",
        "unschedulable",
        "used",
        "used_scored",
    )

    def __init__(self, name: str) -> None:
        """Begin without Node object and without pods."""
        self.name = name
        self.node: Obj | None = None
        self.labels: Labels = {}
        self.taints: list[Obj] = []
        self.unschedulable = False
        self.allocatable: Resources = {}
        self.pods: dict[str, Shape] = {}
        self.used: Resources = {}
        self.used_scored = (0, 0)
        self.ports: dict[tuple[str, str, int], int] = {}
        self.claims: dict[str, int] = {}

    def read(self, node: Obj) -> bool:
        """Take over what *node* says; answer whether anything that matters changed."""
        spec = node.get("spec") or {}
        fresh = (
            node["metadata"].get("labels") or {},
            spec.get("taints") or [],
            bool(spec.get("unschedulable")),
            resources((node.get("status") or {}).get("allocatable")),
        )
        if self.node is not None and fresh == (self.labels, self.taints, self.unschedulable, self.allocatable):
            self.node = node
            return False
        self.node = node
        self.labels, self.taints, self.unschedulable, self.allocatable = fresh
        return True

    def all_taints(self) -> list[Obj]:
        """Answer the taints that a pod must tolerate to come here, a cordon being one."""
        return [*self.taints, UNSCHEDULABLE] if self.unschedulable else self.taints

    def count(self, shape: Shape, by: int) -> None:
        """Add (*by* = 1) or take away (-1) one pod of *shape*."""
        for name, needed in shape.needs:
            self.used[name] = self.used.get(name, 0) + by * needed
        self.used_scored = (self.used_scored[0] + by * shape.scored[0], self.used_scored[1] + by * shape.scored[1])
        for port in shape.ports:
            self.ports[port] = self.ports.get(port, 0) + by
        for claim in shape.claims:
            key = f"{shape.namespace}/{claim}"
            self.claims[key] = self.claims.get(key, 0) + by

    def has_port(self, wanted: tuple[str, str, int]) -> bool:
        """Say whether a pod here occupies *wanted*; the unspecified address collides with all."""
        address, protocol, number = wanted
        return any(
            count
            and (protocol, number) == (theirs[1], theirs[2])
            and (_WILDCARD in (address, theirs[0]) or address == theirs[0])
            for theirs, count in self.ports.items()
        )


class Tally:
    """How many pods per node all of some terms speak of."""

    def __init__(
        self, terms: tuple[Term, ...], *, terminating: bool, namespace_labels: Callable[[str], Labels]
    ) -> None:
        """Count what *terms* cover; pods that are being deleted only if *terminating*."""
        self.terms, self.terminating = terms, terminating
        self.by_node: dict[str, int] = {}
        self._namespace_labels = namespace_labels
        self._verdicts: dict[Shape, bool] = {}

    def covers(self, shape: Shape) -> bool:
        """Say whether pods of *shape* are counted."""
        verdict = self._verdicts.get(shape)
        if verdict is None:
            verdict = all(term.covers(shape, self._namespace_labels) for term in self.terms)
            self._verdicts[shape] = verdict
        return verdict

    def count(self, node: str, shape: Shape, by: int) -> None:
        """Add or take away one pod of *shape* on *node*, if it is one of ours."""
        if self.covers(shape):
            total = self.by_node.get(node, 0) + by
            if total:
                self.by_node[node] = total
            else:
                del self.by_node[node]


class Placed:
    """A pod on a node, as it was counted."""

    __slots__ = ("node", "shape", "terminating")

    def __init__(self, node: str, shape: Shape, *, terminating: bool) -> None:
        """Remember how it was counted."""
        self.node, self.shape, self.terminating = node, shape, terminating


class Nodes:
    """All nodes, the log of their changes, and the tallies over their pods."""

    def __init__(self) -> None:
        """Begin empty."""
        self.known: dict[str, NodeInfo] = {}
        self.log: list[str] = []
        self.placed: dict[str, Placed] = {}
        self._ghosts: dict[str, NodeInfo] = {}
        self._tallies: dict[tuple[tuple[str, ...], bool], Tally] = {}
        self._guards: dict[tuple[str, str], tuple[Term, dict[str, int]]] = {}
        self._namespaces: dict[str, Labels] = {}

    def namespace_labels(self, name: str) -> Labels:
        """Answer the labels of namespace *name*; none if it is not known."""
        return self._namespaces.get(name, {"kubernetes.io/metadata.name": name})

    def read_namespace(self, namespace: Obj) -> None:
        """Take over the labels of *namespace*; whatever depended on them is counted anew."""
        self._namespaces[namespace["metadata"]["name"]] = namespace["metadata"].get("labels") or {}
        self._tallies.clear()

    def read_node(self, node: Obj) -> bool:
        """Take over *node*; answer whether it now may have become better or worse for pods."""
        name = node["metadata"]["name"]
        info = self.known.get(name) or self._ghosts.pop(name, None) or NodeInfo(name)
        self.known[name] = info
        changed = info.read(node)
        if changed:
            self.log.append(name)
        return changed

    def drop_node(self, name: str) -> None:
        """Forget the Node; its pods are remembered until they go."""
        info = self.known.pop(name, None)
        if info is not None:
            info.node = None
            self.log.append(name)
            if info.pods:
                self._ghosts[name] = info

    def place(self, key: str, node: str, shape: Shape, *, terminating: bool = False) -> bool:
        """Count pod *key* on *node*; answer False if it was counted so already."""
        old = self.placed.get(key)
        if old is not None and (old.node, old.shape, old.terminating) == (node, shape, terminating):
            return False
        if old is not None:
            self.lift(key)
        self.placed[key] = Placed(node, shape, terminating=terminating)
        info = self._info(node)
        info.pods[key] = shape
        self._count(info, shape, 1, terminating=terminating)
        return True

    def lift(self, key: str) -> bool:
        """Take pod *key* off its node; answer whether it was on one."""
        old = self.placed.pop(key, None)
        if old is None:
            return False
        info = self._info(old.node)
        del info.pods[key]
        self._count(info, old.shape, -1, terminating=old.terminating)
        if not info.pods:
            self._ghosts.pop(old.node, None)
        return True

    @contextmanager
    def supposing(self, node: str, pods: Mapping[str, Shape]) -> Iterator[None]:
        """Count *pods*, by key, on *node* for a block; nobody who derived something from the nodes hears of it."""
        moment = len(self.log)
        for key, shape in pods.items():
            self.place(key, node, shape)
        try:
            yield
        finally:
            for key in pods:
                self.lift(key)
            del self.log[moment:]

    def _info(self, name: str) -> NodeInfo:
        return self.known.get(name) or self._ghosts.setdefault(name, NodeInfo(name))

    def _count(self, info: NodeInfo, shape: Shape, by: int, *, terminating: bool) -> None:
        info.count(shape, by)
        self.log.append(info.name)
        for tally in self._tallies.values():
            if tally.terminating or not terminating:
                tally.count(info.name, shape, by)
        for term in shape.anti_affinity:
            _, by_node = self._guards.setdefault((term.id, term.topology_key), (term, {}))
            by_node[info.name] = by_node.get(info.name, 0) + by

    def tally(self, terms: tuple[Term, ...], *, terminating: bool) -> Tally:
        """Answer the running count of what *terms* cover."""
        key = (tuple(term.id for term in terms), terminating)
        tally = self._tallies.get(key)
        if tally is None:
            tally = self._tallies[key] = Tally(terms, terminating=terminating, namespace_labels=self.namespace_labels)
            for placed in self.placed.values():
                if terminating or not placed.terminating:
                    tally.count(placed.node, placed.shape, 1)
        return tally

    def guarded_domains(self, shape: Shape) -> set[tuple[str, str]]:
        """Answer the (topology key, value) pairs that pods on nodes forbid to pods of *shape*."""
        found = set()
        for (_, key), (term, by_node) in self._guards.items():
            if by_node and term.covers(shape, self.namespace_labels):
                found |= {(key, value) for value in self._values(key, (n for n, count in by_node.items() if count))}
        return found

    def _values(self, key: str, names: Iterable[str]) -> set[str]:
        infos = (self.known[name] for name in names if name in self.known)
        return {info.labels[key] for info in infos if key in info.labels}
