"""Differences between two decisions: in their actions, and in their notes on pods, nodes and commands."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from cli.journal.action_text import build_action_key, describe_action
from cli.journal.fleet_request_text import describe_request_differences
from cli.replay.rerun import Decision
from shared.model.decisions.action import Action, CreateNodeClaim, FollowUp, LaunchInstances, PublishEvent
from shared.report.journal.journal import LAUNCHED_VERDICT, DecisionNote

T = TypeVar("T", bound=Action | DecisionNote)
DifferenceKind: TypeAlias = Literal["recorded", "replayed", "changed"]
MESSAGE_ACTIONS: Final = (PublishEvent, FollowUp)
"""Actions that only publish an event or invoke a function."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One difference between two decisions."""

    kind: DifferenceKind
    """`recorded`: only in the recorded decision, `replayed`: only in the new one, `changed`: in both, but not equal."""
    subject: str
    """For example ``NodeClaim default-3f`` or ``Pod shop/cart-0``."""
    old_text: str = ""
    new_text: str = ""
    is_message: bool = False
    """Whether it concerns only an event or a follow-up."""


class DecisionComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of a recorded decision with the new one."""

    old_decision: Decision
    new_decision: Decision
    actions: tuple[Difference, ...]
    notes: tuple[Difference, ...]
    is_reordered: bool
    """Whether both have the same content in a different order."""
    has_different_launches: bool = False
    """Whether EC2 would get different requests; then actions that depend on EC2's answers are not compared."""

    @property
    def is_same(self) -> bool:
        """Whether both decisions are equal, byte for byte."""
        return not (self.actions or self.notes or self.is_reordered)


def compare_decisions(old_decision: Decision, new_decision: Decision) -> DecisionComparison:
    """Compare *old_decision* and *new_decision*; content that both have is no difference, at any position."""
    is_unanswered = _encode_launches(old_decision) != _encode_launches(new_decision)
    new_decision = _without_later_fields(old_decision, new_decision)
    decisions = (old_decision, new_decision)
    comparable = [_drop_launch_results(decision) if is_unanswered else decision for decision in decisions]
    before, after = comparable
    actions = tuple(_list_differences(before.actions, after.actions, build_action_key, describe_action))
    notes = tuple(_list_differences(before.notes, after.notes, _build_note_key, _describe_note))
    is_reordered = not (actions or notes) and _encode_value(old_decision) != _encode_value(new_decision)
    return DecisionComparison(
        old_decision=old_decision,
        new_decision=new_decision,
        actions=actions,
        notes=notes,
        is_reordered=is_reordered,
        has_different_launches=is_unanswered,
    )


def _without_later_fields(old_decision: Decision, new_decision: Decision) -> Decision:
    """Return *new_decision* without the fields of notes that a record of an earlier version cannot have."""
    if any(note.disruption_reason for note in old_decision.notes):
        return new_decision
    notes = tuple(replace(note, disruption_reason="") for note in new_decision.notes)
    return Decision(actions=new_decision.actions, notes=notes)


def _encode_launches(decision: Decision) -> list[bytes]:
    return [_encode_value(action) for action in decision.actions if isinstance(action, LaunchInstances)]


def _drop_launch_results(decision: Decision) -> Decision:
    """Return *decision* up to the first launch, and all launches; later actions depend on EC2's answers to these."""
    places = [place for place, action in enumerate(decision.actions) if isinstance(action, LaunchInstances)]
    first_launch = places[0] if places else len(decision.actions)
    launches = (decision.actions[place] for place in places)
    actions = (*decision.actions[:first_launch], *launches)
    notes = tuple(note for note in decision.notes if note.verdict != LAUNCHED_VERDICT)
    return Decision(actions=actions, notes=notes)


def _encode_value(value: object) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def _list_differences(
    recorded_items: Sequence[T],
    new_items: Sequence[T],
    build_key: Callable[[T], Hashable],
    describe: Callable[[T], tuple[str, str]],
) -> Iterator[Difference]:
    before, after = _without_equals(recorded_items, new_items), _without_equals(new_items, recorded_items)
    for old, new in _match_pairs(before, after, build_key):
        is_message = isinstance(old or new, MESSAGE_ACTIONS)
        if old is not None and new is not None:
            yield _build_changed_difference(old, new, describe)
        elif old is not None:
            subject, text = describe(old)
            yield Difference(kind="recorded", subject=subject, old_text=text, is_message=is_message)
        elif new is not None:
            subject, text = describe(new)
            yield Difference(kind="replayed", subject=subject, new_text=text, is_message=is_message)


def _build_changed_difference(old: T, new: T, describe: Callable[[T], tuple[str, str]]) -> Difference:
    (old_subject, old_text), (new_subject, new_text) = describe(old), describe(new)
    if old_subject != new_subject:
        old_text, new_text = (
            f"{old_subject}: {old_text}" if old_text else old_subject,
            f"{new_subject}: {new_text}" if new_text else new_subject,
        )
    if isinstance(old, LaunchInstances) and isinstance(new, LaunchInstances):
        old_text, new_text = describe_request_differences(old, new)
    if old_text == new_text:
        old_text, new_text = _describe_changed_fields(old, new)
    subject = old_subject if old_subject == new_subject else old_subject.partition(" created for ")[0]
    is_message = isinstance(new, MESSAGE_ACTIONS)
    return Difference(kind="changed", subject=subject, old_text=old_text, new_text=new_text, is_message=is_message)


def _describe_changed_fields(old: object, new: object) -> tuple[str, str]:
    """Describe the fields in which two values differ; for values with the same description."""
    before, after = msgspec.to_builtins(old), msgspec.to_builtins(new)
    names = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
    return _format_fields(before, sorted(names)), _format_fields(after, sorted(names))


def _format_fields(values: Mapping[str, object], names: Iterable[str]) -> str:
    return ", ".join(f"{name}={_format_value(values.get(name))}" for name in names)


def _format_value(value: object) -> str:
    text = msgspec.json.encode(value, order="sorted").decode()
    return text if len(text) <= 120 else text[:117] + "…"  # noqa: PLR2004 - a line and a half


def _without_equals(items: Sequence[T], other_items: Sequence[T]) -> list[T]:
    """Return the elements of *items* that are not in *other_items*, counting duplicates (a multiset difference)."""
    remaining_counts = Counter(_encode_value(other_item) for other_item in other_items)
    unmatched_items: list[T] = []
    for item in items:
        body = _encode_value(item)
        if remaining_counts[body]:
            remaining_counts[body] -= 1
        else:
            unmatched_items.append(item)
    return unmatched_items


def _match_pairs(
    before: list[T], after: list[T], build_key: Callable[[T], Hashable]
) -> Iterator[tuple[T | None, T | None]]:
    """Pair elements about the same subject, in the order of *before*; then yield the elements only in *after*."""
    items_by_key: dict[Hashable, list[T]] = {}
    for item in after:
        items_by_key.setdefault(build_key(item), []).append(item)
    matched: set[int] = set()
    pairs: list[tuple[T, T | None]] = []
    for item in before:
        candidates = [
            candidate for candidate in items_by_key.get(build_key(item), ()) if id(candidate) not in matched
        ] or _find_similar_claims(item, after, matched)
        match = candidates[0] if candidates else None
        if match is not None:
            matched.add(id(match))
        pairs.append((item, match))
    yield from pairs
    yield from ((None, new_item) for new_item in after if id(new_item) not in matched)


def _find_similar_claims(action: T, after: Iterable[T], matched: set[int]) -> list[T]:
    """Return the new NodeClaim with most pods in common with *action*'s claim, in a list of at most one element.

    Names cannot be compared: a NodeClaim's name is derived from its content.
    """
    if not isinstance(action, CreateNodeClaim):
        return []
    pods = set(action.pods)
    new_claims = [
        candidate for candidate in after if isinstance(candidate, CreateNodeClaim) and id(candidate) not in matched
    ]
    similar_claims = [candidate for candidate in new_claims if pods.intersection(candidate.pods)]
    similar_claims.sort(key=lambda creation: (len(pods.intersection(creation.pods)), creation.claim.name))
    return [*similar_claims[-1:]]


def _build_note_key(note: DecisionNote) -> Hashable:
    return note.kind, note.name, note.links


def _describe_note(note: DecisionNote) -> tuple[str, str]:
    return f"{note.kind} {note.name}", f"{note.verdict}: {note.reason}" if note.reason else note.verdict
