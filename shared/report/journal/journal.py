"""The journal: one document per cycle in the bucket, one line per cycle in the log.

It records what was seen (a digest), what was decided and why (actions and notes), and the outcomes. Cycles that had
no changes write only the log line.
"""

from collections import Counter
from datetime import datetime
from typing import Final

import msgspec

from shared.errors import Fault
from shared.model.core.metadata import Problem
from shared.model.decisions.action import Action, FollowUp
from shared.ports.world import World
from shared.report.log import LineLevel, log

JOURNAL_PREFIX: Final = "journal/"
LAUNCHED_VERDICT: Final = "launched"
"""The verdict on a NodeClaim that has an instance; its note has the price."""


class ActionResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An action and its result."""

    action: Action
    result: str
    message: str = ""


class DecisionNote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A decision about one object, in words: the placement of a pod, the verdict on a node."""

    kind: str
    name: str
    verdict: str
    reason: str = msgspec.field(name="why")
    links: tuple[str, ...] = ()
    """Related objects such as ``Node/ip-10-0-0-1``: for a command its candidates, for a node its command."""
    replaced_by: tuple[str, ...] = ()
    """Of a command: the replacement NodeClaims."""
    usd_per_hour: float = 0.0
    """Of a command its savings, of a launched NodeClaim its price."""
    disruption_reason: str = ""
    """Of a command: Underutilized, Empty or Drifted."""
    cause: str = ""
    """Of a pod with the verdict GangNotPlaced: why the first pod of the gang that does not fit is unschedulable."""


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of one cycle."""

    function: str
    trigger: str
    at: datetime
    cluster: str
    """Digest of the snapshot; "" if none was taken."""
    counts: dict[str, float] = {}
    notes: tuple[DecisionNote, ...] = ()
    problems: tuple[Problem, ...] = ()
    results: tuple[ActionResult, ...] = msgspec.field(default=(), name="done")
    calls: dict[str, int] = {}
    """Number of calls to AWS in the cycle, by operation."""
    error: str = ""
    snapshot: str = ""
    """Bucket key of the decision's inputs; "" if they were not stored."""
    code: str = ""
    """Digest of the code that made the decision, if there is a snapshot."""

    @property
    def is_significant(self) -> bool:
        """Whether the entry is worth an object in the bucket: a follow-up alone is not."""
        acted = any(result.result != "done" or not isinstance(result.action, FollowUp) for result in self.results)
        return bool(acted or self.notes or self.problems or self.error)


def build_entry_key(entry: JournalEntry, name: str) -> str:
    """Return the bucket key of the entry: by function, day and instant."""
    return f"{JOURNAL_PREFIX}{build_cycle_id(entry.function, entry.at, name)}.json"


def build_cycle_id(function: str, at: datetime, name: str) -> str:
    """Return the id of the cycle of *function* that started *at*, in the invocation *name*.

    The log lines of the cycle and the key of its journal entry have it.
    """
    return f"{function}/{at:%Y/%m/%d/%H%M%S}-{name or 'cycle'}"


def record_entry(entry: JournalEntry, world: World, write_error: str = "") -> bool:
    """Write the entry to the bucket if it is significant, and its line to the log; return whether it was written.

    *write_error* is the error of an earlier write. If the bucket does not respond, the error is logged and nothing
    stops.
    """
    body = msgspec.json.encode(entry, order="deterministic")
    is_written = False
    if entry.is_significant:
        try:
            world.bucket.put(build_entry_key(entry, world.name), body)
            is_written = True
        except Fault as fault:
            write_error = f"journal entry lost: {type(fault).__name__}: {fault}"
    error = entry.error or write_error
    level: LineLevel = "ERROR" if entry.error else "WARNING" if entry.problems or write_error else "INFO"
    fields: dict[str, object] = {
        "function": entry.function,
        "trigger": entry.trigger,
        "cycle": build_cycle_id(entry.function, entry.at, world.name),
        "seconds": round((world.clock() - entry.at).total_seconds(), 3),
        "counts": entry.counts,
        "calls": entry.calls,
        "actions": dict(
            sorted(Counter(type(result.action).__name__ for result in entry.results if result.result == "done").items())
        ),
        "failed": [
            f"{type(result.action).__name__}: {result.message}" for result in entry.results if result.result == "failed"
        ],
        "problems": [f"{problem.kind} {problem.name}: {problem.message}" for problem in entry.problems],
        "notes": [
            f"{note.kind} {note.name}: {note.verdict}: {note.reason}"
            for note in entry.notes
            if world.settings.log_level == "DEBUG"
        ],
        "error": error,
    }
    message = "cycle failed" if entry.error else "cycle completed"
    log(level, message, world, {name: value for name, value in fields.items() if value or name == "seconds"})
    return is_written


def decode_entry(body: bytes) -> JournalEntry:
    """Decode a journal entry.

    Raises:
        msgspec.DecodeError: *body* is not a journal entry.
    """
    return msgspec.json.decode(body, type=JournalEntry)
