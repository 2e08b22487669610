"""Node records from the journal: which NodeClaim, Node and instance belong together, and how they ended.

A record also has what was requested and what was launched.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from cli.journal.journal import Cycle
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.decisions import action as actions
from shared.report.journal.journal import LAUNCHED_VERDICT, JournalEntry

_EARLIEST_INSTANT: Final = datetime.min.replace(tzinfo=UTC)
_NODE_CLAIM_TAG: Final = "karpenter.sh/nodeclaim"
_LABEL_FIELDS: Final = (
    (INSTANCE_TYPE, "instance_type"),
    (ZONE, "zone"),
    (CAPACITY_TYPE, "capacity_type"),
    (NODEPOOL, "pool"),
)


class NodeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A NodeClaim with its Node and instance; values that the journal does not contain are empty."""

    claim: str
    node: str = ""
    instance: str = ""
    pool: str = ""
    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""
    usd_per_hour: float = 0.0
    pods: tuple[str, ...] = ()
    """The pods that it was created for."""
    asked_at: datetime | None = None
    asked_why: str = ""
    offerings: int = 0
    """Number of offerings that EC2 could choose from."""
    launched_at: datetime | None = None
    deleted_at: datetime | None = None
    deleted_why: str = ""
    terminated_at: datetime | None = None

    def list_names(self) -> frozenset[tuple[str, str]]:
        """Return its names as pairs (kind, name)."""
        all_names = (("NodeClaim", self.claim), ("Node", self.node), ("Instance", self.instance))
        return frozenset((kind, name) for kind, name in all_names if name)


class _NodeClaimStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a NodeClaim's status that identifies its instance and Node."""

    provider_id: str | None = msgspec.field(name="providerID", default=None)
    node_name: str | None = msgspec.field(name="nodeName", default=None)


def build_node_records(
    cycles: Iterable[Cycle], live_cluster: ClusterSnapshot | None = None, initial_cluster: ClusterSnapshot | None = None
) -> tuple[NodeRecord, ...]:
    """Return the node records from *cycles* and from *live_cluster*; a recreated NodeClaim has a new record.

    *initial_cluster* is the cluster snapshot from before the first cycle.
    """
    facts_by_claim: dict[str, dict[str, Any]] = dict(_collect_cluster_facts(initial_cluster))
    earlier_records: list[tuple[str, dict[str, Any]]] = []
    for cycle in cycles:
        for claim, facts in _collect_entry_facts(cycle.entry, facts_by_claim):
            if "asked_at" in facts and "deleted_at" in facts_by_claim.get(claim, {}):
                earlier_records.append((claim, facts_by_claim.pop(claim)))
            facts_by_claim.setdefault(claim, {}).update(facts)
    for claim, facts in _collect_cluster_facts(live_cluster):
        facts_by_claim.setdefault(claim, {}).update(facts)
    return tuple(
        NodeRecord(claim=claim, **facts) for claim, facts in (*earlier_records, *sorted(facts_by_claim.items()))
    )


def find_node_record(records: Iterable[NodeRecord], name: str) -> NodeRecord | None:
    """Return the record that has *name* as one of its names; the most recent if a Node's name was reused."""
    matches = [record for record in records if name and name in (record.claim, record.node, record.instance)]
    return max(matches, key=lambda record: (record.asked_at or _EARLIEST_INSTANT, record.claim), default=None)


def _collect_cluster_facts(cluster: ClusterSnapshot | None) -> Iterator[tuple[str, dict[str, Any]]]:
    for node_claim in cluster.node_claims if cluster is not None else ():
        facts = {"node": node_claim.node_name, "instance": node_claim.instance_id} | _extract_label_facts(
            node_claim.meta.labels
        )
        yield node_claim.name, {key: value for key, value in facts.items() if value}


def _collect_entry_facts(
    entry: JournalEntry, facts_by_claim: dict[str, dict[str, Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    for action_result in entry.results:
        if action_result.result == "done":
            yield from _collect_action_facts(action_result.action, entry.at, facts_by_claim)
    for note in entry.notes:
        if note.kind == "NodeClaim" and note.verdict == LAUNCHED_VERDICT:
            yield note.name, {"usd_per_hour": note.usd_per_hour}


def _collect_action_facts(  # noqa: C901 - one case each
    action: actions.Action, at: datetime, facts_by_claim: dict[str, dict[str, Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    match action:
        case actions.CreateNodeClaim():
            creation_facts = {"asked_at": at, "asked_why": action.message, "pods": action.pods}
            yield action.claim.name, creation_facts | _extract_label_facts(action.claim.meta.labels)
        case actions.LaunchInstances():
            offering_count = sum(len(config.overrides) for config in action.group.request.configs)
            yield from ((claim, {"offerings": offering_count}) for claim in action.group.claims)
        case actions.PatchMetadata(kind="NodeClaim") if any(key == INSTANCE_TYPE for key, _ in action.labels):
            yield action.name, {"launched_at": at} | _extract_label_facts(action.labels)
        case actions.PatchStatus(kind="NodeClaim"):
            yield action.name, _parse_status_facts(action.status)
        case actions.TagInstance():
            tags = dict(action.tags)
            if _NODE_CLAIM_TAG in tags:
                node = {"node": tags["Name"]} if "Name" in tags else {}
                yield tags[_NODE_CLAIM_TAG], {"instance": action.instance_id} | node
        case actions.DeleteObject(kind="NodeClaim"):
            yield action.name, {"deleted_at": at, "deleted_why": action.message}
        case actions.TerminateInstances():
            for claim, facts in list(facts_by_claim.items()):
                if facts.get("instance") in action.instance_ids:
                    yield claim, {"terminated_at": at}
        case _:
            return


def _parse_status_facts(body: str) -> dict[str, Any]:
    try:
        status = msgspec.json.decode(body, type=_NodeClaimStatus)
    except msgspec.DecodeError:
        return {}
    facts = {"instance": (status.provider_id or "").rpartition("/")[2], "node": status.node_name}
    return {key: value for key, value in facts.items() if value}


def _extract_label_facts(labels: Iterable[tuple[str, str]]) -> dict[str, str]:
    label_values = dict(labels)
    return {part: label_values[key] for key, part in _LABEL_FIELDS if label_values.get(key)}
