"""The events of a journal entry: a pure function of the entry, so that the same entry always gives the same events.

An event about a change, such as a launch, has an id of its object. An event about a state that lasts, such as pods that
cannot be scheduled, has an id of its objects and the hour: it is reported again every hour. Its key stays the same.
An interruption and a rejected image have the hour too: both can happen again.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from itertools import zip_longest
from typing import Any, Final, TypeVar

from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.decisions.action import PatchMetadata, PublishEvent
from shared.model.karpenter.health.launch_failures import LAUNCHES_PAUSED_REASON
from shared.model.karpenter.health.rejections import CANARY_REJECTED_REASON, is_image, parse_rejected_identity
from shared.report.event_bus.event_details import (
    MAX_MESSAGE_CHARS,
    MAX_NAMES,
    DisruptionPhase,
    EventDetail,
    ImageRejected,
    LaunchBreakerOpened,
    LaunchesPaused,
    LimitReached,
    NodeDisrupted,
    NodeInterrupted,
    NodeLaunched,
    PodsBlocked,
)
from shared.report.journal.journal import LAUNCHED_VERDICT, DecisionNote, JournalEntry

BREAKER_VERDICT: Final = "LaunchBreakerOpen"
"""Verdict of the note about a NodePool whose launches are delayed."""
LIMIT_VERDICT: Final = "LimitExceeded"
NORMAL_VERDICTS: Final = frozenset(("GangIncomplete", "NotReached", "OptedOut"))
"""Verdicts on pods that wait, for the rest of their gang or the next run, or that Joiner ignores: not blocked."""
INTERRUPTION_REASONS: Final = frozenset(
    {
        "CapacityReservationInstanceInterrupted",
        "InstanceStopping",
        "InstanceTerminating",
        "InstanceUnhealthy",
        "ScheduledChangeCancelled",
        "SpotInterrupted",
        "SpotRebalanceRecommendation",
    }
)
"""Reasons of the events about interruption messages."""
PHASES: Final[dict[str, DisruptionPhase]] = {"DRAINING": "Draining", "DONE": "Done", "ROLLED_BACK": "RolledBack"}
"""Phases of a command that are reported."""
DetailT = TypeVar("DetailT", bound=EventDetail)


def derive_events(entry: JournalEntry, *, cluster: str, journal_key: str) -> tuple[EventDetail, ...]:
    """Return the events of *entry*, the journal entry of *cluster* under *journal_key*, in a fixed order."""
    builder = _DetailBuilder(entry, cluster, journal_key)
    return (
        *_derive_launches(entry, builder),
        *_derive_interruptions(entry, builder),
        *_derive_disruptions(entry, builder),
        *_derive_blocked_pods(entry, builder),
        *_derive_breaker_trips(entry, builder),
        *_derive_limits(entry, builder),
        *_derive_class_events(entry, builder),
    )


class _DetailBuilder:
    """Builds details with the fields that all of them have."""

    def __init__(self, entry: JournalEntry, cluster: str, journal_key: str) -> None:
        self._cluster = cluster
        self._hour = f"{entry.at:%Y-%m-%dT%H}"
        self._common = {"cluster": cluster, "function": entry.function, "journal_key": journal_key}

    def build(
        self,
        struct: Callable[..., DetailT],
        subject: tuple[str, ...],
        *occurrence: str,
        **fields: Any,  # noqa: ANN401 - the fields of the struct
    ) -> DetailT:
        """Return the detail of a change of *subject*; *occurrence* distinguishes several changes of it."""
        kind = (self._cluster, getattr(struct, "__name__", ""))
        identity, key = _hash_texts(*kind, *subject, *occurrence), _hash_texts(*kind, *subject)
        return struct(id=identity, key=key, **self._common, **fields)

    def build_hourly(
        self,
        struct: Callable[..., DetailT],
        subject: tuple[str, ...],
        *occurrence: str,
        **fields: Any,  # noqa: ANN401 - the fields of the struct
    ) -> DetailT:
        """Return the detail of something that lasts or is announced again: its id changes every hour."""
        return self.build(struct, subject, self._hour, *occurrence, **fields)


def _derive_launches(entry: JournalEntry, builder: _DetailBuilder) -> Iterator[NodeLaunched]:
    labels_by_claim = {
        result.action.name: dict(result.action.labels)
        for result in entry.results
        if isinstance(result.action, PatchMetadata) and result.action.kind == "NodeClaim" and result.result == "done"
    }
    for note in entry.notes:
        labels = labels_by_claim.get(note.name, {})
        if (note.kind, note.verdict) == ("NodeClaim", LAUNCHED_VERDICT) and INSTANCE_TYPE in labels:
            yield builder.build(
                NodeLaunched,
                (note.name,),
                node_claim=note.name,
                node_pool=labels.get(NODEPOOL, ""),
                instance_type=labels[INSTANCE_TYPE],
                zone=labels.get(ZONE, ""),
                capacity_type=labels.get(CAPACITY_TYPE, ""),
                usd_per_hour=note.usd_per_hour,
            )


def _derive_interruptions(entry: JournalEntry, builder: _DetailBuilder) -> Iterator[NodeInterrupted]:
    """Yield the interruptions; the event on a NodeClaim is followed by the same event on its Node."""
    events = [
        result.action
        for result in entry.results
        if isinstance(result.action, PublishEvent) and result.action.reason in INTERRUPTION_REASONS
    ]
    for event, next_event in zip_longest(events, events[1:]):
        if event.kind != "NodeClaim":
            continue
        has_node = next_event is not None and (next_event.kind, next_event.reason) == ("Node", event.reason)
        yield builder.build_hourly(
            NodeInterrupted,
            (event.name,),
            event.reason,
            node_claim=event.name,
            node=next_event.name if next_event is not None and has_node else "",
            reason=event.reason,
            message=_truncate(event.message),
        )


def _derive_disruptions(entry: JournalEntry, builder: _DetailBuilder) -> Iterator[NodeDisrupted]:
    for note in entry.notes:
        phase = PHASES.get(note.verdict)
        if note.kind != "Command" or phase is None:
            continue
        nodes = [name for kind, _, name in (link.partition("/") for link in note.links) if kind == "Node"]
        yield builder.build(
            NodeDisrupted,
            (note.name,),
            phase,
            command=note.name,
            phase=phase,
            reason=note.disruption_reason,
            nodes=_shorten(nodes),
            node_count=len(nodes),
            replacements=_shorten(note.replaced_by),
            savings_usd_per_hour=note.usd_per_hour,
            message=_truncate(note.reason),
        )


def _derive_blocked_pods(entry: JournalEntry, builder: _DetailBuilder) -> Iterator[PodsBlocked]:
    notes_by_group: dict[tuple[str, str], list[DecisionNote]] = defaultdict(list)
    for note in sorted(_list_blocked(entry.notes), key=lambda note: note.name):
        notes_by_group[note.name.partition("/")[0], note.verdict].append(note)
    for (namespace, reason), notes in sorted(notes_by_group.items()):
        names = [note.name.partition("/")[2] for note in notes]
        yield builder.build_hourly(
            PodsBlocked,
            (namespace, reason),
            *names,
            namespace=namespace,
            pods=_shorten(names),
            pod_count=len(names),
            reason=reason,
            message=_truncate(notes[0].reason),
        )


def _derive_breaker_trips(entry: JournalEntry, builder: _DetailBuilder) -> Iterator[LaunchBreakerOpened]:
    for note in entry.notes:
        if (note.kind, note.verdict) == ("NodePool", BREAKER_VERDICT):
            yield builder.build_hourly(
                LaunchBreakerOpened, (note.name,), node_pool=note.name, message=_truncate(note.reason)
            )


def _derive_limits(entry: JournalEntry, builder: _DetailBuilder) -> Iterator[LimitReached]:
    """Yield one event if a limit blocks pods; which pods it blocks can change often, so the id has only the hour."""
    notes = sorted(
        (note for note in _list_blocked(entry.notes) if note.verdict == LIMIT_VERDICT), key=lambda note: note.name
    )
    if notes:
        yield builder.build_hourly(
            LimitReached,
            (),
            pods=_shorten(note.name for note in notes),
            pod_count=len(notes),
            message=_truncate(notes[0].reason),
        )


def _derive_class_events(entry: JournalEntry, builder: _DetailBuilder) -> Iterator[ImageRejected | LaunchesPaused]:
    """Yield the events about EC2NodeClasses; the same image can be rejected again after an operator approved it."""
    for result in entry.results:
        event = result.action
        if not isinstance(event, PublishEvent) or event.kind != "EC2NodeClass":
            continue
        message = _truncate(event.message)
        if event.reason == LAUNCHES_PAUSED_REASON:
            yield builder.build_hourly(LaunchesPaused, (event.name,), node_class=event.name, message=message)
        elif event.reason == CANARY_REJECTED_REASON:
            identity = parse_rejected_identity(event.message)
            yield builder.build_hourly(
                ImageRejected,
                (event.name, identity),
                node_class=event.name,
                image=identity if is_image(identity) else "",
                launch_configuration="" if is_image(identity) else identity,
                message=message,
            )


def _list_blocked(notes: Iterable[DecisionNote]) -> Iterator[DecisionNote]:
    """Yield the notes about pods that can get no node: the verdicts on placed pods name a node or a NodeClaim."""
    for note in notes:
        if note.kind == "Pod" and "/" not in note.verdict and note.verdict not in NORMAL_VERDICTS:
            yield note


def _hash_texts(*texts: str) -> str:
    return sha256("\n".join(texts).encode()).hexdigest()[:32]


def _shorten(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(names)[:MAX_NAMES]


def _truncate(message: str) -> str:
    return message if len(message) <= MAX_MESSAGE_CHARS else message[: MAX_MESSAGE_CHARS - 1] + "…"
