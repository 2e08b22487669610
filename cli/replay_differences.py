"""In what two decisions differ: what is done, and what is said of pods, nodes and commands."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias, TypeVar

import msgspec

from cli.replay_launches import requests_said
from cli.replay_words import key_of, said
from cli.replayed import Decision
from shared.model.action import (
    Action,
    CreateNodeClaim,
    FollowUp,
    LaunchInstances,
    PublishEvent,
)
from shared.report.journal import LAUNCHED, Note

T = TypeVar("T", bound=Action | Note)
How: TypeAlias = Literal["then", "now", "changed"]
_LISTED: Final = 3
SAYING: Final = (PublishEvent, FollowUp)
"""What says or wakes, and does nothing else."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is otherwise."""

    how: How
    """Only `then`, only `now`, or both and `changed`."""
    what: str
    """As ``NodeClaim default-3f`` or ``Pod shop/cart-0``."""
    then: str = ""
    now: str = ""
    is_said: bool = False
    """It is no more than an event or a wake-up."""


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """Two decisions beside each other."""

    then: Decision
    now: Decision
    actions: tuple[Difference, ...]
    notes: tuple[Difference, ...]
    is_reordered: bool
    """All is the same, in another order."""
    is_unanswered: bool = False
    """EC2 would be asked for something else: what was done with its answers is not compared."""

    @property
    def is_same(self) -> bool:
        """Whether both are one decision, byte for byte."""
        return not (self.actions or self.notes or self.is_reordered)


def compared(then: Decision, now: Decision) -> Compared:
    """Put *then* and *now* beside each other: what is equal in both is no difference, wherever it stands."""
    is_unanswered = _launches(then) != _launches(now)
    before, after = (_unanswered(one.actions) if is_unanswered else one.actions for one in (then, now))
    noted, notes_now = (_planned(one.notes) if is_unanswered else one.notes for one in (then, now))
    actions = tuple(_differences(before, after, key_of, said))
    notes = tuple(_differences(noted, notes_now, _note_key, _note_said))
    is_reordered = not (actions or notes) and _bytes(then) != _bytes(now)
    return Compared(
        then=then, now=now, actions=actions, notes=notes, is_reordered=is_reordered, is_unanswered=is_unanswered
    )


def _launches(one: Decision) -> list[bytes]:
    return [_bytes(action) for action in one.actions if isinstance(action, LaunchInstances)]


def _unanswered(actions: Sequence[Action]) -> list[Action]:
    """Answer *actions* up to the first launch, and all launches: what comes after them is what EC2 said to these."""
    first = next((place for place, one in enumerate(actions) if isinstance(one, LaunchInstances)), len(actions))
    return [*actions[:first], *(one for one in actions[first:] if isinstance(one, LaunchInstances))]


def _planned(notes: Iterable[Note]) -> list[Note]:
    return [one for one in notes if one.verdict != LAUNCHED]


def _bytes(value: object) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def _differences(
    then: Sequence[T], now: Sequence[T], key: Callable[[T], Hashable], said: Callable[[T], tuple[str, str]]
) -> Iterator[Difference]:
    before, after = _without_equals(then, now), _without_equals(now, then)
    for old, new in _pairs(before, after, key):
        if old is None and new is not None:
            what, why = said(new)
            yield Difference(how="now", what=what, now=why, is_said=isinstance(new, SAYING))
        elif new is None and old is not None:
            what, why = said(old)
            yield Difference(how="then", what=what, then=why, is_said=isinstance(old, SAYING))
        elif old is not None and new is not None:
            yield _changed(old, new, said)


def _changed(old: T, new: T, said: Callable[[T], tuple[str, str]]) -> Difference:
    (what, then), (other, now) = said(old), said(new)
    if what != other:
        then, now = f"{what}: {then}" if then else what, f"{other}: {now}" if now else other
    if isinstance(old, LaunchInstances) and isinstance(new, LaunchInstances):
        then, now = requests_said(old, new)
    if then == now:
        then, now = _fields(old, new)
    name = what if what == other else what.partition(" for ")[0]
    return Difference(how="changed", what=name, then=then, now=now, is_said=isinstance(new, SAYING))


def _fields(old: object, new: object) -> tuple[str, str]:
    """Say in which fields two differ that the words do not tell apart."""
    before, after = msgspec.to_builtins(old), msgspec.to_builtins(new)
    names = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
    return _of_fields(before, sorted(names)), _of_fields(after, sorted(names))


def _of_fields(known: Mapping[str, object], names: Iterable[str]) -> str:
    return ", ".join(f"{name}={_short(known.get(name))}" for name in names)


def _short(value: object) -> str:
    text = msgspec.json.encode(value, order="sorted").decode()
    return text if len(text) <= 120 else text[:117] + "…"  # noqa: PLR2004 - a line and a half


def _without_equals(these: Sequence[T], others: Sequence[T]) -> list[T]:
    """Answer those of *these* that are not in *others*, each as often as it is there more."""
    left = Counter(_bytes(one) for one in others)
    rest: list[T] = []
    for one in these:
        body = _bytes(one)
        if left[body]:
            left[body] -= 1
        else:
            rest.append(one)
    return rest


def _pairs(before: list[T], after: list[T], key: Callable[[T], Hashable]) -> Iterator[tuple[T | None, T | None]]:
    """Pair what is about the same thing, in the order of *before*; then what has come."""
    waiting: dict[Hashable, list[T]] = {}
    for one in after:
        waiting.setdefault(key(one), []).append(one)
    matched: set[int] = set()
    pairs: list[tuple[T, T | None]] = []
    for one in before:
        same = [each for each in waiting.get(key(one), ()) if id(each) not in matched] or _alike(one, after, matched)
        other = same[0] if same else None
        if other is not None:
            matched.add(id(other))
        pairs.append((one, other))
    yield from pairs
    yield from ((None, one) for one in after if id(one) not in matched)


def _alike(one: T, after: Iterable[T], matched: set[int]) -> list[T]:
    """Answer the node that is made for most of the same pods: its name comes from what it is."""
    if not isinstance(one, CreateNodeClaim):
        return []
    pods = set(one.pods)
    made = [each for each in after if isinstance(each, CreateNodeClaim) and id(each) not in matched]
    alike = [each for each in made if pods.intersection(each.pods)]
    return [max(alike, key=lambda each: (len(pods.intersection(each.pods)), each.claim.name))] if alike else []


def _note_key(note: Note) -> Hashable:
    return note.kind, note.name, note.links


def _note_said(note: Note) -> tuple[str, str]:
    return f"{note.kind} {note.name}", f"{note.verdict}: {note.why}" if note.why else note.verdict
