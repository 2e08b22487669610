"""The fleet in the newest decision record of a cluster that can be read."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

import msgspec

from cli.facts.mode import describe_mode
from cli.hub.summary.newest_entries import EntryFields
from cli.replay.rerun import build_cluster
from cli.status.summary import FleetStatus, build_fleet_status
from shared.errors import NotFound
from shared.model.core.metadata import is_condition_true
from shared.ports.storage import Bucket
from shared.report.journal.decision_record import DecisionRecord, decode_record
from shared.settings import Settings
from shared.state.cluster_state import ClusterState
from shared.store.catalog_format import decode_catalog

_MODE_SETTINGS: Final = ("mode", "disruption", "disruption_paused")


class HubPool(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of a NodePool."""

    name: str
    nodes: int
    usd_per_hour: float


class RecordedFleet(msgspec.Struct, frozen=True, kw_only=True):
    """The fleet of a decision."""

    at: datetime
    pools: tuple[HubPool, ...]
    usd_per_hour: float | None
    drifted_nodes: int
    pauses: tuple[str, ...]
    """Pauses by people and by settings, in words."""
    kubernetes_version: str
    """Version of the control plane; "" if no decision record contains it."""
    code: str


def read_recorded_fleet(bucket: Bucket, entries: Sequence[EntryFields], messages: list[str]) -> RecordedFleet | None:
    """Return the fleet of the newest decision record of *entries*; *messages* gets what cannot be read.

    Raises:
        Fault: the bucket cannot be read.
    """
    fleet: RecordedFleet | None = None
    for entry in sorted(entries, key=lambda entry: (entry.at, entry.function), reverse=True):
        try:
            record = decode_record(bucket.get(entry.snapshot))
            version = "" if record.cluster.facts is None else record.cluster.facts.version
            if fleet is None:
                fleet = _build_fleet(bucket, entry, record)
        except (NotFound, ValueError) as error:
            messages.append(f"{entry.snapshot}: the decision record or its catalog could not be read: {error}")
            continue
        if version:  # the records of `disrupt` do not contain it
            return msgspec.structs.replace(fleet, kubernetes_version=version)
    return fleet


def _build_fleet(bucket: Bucket, entry: EntryFields, record: DecisionRecord) -> RecordedFleet:
    catalog = decode_catalog(bucket.get(record.catalog_key)) if record.catalog_key else None
    cluster = build_cluster(record, catalog)
    status = build_fleet_status(ClusterState(cluster))
    usd_per_hour = status.usd_per_hour
    return RecordedFleet(
        at=entry.at,
        pools=tuple(
            HubPool(
                name=pool.name,
                nodes=pool.ready + pool.in_flight + pool.deleting,
                usd_per_hour=round(pool.usd_per_hour, 6),
            )
            for pool in status.pools
        ),
        usd_per_hour=None if usd_per_hour is None else round(usd_per_hour, 6),
        drifted_nodes=sum(is_condition_true(claim.conditions, "Drifted") for claim in cluster.node_claims),
        pauses=tuple(_describe_pauses(record, status)),
        kubernetes_version="",
        code=entry.code,
    )


def _describe_pauses(record: DecisionRecord, status: FleetStatus) -> Iterator[str]:
    texts = record.inputs.setting_texts
    mode_texts = {name: texts[name] for name in _MODE_SETTINGS if texts.get(name)}
    mode = describe_mode(msgspec.convert(mode_texts | {"cluster_name": "", "region": ""}, Settings, strict=False))
    if mode.state != "active":
        yield mode.message
    for active in status.pauses:
        scope = f"NodePool {active.pool}: " if active.pool else ""
        yield f"{scope}{active.pause.describe() or active.key}"
