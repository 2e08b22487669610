"""Decision records: the inputs of a stored decision, so that it can be replayed.

One object for each journal entry in which something was decided, stored before the entry that names it: the
ClusterSnapshot and the other inputs. It names its catalog, which is kept in the bucket for longer.
"""

import gzip
import zlib
from collections.abc import Iterable
from hashlib import sha256
from threading import Lock
from typing import Any, Final

import msgspec

from shared.errors import Fault
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import NODECLASS_FINALIZER, TERMINATION_FINALIZER
from shared.model.decisions.action import (
    Action,
    DeleteLaunchTemplate,
    FollowUp,
    PatchMetadata,
    PatchStatus,
    SetDeletionCost,
    TagInstance,
)
from shared.model.decisions.command import CommandState
from shared.model.decisions.decision_answers import RecordedAnswer
from shared.model.decisions.interruption_message import InterruptionMessage
from shared.model.decisions.month_costs import MonthCosts
from shared.model.decisions.pod_run_time import RunTimeRecord
from shared.model.decisions.workload_history import DemandForecast
from shared.ports.world import World
from shared.report.journal.journal import DecisionNote
from shared.report.journal.journal_entries import ReportedVerdicts
from shared.settings import Settings
from shared.settings_text import decode_texts, encode_texts

SNAPSHOT_PREFIX: Final = "snapshot/"
_FAST_GZIP_LEVEL: Final = 1
_SMALL_GZIP_LEVEL: Final = 6
_OUR_FINALIZERS: Final = frozenset((TERMINATION_FINALIZER, NODECLASS_FINALIZER))
_MAX_SMALL_BYTES: Final = 8 * 1024**2
"""Up to this size the higher compression level is used: it takes at most 0.1 s, and saves a third of the storage."""
_MAX_RECORD_BYTES: Final = 1024**3
"""Larger than any record: 20,000 pods are 47 MB."""
_ADDRESS_SETTINGS: Final = (
    *("kube_endpoint", "table_name", "bucket_name", "queue_prefix", "instance_profile", "price_list", "report_topic"),
    "event_bus",
    "remote_write_url",
    *("commitments_role", "commitments_external_id"),
    *("group_table", "group_member"),
)
_RENAMED_SETTINGS: Final = {
    ("hints", "Given"): ("pod_nominations", "Enabled"),
    ("hints", "Withheld"): ("pod_nominations", "Disabled"),
    ("price_service", "asked"): ("price_service", "reachable"),
}
"""Settings and their texts in records of earlier versions, with today's names and texts."""
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


class DecisionInputs(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The inputs of a decision besides the ClusterSnapshot."""

    setting_texts: dict[str, str] = msgspec.field(name="settings")
    """The text of each setting, by the name of its field: as in the environment, so that every version can read it."""
    command_states: tuple[CommandState, ...] = msgspec.field(default=(), name="standings")
    """Commands, by id, as the cycle found them."""
    cursor: str = ""
    """Where the sweep started."""
    reported_verdicts: ReportedVerdicts | None = msgspec.field(default=None, name="told")
    """Verdicts that the container had already reported."""
    messages: tuple[InterruptionMessage, ...] = msgspec.field(default=(), name="notices")
    is_planner: bool = True
    """Whether the cycle held the planner's lease: `interrupt` also acts without it, but then plans nothing."""
    overtaken: tuple[int, ...] = ()
    """Versions of the planner's lease whose holders never released it."""
    launch_groups: tuple[LaunchGroup, ...] = ()
    """Of `lifecycle`: the launch groups, which the stored ClusterSnapshot lacks."""
    forecasts: tuple[DemandForecast, ...] = ()
    """Of `disrupt`: the demand forecasts of the workload history."""
    run_times: tuple[RunTimeRecord, ...] = ()
    """Of `disrupt`: the run times of the families of finite pods in the cluster."""
    month_costs: MonthCosts | None = None
    """Of `provision`: the costs of the month, if there is a monthly budget."""
    answers: tuple[RecordedAnswer, ...] | None = None
    """The answers to the decision's requests, in order; None: written by a version that did not record them."""

    def decode_settings(self) -> Settings:
        """Return the settings; those that the record does not have have their defaults.

        Raises:
            ValueError: a setting has a value that is not allowed.
        """
        texts = dict(_RENAMED_SETTINGS.get(item, item) for item in self.setting_texts.items())
        return decode_texts(Settings, texts)


class DecisionSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of a decision."""

    decided: int
    """This many of the entry's actions, the first ones, follow from the stored inputs alone."""
    cut: str = ""
    """Why a replay can differ: the time limit or another cycle ended the decision; "" if nothing did."""


class DecisionRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The stored object."""

    inputs: DecisionInputs = msgspec.field(name="given")
    summary: DecisionSummary = msgspec.field(name="made")
    catalog_key: str = msgspec.field(default="", name="catalogue")
    """Bucket key of the catalog; "" if there was none."""
    cluster: ClusterSnapshot
    """Without its catalog."""


class _StoredRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The stored object with its cluster encoded as JSON, and with inputs that an earlier version may have written."""

    inputs: Any = msgspec.field(name="given")
    summary: DecisionSummary = msgspec.field(name="made")
    catalog_key: str = msgspec.field(default="", name="catalogue")
    cluster: msgspec.Raw


def build_inputs(settings: Settings) -> DecisionInputs:
    """Return the inputs that every cycle has: *settings* without addresses, which decide nothing."""
    return DecisionInputs(setting_texts=encode_texts(settings) | dict.fromkeys(_ADDRESS_SETTINGS, ""))


def should_store_record(world: World, actions: Iterable[Action], notes: Iterable[DecisionNote]) -> bool:
    """Return whether a cycle stores a record: it decided something, and records are enabled.

    A pod that still fits where it was placed before is no decision: unschedulable pods get an event. Nor are the notes
    of `lifecycle` about nodes in every other cycle.
    """
    is_decision = not all(_is_routine(action) for action in actions) or any(note.kind != "Pod" for note in notes)
    return is_decision and world.settings.snapshots == "on"


def _is_routine(action: Action) -> bool:
    """Return whether *action* only requeues or records a state: pods arrived on a node, idle time, tags."""
    match action:
        case FollowUp() | TagInstance() | DeleteLaunchTemplate() | SetDeletionCost():
            return True
        case PatchMetadata():
            return action.finalizers is None or not _OUR_FINALIZERS.isdisjoint(
                action.finalizers
            )  # finalizers are set, not removed
        case PatchStatus():
            return action.kind in ("NodeClaim", "NodePool")  # a changed condition is also published as an event
        case _:
            return False


def write_record(
    cluster: bytes, catalog_key: str, inputs: DecisionInputs, summary: DecisionSummary, world: World
) -> tuple[str, str]:
    """Write the record with the encoded *cluster*; return its key, and the error message, "" if it was written.

    The key is a digest of the content: an object under that key is this record.
    """
    document = _StoredRecord(inputs=inputs, summary=summary, catalog_key=catalog_key, cluster=msgspec.Raw(cluster))
    text = _ENCODER.encode(document)
    body = gzip.compress(text, _SMALL_GZIP_LEVEL if len(text) <= _MAX_SMALL_BYTES else _FAST_GZIP_LEVEL, mtime=0)
    key = f"{SNAPSHOT_PREFIX}{sha256(body).hexdigest()[:32]}.json.gz"
    try:
        world.bucket.put(key, body)
    except Fault as fault:
        return "", f"snapshot lost: {type(fault).__name__}: {fault}"
    return key, ""


def decode_record(body: bytes) -> DecisionRecord:
    """Decode what `write_record` wrote.

    Raises:
        ValueError: *body* is not a record, or it is truncated.
    """
    decompressor = zlib.decompressobj(wbits=31)
    try:
        text = decompressor.decompress(body, _MAX_RECORD_BYTES)
    except zlib.error as error:
        raise ValueError(f"truncated: {error}") from None
    if not decompressor.eof:
        raise ValueError("truncated, or too large")
    with _DECODING_LOCK:
        stored_record = msgspec.json.decode(text, type=_StoredRecord)
        return DecisionRecord(
            inputs=msgspec.convert(_convert_old_answers(stored_record.inputs), DecisionInputs),
            summary=stored_record.summary,
            catalog_key=stored_record.catalog_key,
            cluster=msgspec.json.decode(stored_record.cluster, type=ClusterSnapshot),
        )


_DECODING_LOCK: Final = Lock()
"""msgspec inspects the structs of a type when it decodes the first value. Threads that do that at once can crash."""


_ANSWERS_BY_OLD_FIELD: Final = {
    "rounds": ("ObservedChanges", "LimitConflicts", "FleetResults"),
    "kept": ("SparedInstances", "ExistingTemplates", "CleanupDue", "AppliedOverlays"),
    "resolved": ("AccountAnswers",),
}
"""Fields of earlier versions, one for each function: the answers that each document in the field contains."""


def _convert_old_answers(inputs: Any) -> Any:  # noqa: ANN401 - JSON
    """Return *inputs* with the answers that an earlier version stored in other fields."""
    if not isinstance(inputs, dict) or _ANSWERS_BY_OLD_FIELD.keys().isdisjoint(inputs):
        return inputs
    answers = [
        document | {"answer": answer}
        for field in inputs.keys() & _ANSWERS_BY_OLD_FIELD.keys()
        for document in (inputs[field] if field == "rounds" else (inputs[field],))
        for answer in _ANSWERS_BY_OLD_FIELD[field]
    ]
    return inputs | {"answers": answers, "launch_groups": inputs.get("kept", {}).get("launch_groups", ())}
