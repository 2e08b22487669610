"""What a container keeps of the last look: lists as values, and the version of the collection that they show.

A memory is a cache. A catch-up must give what a list would have given; whatever makes that doubtful (a change that
cannot be read, a count that does not agree, a version that is no number, a clock that went back) is answered with
Expired, and the list is read again. Only values of the model are kept, no bytes: they are those of the Cluster that
was decided on, and no more than one list of each kind.
"""

from collections.abc import Iterable, MutableMapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from shared.errors import Expired
from shared.model.objects import Problem
from shared.ports import Changes
from shared.snapshot.kinds import Listing, order

SMALL: Final = 8 * 1024
"""Bytes. To list so little again is cheaper than to follow it: one request, and no connection of its own."""
RELIST_AFTER: Final = timedelta(minutes=30)
"""Whatever a watch should ever have kept from us is seen by then."""
_FORBIDDEN: Final = "forbidden "


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """One list, as of *version*."""

    version: str
    listed_at: datetime
    values: dict[str, Any]
    """By name, as ``shop/cart``; never changed in place."""
    problems: dict[str, Problem]
    """Objects that were left out, by name."""
    ordered: tuple[Any, ...]
    """The values, as they stand in a Cluster."""


def recalled(memory: MutableMapping[str, object] | None, listing: Listing, now: datetime) -> Kept | None:
    """Answer what *memory* has of *listing*, None if it has to be listed."""
    kept = memory.get(_place(listing)) if memory is not None else None
    if not isinstance(kept, Kept) or not timedelta() <= now - kept.listed_at < RELIST_AFTER:
        return None
    return kept


def remember(memory: MutableMapping[str, object] | None, listing: Listing, kept: Kept | None) -> None:
    """Put *kept* into *memory* (if there is one) in place of what it has of *listing*; None: forget that."""
    if memory is None:
        return
    if kept is None:
        memory.pop(_place(listing), None)
    else:
        memory[_place(listing)] = kept


def forbid(memory: MutableMapping[str, object] | None, listing: Listing, now: datetime) -> None:
    """Write down that *listing* may not be watched."""
    if memory is not None:
        memory[_FORBIDDEN + _place(listing)] = now


def is_forbidden(memory: MutableMapping[str, object] | None, listing: Listing, now: datetime) -> bool:
    """Whether *listing* was not to be watched a while ago; after `RELIST_AFTER` one may ask again."""
    since = memory.get(_FORBIDDEN + _place(listing)) if memory is not None else None
    return isinstance(since, datetime) and timedelta() <= now - since < RELIST_AFTER


def kept_list(
    ordered: tuple[Any, ...], problems: Iterable[Problem], *, versions: Iterable[str], size: int, now: datetime
) -> Kept | None:
    """Answer a list of *size* bytes whose pages showed *versions* as it is kept, None if it should not be."""
    if size <= SMALL:
        return None
    by_name = {_name(value): value for value in ordered}
    left_out = {problem.name: problem for problem in problems}
    version, *others = set(versions)
    certain = version.isdecimal() and not others and all(problem.uid for problem in left_out.values())
    if not certain:
        return None
    return Kept(version=version, listed_at=now, values=by_name, problems=left_out, ordered=ordered)


def caught_up(kept: Kept, listing: Listing, changes: Changes) -> Kept:
    """Answer *kept* after *changes*.

    Raises:
        Expired: they do not fit what is kept.
        Unreachable: one of them cannot be read.
    """
    values, problems = kept.values, kept.problems
    if changes.events:
        values, problems = dict(values), dict(problems)
    last = int(kept.version)
    for event in changes.events:
        change = listing.change(event)
        if not last < change.version <= int(changes.version):
            raise Expired(f"{listing.path}: {change.name} changed at {change.version}, after {last}")
        last = change.version
        values.pop(change.name, None)
        problems.pop(change.name, None)
        if change.value is not None:
            values[change.name] = change.value
        elif change.problem is not None:
            problems[change.name] = change.problem
    known = len(values) + len(problems)
    if changes.count not in (None, known) and not listing.selector:
        raise Expired(f"{listing.path}: {changes.count} objects are there, {known} are known")
    return msgspec.structs.replace(
        kept,
        version=changes.version,
        values=values,
        problems=problems,
        ordered=in_order(values.values()) if changes.events else kept.ordered,
    )


def in_order(values: Iterable[Any]) -> tuple[Any, ...]:
    """Sort *values* as they stand in a Cluster."""
    return tuple(sorted(values, key=order))


def _name(value: Any) -> str:  # noqa: ANN401 - any of a Cluster's values
    namespace, name = order(value)
    return f"{namespace}/{name}" if namespace else name


def _place(listing: Listing) -> str:
    return f"{listing.path}?{listing.selector}"
