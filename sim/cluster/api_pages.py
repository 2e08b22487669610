"""Lists in pages: every page of one list shows the moment of the first.

A continue token names the revision of that moment and where to go on. The moment is kept for five minutes (as long as
etcd keeps history in a cluster as it comes); after that the token is too old and the list begins again.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_right
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.errors import Expired, Invalid
from sim.cluster.api_kinds import Key, Objects, Resource
from sim.cluster.api_store import Store, key_of
from sim.cluster.selectors import select

_HISTORY: Final = timedelta(minutes=5)


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a list; *token* leads to the next one, *remaining* counts what is there, if nothing is selected."""

    objects: Objects
    revision: int
    token: str = ""
    remaining: int | None = None


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a list request asks for; *namespace* None is all of them, *limit* 0 is no limit."""

    namespace: str | None = None
    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    token: str = ""

    @property
    def selects(self) -> bool:
        """Answer whether there is a selector."""
        return bool(self.label_selector or self.field_selector)

    def among(self, resource: str, objects: Objects) -> Objects:
        """Answer those of *objects* that are wished for, in their order.

        Raises:
            Invalid: a selector is malformed.
        """
        if self.namespace is not None:
            objects = [each for each in objects if each["metadata"].get("namespace") == self.namespace]
        return select(resource, objects, label_selector=self.label_selector, field_selector=self.field_selector)


class _Position(msgspec.Struct, frozen=True, kw_only=True):
    revision: int
    after: Key


class Pages:
    """The moments that open lists show."""

    def __init__(self, store: Store) -> None:
        """Begin with none."""
        self._store = store
        self._moments: dict[tuple[str, int], tuple[datetime, Objects]] = {}

    def expire(self) -> None:
        """Forget every moment: all tokens are too old."""
        self._moments.clear()

    def page(self, resource: Resource, wish: Wish, now: datetime) -> Page:
        """Answer one page.

        Raises:
            Expired: the token is too old.
            Invalid: the token or a selector is malformed.
        """
        self._forget(now)
        position = _position(wish.token)
        everything, revision = self._moment(resource.name, position)
        rest = everything[bisect_right(everything, position.after, key=key_of) :] if position else everything
        rest = wish.among(resource.name, rest)
        if wish.limit <= 0 or len(rest) <= wish.limit:
            return Page(objects=rest, revision=revision)
        self._moments.setdefault((resource.name, revision), (now, everything))
        shown = rest[: wish.limit]
        token = _token(_Position(revision=revision, after=key_of(shown[-1])))
        remaining = None if wish.selects else len(rest) - len(shown)
        return Page(objects=shown, revision=revision, token=token, remaining=remaining)

    def _moment(self, resource: str, position: _Position | None) -> tuple[Objects, int]:
        if position is None:
            return self._store.objects(resource, None), self._store.revision
        moment = self._moments.get((resource, position.revision))
        if moment is None:
            raise Expired(f"{resource}: the provided continue parameter is too old to display a consistent list")
        return moment[1], position.revision

    def _forget(self, now: datetime) -> None:
        for key in [key for key, (taken, _) in self._moments.items() if now - taken >= _HISTORY]:
            del self._moments[key]


def _token(position: _Position) -> str:
    return urlsafe_b64encode(msgspec.json.encode(position)).decode().rstrip("=")


def _position(token: str) -> _Position | None:
    if not token:
        return None
    try:
        return msgspec.json.decode(urlsafe_b64decode(token + "=" * (-len(token) % 4)), type=_Position)
    except ValueError as error:
        raise Invalid(f"continue key is not valid: {error}", "BadRequest") from error
