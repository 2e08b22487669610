"""Machines as the journal tells of them: which NodeClaim, Node and instance are one, what it was bought as, its end."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from cli.explain_journals import Cycle
from shared.model.action import (
    Action,
    CreateNodeClaim,
    DeleteObject,
    LaunchInstances,
    PatchMetadata,
    PatchStatus,
    TagInstance,
    TerminateInstances,
)
from shared.model.cluster import Cluster
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.report.journal import LAUNCHED, Entry

_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_CLAIM_TAG: Final = "karpenter.sh/nodeclaim"
_PARTS: Final = ((INSTANCE_TYPE, "instance_type"), (ZONE, "zone"), (CAPACITY_TYPE, "capacity_type"), (NODEPOOL, "pool"))


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """One machine; what the journal does not say is empty."""

    claim: str
    node: str = ""
    instance: str = ""
    pool: str = ""
    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""
    usd_per_hour: float = 0.0
    pods: tuple[str, ...] = ()
    """Whom it was made for."""
    asked_at: datetime | None = None
    asked_why: str = ""
    offerings: int = 0
    """How many EC2 might choose from."""
    launched_at: datetime | None = None
    deleted_at: datetime | None = None
    deleted_why: str = ""
    terminated_at: datetime | None = None

    def names(self) -> frozenset[tuple[str, str]]:
        """Answer what it is called, as (kind, name)."""
        said = (("NodeClaim", self.claim), ("Node", self.node), ("Instance", self.instance))
        return frozenset((kind, name) for kind, name in said if name)


class _Status(msgspec.Struct, frozen=True, kw_only=True):
    """What of a claim's status says who the machine is."""

    provider_id: str | None = msgspec.field(name="providerID", default=None)
    node_name: str | None = msgspec.field(name="nodeName", default=None)


def machines(
    cycles: Iterable[Cycle], live: Cluster | None = None, before: Cluster | None = None
) -> tuple[Machine, ...]:
    """Answer the machines that *cycles* tell of, and those of *live*; a claim that was made again is another.

    *before* is what there was when the first of them began.
    """
    known: dict[str, dict[str, Any]] = dict(_of_cluster(before))
    past: list[tuple[str, dict[str, Any]]] = []
    for cycle in cycles:
        for claim, facts in _of_entry(cycle.entry, known):
            if "asked_at" in facts and "deleted_at" in known.get(claim, {}):
                past.append((claim, known.pop(claim)))
            known.setdefault(claim, {}).update(facts)
    for claim, facts in _of_cluster(live):
        known.setdefault(claim, {}).update(facts)
    return tuple(Machine(claim=claim, **facts) for claim, facts in (*past, *sorted(known.items())))


def machine_of(found: Iterable[Machine], name: str) -> Machine | None:
    """Answer the machine of which *name* is one; the youngest where a Node's name was used again."""
    same = [one for one in found if name and name in (one.claim, one.node, one.instance)]
    return max(same, key=lambda one: (one.asked_at or _LONG_AGO, one.claim), default=None)


def _of_cluster(cluster: Cluster | None) -> Iterator[tuple[str, dict[str, Any]]]:
    for one in cluster.node_claims if cluster is not None else ():
        said = {"node": one.node_name, "instance": one.instance_id} | _labelled(one.meta.labels)
        yield one.name, {key: value for key, value in said.items() if value}


def _of_entry(entry: Entry, known: dict[str, dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for done in entry.done:
        if done.result == "done":
            yield from _of_action(done.action, entry.at, known)
    for note in entry.notes:
        if note.kind == "NodeClaim" and note.verdict == LAUNCHED:
            yield note.name, {"usd_per_hour": note.usd_per_hour}


def _of_action(  # noqa: C901 - one case each
    action: Action, at: datetime, known: dict[str, dict[str, Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    match action:
        case CreateNodeClaim():
            asked = {"asked_at": at, "asked_why": action.why, "pods": action.pods}
            yield action.claim.name, asked | _labelled(action.claim.meta.labels)
        case LaunchInstances():
            number = sum(len(config.overrides) for config in action.group.request.configs)
            yield from ((claim, {"offerings": number}) for claim in action.group.claims)
        case PatchMetadata(kind="NodeClaim") if any(key == INSTANCE_TYPE for key, _ in action.labels):
            yield action.name, {"launched_at": at} | _labelled(action.labels)
        case PatchStatus(kind="NodeClaim"):
            yield action.name, _of_status(action.status)
        case TagInstance():
            tags = dict(action.tags)
            if _CLAIM_TAG in tags:
                node = {"node": tags["Name"]} if "Name" in tags else {}
                yield tags[_CLAIM_TAG], {"instance": action.instance_id} | node
        case DeleteObject(kind="NodeClaim"):
            yield action.name, {"deleted_at": at, "deleted_why": action.why}
        case TerminateInstances():
            for claim, facts in list(known.items()):
                if facts.get("instance") in action.instance_ids:
                    yield claim, {"terminated_at": at}
        case _:
            return


def _of_status(body: str) -> dict[str, Any]:
    try:
        status = msgspec.json.decode(body, type=_Status)
    except msgspec.DecodeError:
        return {}
    said = {"instance": (status.provider_id or "").rpartition("/")[2], "node": status.node_name}
    return {key: value for key, value in said.items() if value}


def _labelled(labels: Iterable[tuple[str, str]]) -> dict[str, str]:
    said = dict(labels)
    return {part: said[key] for key, part in _PARTS if said.get(key)}
