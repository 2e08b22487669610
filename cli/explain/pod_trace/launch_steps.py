"""The steps of a launch: what the journal, the NodeClaim and the Node record about one NodeClaim."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

import msgspec

from cli.explain.pod_trace.trace import (
    CLAIM_CREATED,
    CLAIM_DELETED,
    FLEET_REQUESTED,
    INITIALIZED,
    LAUNCHED,
    NODE_CREATED,
    REGISTERED,
    TraceStep,
)
from cli.journal.journal import Cycle
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count, join_names
from shared.model.decisions.action import CreateNodeClaim, DeleteObject, LaunchInstances, MarkUnavailable, PatchStatus
from shared.report.journal.journal import JournalEntry
from shared.wire.schema.core import ConditionJson

_STEP_BY_CONDITION: Final = {"Launched": LAUNCHED, "Registered": REGISTERED, "Initialized": INITIALIZED}
_STEP_ORDER: Final = (
    CLAIM_CREATED,
    FLEET_REQUESTED,
    LAUNCHED,
    NODE_CREATED,
    REGISTERED,
    INITIALIZED,
    CLAIM_DELETED,
)


class _ClaimStatus(msgspec.Struct, frozen=True, kw_only=True):
    conditions: tuple[ConditionJson, ...] = ()


def build_launch_steps(
    cycles: Iterable[Cycle], live_cluster: ClusterSnapshot | None, claim: str, node: str
) -> list[TraceStep]:
    """Return the recorded steps of *claim*, in order; *cycles* are those since the pod was planned for it.

    The deletion of the NodeClaim is a step only if its node was never initialized: later deletions are of no concern.
    """
    steps = [step for cycle in cycles for step in _iterate_entry_steps(cycle.entry, claim)]
    steps += _iterate_live_steps(live_cluster, claim, node)
    merged_steps: dict[tuple[str, datetime | None], TraceStep] = {}
    for step in steps:
        is_repeated = step.name in (FLEET_REQUESTED, CLAIM_DELETED)
        key = (step.name, step.at if is_repeated else None)
        if not is_repeated and step.source != "journal":
            merged_steps[key] = step  # the object has its own time; a journal entry has the start of its cycle
        merged_steps.setdefault(key, step)
    is_initialized = (INITIALIZED, None) in merged_steps
    return sorted(
        (step for step in merged_steps.values() if step.name != CLAIM_DELETED or not is_initialized),
        key=lambda step: (_STEP_ORDER.index(step.name), str(step.at)),
    )


def _iterate_entry_steps(entry: JournalEntry, claim: str) -> Iterator[TraceStep]:
    for result in entry.results:
        is_failed = result.result == "failed"
        match result.action:
            case CreateNodeClaim() as action if action.claim.name == claim:
                detail = result.message if is_failed else action.message
                yield _build_step(CLAIM_CREATED, entry.at, claim, detail, is_failed=is_failed)
            case LaunchInstances() as action if claim in action.group.claims:
                refusal = _describe_refusals(entry)
                is_refused = is_failed or _has_deletion(entry, claim)
                detail = "; ".join(filter(None, (result.message, refusal))) or action.message
                yield _build_step(FLEET_REQUESTED, entry.at, claim, detail, is_failed=is_refused)
            case PatchStatus(kind="NodeClaim") as action if action.name == claim and not is_failed:
                yield from _iterate_condition_steps(action.status, claim)
            case DeleteObject(kind="NodeClaim") as action if action.name == claim and not is_failed:
                yield _build_step(CLAIM_DELETED, entry.at, claim, action.message, is_failed=True)
            case _:
                pass


def _iterate_condition_steps(status: str, claim: str) -> Iterator[TraceStep]:
    try:
        conditions = msgspec.json.decode(status, type=_ClaimStatus).conditions
    except msgspec.DecodeError:
        return
    for condition in conditions:
        step = _STEP_BY_CONDITION.get(condition.type)
        if step and condition.status == "True" and condition.last_transition_time is not None:
            yield _build_step(step, condition.last_transition_time, claim)


def _iterate_live_steps(live_cluster: ClusterSnapshot | None, claim: str, node: str) -> Iterator[TraceStep]:
    if live_cluster is None:
        return
    for live_claim in live_cluster.node_claims:
        if claim and live_claim.name == claim:
            if live_claim.meta.created_at is not None:
                yield _build_step(CLAIM_CREATED, live_claim.meta.created_at, claim, source="NodeClaim")
            for condition in live_claim.conditions:
                step = _STEP_BY_CONDITION.get(condition.type)
                if step and condition.status == "True" and condition.since is not None:
                    yield _build_step(step, condition.since, claim, source="NodeClaim")
    for live_node in live_cluster.nodes:
        if live_node.name == node and live_node.meta.created_at is not None:
            yield _build_step(NODE_CREATED, live_node.meta.created_at, claim, source="Node")


def _build_step(
    name: str, at: datetime, claim: str, detail: str = "", *, source: str = "journal", is_failed: bool = False
) -> TraceStep:
    return TraceStep(name=name, at=at, source=source, node_claim=claim, detail=detail, is_failed=is_failed)


def _describe_refusals(entry: JournalEntry) -> str:
    """Return which offerings EC2 refused in the cycle, with the reasons."""
    marks = [result.action for result in entry.results if isinstance(result.action, MarkUnavailable)]
    if not marks:
        return ""
    reasons = sorted({mark.message.partition(": ")[0] for mark in marks})
    return f"EC2 refused {format_count(len(marks), 'offering')}: {join_names(reasons)}"


def _has_deletion(entry: JournalEntry, claim: str) -> bool:
    return any(
        isinstance(result.action, DeleteObject) and result.action.kind == "NodeClaim" and result.action.name == claim
        for result in entry.results
    )
