"""The evidence for an explanation (journal, live cluster, node records), and the lookup of object names in it."""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from difflib import get_close_matches
from typing import Final

import msgspec

from cli.explain.history import MAX_LISTED_NAMES
from cli.explain.journal import Cycle, Journal
from cli.explain.kinds import EXPLAIN_KINDS, ExplainKind
from cli.explain.node_records import NodeRecord, build_node_records
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count, join_names
from shared.model.decisions.action import CreateNodeClaim, DeletePod, EvictPod
from shared.report.journal.journal import DecisionNote

_MIN_SIMILARITY_RATIO: Final = 0.6
_IPV4_PATTERN: Final = re.compile(r"\d+\.\d+\.\d+\.\d+")
_NODE_KINDS: Final = ("node", "nodeclaim")


class UnknownObject(Exception):
    """No object of that name is known; the message contains a fix."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All data that an explanation can use."""

    journal: Journal
    live_cluster: ClusterSnapshot | None = None
    node_records: tuple[NodeRecord, ...]

    @property
    def cycles(self) -> tuple[Cycle, ...]:
        """The cycles of the journal."""
        return self.journal.cycles

    def iterate_notes(self, kind: str, name: str = "") -> Iterator[tuple[datetime, DecisionNote]]:
        """Yield the notes about *kind*, oldest first, with their time; about all objects unless *name* is given."""
        for cycle in self.cycles:
            for note in cycle.entry.notes:
                if note.kind == kind and name in ("", note.name):
                    yield cycle.entry.at, note


def build_evidence(journal: Journal, live_cluster: ClusterSnapshot | None) -> Evidence:
    """Return the evidence from the journal and, if there is one, the live cluster."""
    return Evidence(
        journal=journal, live_cluster=live_cluster, node_records=build_node_records(journal.cycles, live_cluster)
    )


def _list_known_names(evidence: Evidence, kind: ExplainKind) -> frozenset[str]:
    """Return the names of all objects of *kind* that the evidence mentions."""
    if kind in _NODE_KINDS:
        names = {name for record in evidence.node_records for _, name in record.list_names()}
        names |= {note.name for object_kind in ("Node", "NodeClaim") for _, note in evidence.iterate_notes(object_kind)}
        return frozenset(
            names
            | ({node.name for node in evidence.live_cluster.nodes} if evidence.live_cluster is not None else set())
        )
    names = {note.name for _, note in evidence.iterate_notes(EXPLAIN_KINDS[kind]) if note.name != "*"}
    names |= {
        problem.name
        for cycle in evidence.cycles
        for problem in cycle.entry.problems
        if problem.kind == EXPLAIN_KINDS[kind]
    }
    if kind == "pod":
        names |= set(_list_pods_of_actions(evidence.cycles))
        names |= {pod.name for pod in evidence.live_cluster.pods} if evidence.live_cluster is not None else set()
    if kind == "nodepool":
        names |= {record.pool for record in evidence.node_records if record.pool}
        names |= (
            {node_pool.name for node_pool in evidence.live_cluster.node_pools}
            if evidence.live_cluster is not None
            else set()
        )
    return frozenset(names)


def _list_pods_of_actions(cycles: Iterable[Cycle]) -> Iterator[str]:
    for cycle in cycles:
        for action_result in cycle.entry.results:
            match action_result.action:
                case CreateNodeClaim():
                    yield from action_result.action.pods
                case EvictPod() | DeletePod():
                    yield f"{action_result.action.namespace}/{action_result.action.name}"
                case _:
                    pass


def find_full_name(evidence: Evidence, kind: ExplainKind, query: str) -> str:
    """Return the full name of the object that *query* means.

    *query* can be a short name, the provider ID or address of a node, or the name of a workload.

    Raises:
        UnknownObject: no object matches, or more than one.
    """
    known_names = _list_known_names(evidence, kind)
    query_name = _normalize_name(kind, query)
    if query_name in known_names:
        return query_name
    matches = sorted(name for name in known_names if query_name in (name.partition("/")[2], name.partition(".")[0]))
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UnknownObject(f"{kind} {query}: there are several: write one of {join_names(matches, MAX_LISTED_NAMES)}")
    workload_pods = _find_workload_pods(known_names, query_name) if kind == "pod" else []
    if len(workload_pods) == 1:
        return workload_pods[0]
    if workload_pods:
        raise UnknownObject(
            f"pod {query}: there is none of that name, but {_describe_pods(evidence, workload_pods)}: write one of them"
        )
    other_kind = next(
        (
            candidate_kind
            for candidate_kind in EXPLAIN_KINDS
            if candidate_kind != kind
            and _normalize_name(candidate_kind, query) in _list_known_names(evidence, candidate_kind)
        ),
        None,
    )
    if other_kind is not None:
        raise UnknownObject(
            f"{kind} {query}: not known; there is a {other_kind} of that name: `joiner explain {other_kind} {query}`"
        )
    raise UnknownObject(f"{kind} {query}: nothing is known of it{_build_hint(known_names, query_name, kind)}")


def _normalize_name(kind: ExplainKind, name: str) -> str:
    """Return *name* without the prefixes of kubectl and AWS, and an IP address as a node name of EC2.

    >>> _normalize_name("node", "aws:///us-east-1a/i-0a31"), _normalize_name("pod", "pod/shop/cart-0")
    ('i-0a31', 'shop/cart-0')
    >>> _normalize_name("node", "10.0.64.5")
    'ip-10-0-64-5'
    """
    prefix_parts = name.partition("/")
    if prefix_parts[0].lower() in (kind, f"{kind}s", f"{kind}s.karpenter.sh", "po" if kind == "pod" else "no"):
        name = prefix_parts[2]
    if kind in _NODE_KINDS:
        name = name.rpartition("/")[2]
        if _IPV4_PATTERN.fullmatch(name):
            return f"ip-{name.replace('.', '-')}"
    return name


def _find_workload_pods(known_names: frozenset[str], workload: str) -> list[str]:
    """Return the pods whose names match those that *workload* creates; *workload* is ``web`` or ``shop/web``."""
    namespace, _, name = workload.rpartition("/")
    pod_name_pattern = re.compile(rf"{re.escape(name)}(-[a-z0-9]{{1,10}})?-([a-z0-9]{{5}}|\d+)")
    return sorted(
        pod_name
        for pod_name in known_names
        if namespace in ("", pod_name.partition("/")[0])
        and pod_name_pattern.fullmatch(pod_name.partition("/")[2]) is not None
    )


def _describe_pods(evidence: Evidence, pods: list[str]) -> str:
    """Return *pods* with their last verdicts as text, pending pods first."""
    verdict_by_pod = {note.name: note.verdict for _, note in evidence.iterate_notes("Pod")}
    pending_pods = [pod for pod in pods if pod in verdict_by_pod and "/" not in verdict_by_pod[pod]]
    sorted_pods = [*pending_pods, *(pod for pod in pods if pod not in pending_pods)]
    descriptions = [f"{pod} ({verdict_by_pod[pod]})" if pod in verdict_by_pod else pod for pod in sorted_pods]
    counts_text = f"{format_count(len(pods), 'pod')} that may be its own, {len(pending_pods)} without a place"
    return f"{counts_text}: {join_names(descriptions, MAX_LISTED_NAMES)}"


def _build_hint(known_names: frozenset[str], query: str, kind: ExplainKind) -> str:
    name_by_short_name = {name: name for name in known_names} | {
        name.partition("/")[2]: name for name in known_names if "/" in name
    }
    close_names = [
        name_by_short_name[match]
        for match in get_close_matches(query, sorted(name_by_short_name), n=3, cutoff=_MIN_SIMILARITY_RATIO)
    ]
    close_names += [name for name in sorted(known_names) if query in name]
    if close_names:
        return f"; do you mean {' or '.join(dict.fromkeys(close_names[:3]))}?"
    if known_names:
        return f"; known are {join_names(sorted(known_names), MAX_LISTED_NAMES)}"
    return f", nor of any other {kind}"
