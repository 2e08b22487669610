"""Replay of a recorded decision from its record, without requests and without effects."""

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from cli.replay.replay_driver import ReplayDriver, normalize_action
from shared.cycles.catalog import decide_node_class_statuses
from shared.cycles.disrupt import decide_disruption
from shared.cycles.interrupt import handle_interruptions
from shared.cycles.lifecycle import advance_lifecycle
from shared.cycles.provision import decide_provisioning
from shared.cycles.setup.decision_driver import run_decision
from shared.cycles.setup.run_cycle import CycleReport
from shared.cycles.setup.time_limit import Deadline
from shared.decide.launch.money.interruption_costs import price_interruptions
from shared.decide.scheduling.templates.node_overlays import apply_overlays
from shared.model.cloud_provider.instance_type import Catalog
from shared.model.cluster import ClusterSnapshot
from shared.model.decisions.action import Action
from shared.model.decisions.decision_requests import DecisionProcess
from shared.report.journal.decision_record import DecisionInputs, DecisionRecord
from shared.report.journal.journal import DecisionNote, JournalEntry

DECISION_NOTE_KINDS: Final = {"provision": ("Pod",), "interrupt": ("Pod",), "disrupt": ("Command", "Node", "NodePool")}
"""Kinds of the journal notes that belong to the decision, by function."""
LISTS_READ: Final = {"catalog": ("node_classes",)}
"""The lists of a ClusterSnapshot that a function reads, if not all."""
_LAUNCH_NOTE_KINDS: Final = ("NodeClaim", "NodePool")
"""Kinds of the notes about the results of launches."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The actions and notes that a cycle decided."""

    actions: tuple[Action, ...]
    notes: tuple[DecisionNote, ...]


def build_recorded_decision(entry: JournalEntry, record: DecisionRecord) -> Decision:
    """Return the decision that the journal recorded for *record*."""
    return Decision(
        actions=tuple(normalize_action(result.action) for result in entry.results[: record.summary.decided]),
        notes=_filter_notes(entry, record, entry.notes),
    )


def build_cluster(record: DecisionRecord, catalog: Catalog | None) -> ClusterSnapshot:
    """Return the cluster snapshot that was decided on; *catalog* is the one that *record* names."""
    cluster = replace(record.cluster, catalog=catalog, launch_groups=record.inputs.launch_groups)
    return price_interruptions(apply_overlays(cluster))


def replay_decision(
    entry: JournalEntry, record: DecisionRecord, cluster: ClusterSnapshot, overlaid_catalog: Catalog | None = None
) -> Decision:
    """Decide about *cluster* again with all other inputs as recorded; actions get their recorded outcomes.

    *overlaid_catalog* is the catalog that `lifecycle` applied NodeOverlays to.
    """
    driver = ReplayDriver(entry, record.inputs, cluster, overlaid_catalog)
    report = run_decision(start_decision(entry.function, cluster, record.inputs), driver.perform_request)
    return Decision(
        actions=tuple(normalize_action(outcome.action) for outcome in report.outcomes),
        notes=_filter_notes(entry, record, report.notes),
    )


def start_decision(function: str, cluster: ClusterSnapshot, inputs: DecisionInputs) -> DecisionProcess[CycleReport]:
    """Return the decision of *function* without a time limit; launches only if *inputs* has recorded answers."""
    match function:
        case "provision":
            return decide_provisioning(cluster, inputs, Deadline(), has_launches=inputs.answers is not None)
        case "interrupt":
            return handle_interruptions(cluster, inputs, Deadline())
        case "lifecycle":
            return advance_lifecycle(cluster, inputs)
        case "catalog":
            return decide_node_class_statuses(cluster, inputs)
        case _:
            return decide_disruption(cluster, inputs, Deadline())


def _filter_notes(
    entry: JournalEntry, record: DecisionRecord, notes: Iterable[DecisionNote]
) -> tuple[DecisionNote, ...]:
    kinds = DECISION_NOTE_KINDS.get(entry.function, ())
    if entry.function == "provision" and record.inputs.answers is not None:
        kinds += _LAUNCH_NOTE_KINDS
    return tuple(note for note in notes if note.kind in kinds)
