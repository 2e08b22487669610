"""The phases of a disruption command, as one decision: proposed, started, draining, done."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from cli.fleet.decisions.decision_titles import describe_phase
from cli.journal.journal_decisions import JournalDecision


def get_command(decision: JournalDecision) -> str:
    """Return the name of the disruption command that *decision* is a phase of; "" if it is another decision."""
    kind, name = decision.objects[0] if decision.objects else ("", "")
    return name if kind == "Command" else ""


def group_phases(decisions: Iterable[JournalDecision]) -> list[tuple[JournalDecision, ...]]:
    """Return *decisions*, oldest first, with all phases of a command together; a rollback is not a phase."""
    groups: list[list[JournalDecision]] = []
    group_by_command: dict[str, list[JournalDecision]] = {}
    for decision in decisions:
        command = "" if decision.is_failed else get_command(decision)
        if command in group_by_command:
            group_by_command[command].append(decision)
            continue
        groups.append([decision])
        if command:
            group_by_command[command] = groups[-1]
    return [tuple(group) for group in groups]


def merge_phases(phases: Sequence[JournalDecision]) -> JournalDecision:
    """Return the decision of *phases*, which is that of the first with the objects of all."""
    if len(phases) == 1:
        return phases[0]
    objects = dict.fromkeys(name for phase in phases for name in phase.objects)
    savings = next((phase.saves_usd_per_hour for phase in phases if phase.saves_usd_per_hour), None)
    return replace(phases[0], step="", objects=tuple(objects), saves_usd_per_hour=savings)


def list_phase_lines(phases: Sequence[JournalDecision]) -> Iterator[str]:
    """Yield when each of several *phases* began, in UTC, and what happens in it."""
    if len(phases) == 1:
        return
    for phase in phases:
        action = phase.reason.partition("; ")[0] if phase.reason != phases[0].reason else ""
        yield f"{phase.cycle.entry.at:%H:%M:%S} {describe_phase(phase.step)}{f': {action}' if action else ''}"
