"""The evidence for an explanation (journal, live cluster, node records), and the lookup of object names in it."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import cached_property
from typing import Final

import msgspec

from cli.explain.history import MAX_LISTED_NAMES
from cli.explain.kinds import EXPLAIN_KINDS, ExplainKind
from cli.explain.node_records import NodeRecord, build_node_records
from cli.journal.journal import Cycle, Journal
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count, join_names, pluralize
from shared.model.decisions.action import CreateNodeClaim, DeletePod, EvictPod
from shared.report.journal.journal import DecisionNote

_MIN_SIMILARITY_RATIO: Final = 0.6
_IPV4_PATTERN: Final = re.compile(r"\d+\.\d+\.\d+\.\d+")
_NODE_KINDS: Final = ("node", "nodeclaim")
_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)
_LIVE_FIELDS: Final = {"pod": "pods", "node": "nodes", "nodeclaim": "nodes", "nodepool": "node_pools"}
_TEMPLATE_HASH_PATTERN: Final = "[bcdfghjklmnpqrstvwxz2456789]{1,10}"
"""The suffix that a Deployment gives its ReplicaSets: Kubernetes uses no vowels."""


class UnknownObject(Exception):
    """No object of that name is known; the message contains a fix."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True, dict=True):
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
        yield from self._notes_by_name.get((kind, name), ())

    @cached_property
    def _notes_by_name(self) -> dict[tuple[str, str], list[tuple[datetime, DecisionNote]]]:
        """The notes by kind and name; all notes of a kind have the name ""."""
        notes_by_name: dict[tuple[str, str], list[tuple[datetime, DecisionNote]]] = defaultdict(list)
        for cycle in self.cycles:
            for note in cycle.entry.notes:
                notes_by_name[note.kind, ""].append((cycle.entry.at, note))
                if note.name:
                    notes_by_name[note.kind, note.name].append((cycle.entry.at, note))
        return notes_by_name


def build_evidence(journal: Journal, live_cluster: ClusterSnapshot | None) -> Evidence:
    """Return the evidence from the journal and, if there is one, the live cluster."""
    records = build_node_records(journal.cycles, live_cluster)
    return Evidence(journal=journal, live_cluster=live_cluster, node_records=records)


def _list_known_names(evidence: Evidence, kind: ExplainKind) -> frozenset[str]:
    """Return the names of all objects of *kind* that the evidence mentions."""
    live_cluster = evidence.live_cluster
    live_objects = getattr(live_cluster, _LIVE_FIELDS.get(kind, ""), ())
    names = {live_object.name for live_object in live_objects}
    if kind in _NODE_KINDS:
        names |= {name for record in evidence.node_records for _, name in record.list_names()}
        names |= {note.name for object_kind in ("Node", "NodeClaim") for _, note in evidence.iterate_notes(object_kind)}
        return frozenset(names)
    names |= {note.name for _, note in evidence.iterate_notes(EXPLAIN_KINDS[kind]) if note.name != "*"}
    problems = (problem for cycle in evidence.cycles for problem in cycle.entry.problems)
    names |= {problem.name for problem in problems if problem.kind == EXPLAIN_KINDS[kind]}
    if kind == "pod":
        names |= set(_list_pods_of_actions(evidence.cycles))
    if kind == "nodepool":
        names |= {record.pool for record in evidence.node_records if record.pool}
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
    """Return the full name of the object that *query* identifies.

    *query* can be a short name, the provider ID or IP address of a node, or the name of a workload: then it is an
    unschedulable pod of the workload, or the pod with the newest decision if all are scheduled.

    Raises:
        UnknownObject: no object matches, or objects in several namespaces.
    """
    known_names = _list_known_names(evidence, kind)
    query_name = _normalize_name(kind, query)
    if query_name in known_names:
        return query_name
    matches = sorted(name for name in known_names if query_name in (name.partition("/")[2], name.partition(".")[0]))
    if not matches and kind == "pod":
        matches = _list_workload_pods(evidence, known_names, query_name)
        if len({name.partition("/")[0] for name in matches}) == 1:
            return matches[0]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UnknownObject(f"{kind} {query} is ambiguous: write one of {join_names(matches, MAX_LISTED_NAMES)}")
    for other_kind in EXPLAIN_KINDS:
        if _normalize_name(other_kind, query) in _list_known_names(evidence, other_kind):
            raise UnknownObject(
                f"{kind} {query} not found, but there is a {other_kind} of this name: "
                f"`joiner explain {other_kind} {query}`"
            )
    raise UnknownObject(f"{kind} {query} not found{_build_hint(known_names, query_name, kind)}")


def describe_workload(evidence: Evidence, query: str, pod: str) -> str:
    """Return the other pods of the workload *query*, of which *pod* is explained; "" if *query* names *pod* itself."""
    query_name = _normalize_name("pod", query)
    if query_name in (pod, pod.partition("/")[2]):
        return ""
    pods = _list_workload_pods(evidence, _list_known_names(evidence, "pod"), query_name)
    other_pods = join_names([name for name in pods if name != pod], MAX_LISTED_NAMES)
    return f"{format_count(len(pods), 'pod')} of {query_name}" + (f"; the others: {other_pods}" if other_pods else "")


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


def _list_workload_pods(evidence: Evidence, known_names: frozenset[str], workload: str) -> list[str]:
    """Return the pods whose names match those that *workload* creates: unschedulable pods first, then newest first.

    *workload* is the name of a Deployment, StatefulSet, DaemonSet or Job, with or without its namespace.
    """
    namespace, _, name = workload.rpartition("/")
    pod_name_pattern = re.compile(rf"{re.escape(name)}(-{_TEMPLATE_HASH_PATTERN})?-([a-z0-9]{{5}}|\d+)")
    pods = (
        pod
        for pod in known_names
        if namespace in ("", pod.partition("/")[0]) and pod_name_pattern.fullmatch(pod.partition("/")[2]) is not None
    )
    last_notes = {note.name: (at, note) for at, note in evidence.iterate_notes("Pod")}
    by_name = sorted(pods)
    by_age = sorted(by_name, key=lambda pod: last_notes[pod][0] if pod in last_notes else _EARLIEST, reverse=True)
    return sorted(by_age, key=lambda pod: pod not in last_notes or "/" in last_notes[pod][1].verdict)


def _build_hint(known_names: frozenset[str], query: str, kind: ExplainKind) -> str:
    name_by_short_name = {name.partition("/")[2] or name: name for name in known_names} | dict(
        zip(known_names, known_names, strict=True)
    )
    similar_names = get_close_matches(query, sorted(name_by_short_name), n=3, cutoff=_MIN_SIMILARITY_RATIO)
    close_names = [name_by_short_name[match] for match in similar_names]
    close_names += [name for name in sorted(known_names) if query in name]
    if close_names:
        return f"; did you mean {' or '.join(dict.fromkeys(close_names[:3]))}?"
    if known_names:
        return f"; the journal contains {join_names(sorted(known_names), MAX_LISTED_NAMES)}"
    return f"; the journal has no {pluralize(kind)}"
