"""Lists of Kubernetes, each read in pages or caught up with from what a memory has of it.

What is kept is followed from its version, all kinds at once; what is not kept, or cannot be followed, is listed.
Watches begin in the order in which kinds are listed, and each shows at least what was there when it began. So a
Cluster that was caught up with is one that lists could have shown: machines before pods. Where machines had to be
listed after all, the pods are followed once more. What may not be watched is told once and listed from then on.
"""

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from datetime import datetime
from functools import partial
from typing import Any, Final

from shared.errors import Expired, Fault, Forbidden, Gone, Throttled
from shared.model.objects import Problem
from shared.ports import Changes, Kube
from shared.snapshot.kinds import Listing
from shared.snapshot.memory import Kept, caught_up, forbid, in_order, is_forbidden, kept_list, recalled, remember
from shared.snapshot.unserved import unserved

PAGE: Final = 500
_MACHINES: Final = ("nodes", "node_claims")
Values = tuple[Any, ...]
Read = tuple[Values, tuple[Problem, ...]]
Begun = Callable[[], Read]


class Watching:
    """One look at the lists of *kube*, at *now*; *memory* None: everything is listed."""

    def __init__(self, kube: Kube, memory: MutableMapping[str, object] | None, now: datetime) -> None:
        """Read nothing yet."""
        self._kube, self._memory, self._now = kube, memory, now
        self._machines_listed_late = False
        self._told: list[Problem] = []

    def lists(self, listings: Iterable[Listing], problems: list[Problem]) -> dict[str, Values]:
        """Answer the values of *listings* by field; what was left out joins *problems*.

        Raises:
            Fault: one of them could not be read.
        """
        parts: dict[str, Values] = {}
        for listing, begun in [(listing, self._begin(listing)) for listing in listings]:
            values, bad = begun()
            if listing.field == "pods" and self._machines_listed_late:
                values, bad = self._begin(listing)()
            parts[listing.field] = values
            problems.extend(bad)
        problems.extend(self._told)
        return parts

    def until(self, listing: Listing, wanted: Callable[[Any], bool], problems: list[Problem]) -> Values:
        """Answer the values of *listing* up to the end of the first page that has a *wanted* one; nothing is kept.

        Raises:
            Fault: a page could not be read.
        """
        found, bad = _twice(lambda: self._until(listing, wanted))
        problems.extend(bad)
        return found

    def _until(self, listing: Listing, wanted: Callable[[Any], bool]) -> Read:
        found: list[Any] = []
        problems: list[Problem] = []
        for some, bad, _, _ in self._pages(listing):
            found.extend(some)
            problems.extend(bad)
            if any(map(wanted, some)):
                break
        return in_order(found), tuple(problems)

    def _begin(self, listing: Listing) -> Begun:
        kept = recalled(self._memory, listing, self._now)
        if kept is None or is_forbidden(self._memory, listing, self._now):
            return self._listed(listing)
        try:
            changes = self._kube.watch(listing.path, since=kept.version, field_selector=listing.selector)
        except Throttled:
            raise
        except Fault as fault:
            self._doubt(listing, fault)
            return self._listed(listing)
        return partial(self._caught_up, listing, kept, changes)

    def _caught_up(self, listing: Listing, kept: Kept, changes: Callable[[], Changes]) -> Read:
        try:
            kept = caught_up(kept, listing, changes())
        except Throttled:
            raise
        except Fault as fault:
            self._doubt(listing, fault)
            self._machines_listed_late |= listing.field in _MACHINES
            return self._listed(listing)()
        remember(self._memory, listing, kept)
        return kept.ordered, tuple(kept.problems.values())

    def _doubt(self, listing: Listing, fault: Fault) -> None:
        """Tell of a watch that is not allowed, and ask for it no more; whatever else is amiss, a list will show."""
        if isinstance(fault, Forbidden):
            forbid(self._memory, listing, self._now)
            message = f"{fault}; it is listed instead, which costs the API server more"
            self._told.append(Problem(kind="Watch", name=listing.path, message=message))

    def _listed(self, listing: Listing) -> Begun:
        remember(self._memory, listing, None)  # two lists of a kind need not be held at once
        try:
            values, bad = _twice(lambda: self._read(listing))
        except Gone:
            if listing.is_optional:
                return lambda: ((), ())
            if not listing.definition:
                raise
            missing = unserved(self._kube, listing)
            return lambda: ((), (missing,))
        return lambda: (values, bad)

    def _read(self, listing: Listing) -> Read:
        found: list[Any] = []
        problems: list[Problem] = []
        versions: set[str] = set()
        size = 0
        for some, bad, version, length in self._pages(listing):
            found.extend(some)
            problems.extend(bad)
            versions.add(version)
            size += length
        ordered = in_order(found)
        if self._memory is not None:
            kept = kept_list(ordered, problems, versions=versions, size=size, now=self._now)
            remember(self._memory, listing, kept)
        return ordered, tuple(problems)

    def _pages(self, listing: Listing) -> Iterator[tuple[list[Any], list[Problem], str, int]]:
        """Iterate over pages: values, what was left out, the version that is shown, bytes."""
        token, more = "", True
        while more:
            body = self._kube.list(listing.path, field_selector=listing.selector, limit=PAGE, continue_token=token)
            some, bad, meta = listing.page(body)
            yield some, bad, meta.resource_version, len(body)
            token = meta.continue_token
            more = bool(token)


def _twice(read: Callable[[], Read]) -> Read:
    """Read once more, from the beginning, what grew too old between two pages."""
    try:
        return read()
    except Expired:
        return read()
