"""Paginated lists: every page of one list shows the state at the time of the first page.

A continue token contains the revision of that state and the key to continue after. The state is kept for five minutes
(as long as etcd keeps history with default settings); after that the token is too old and the client must list again.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_right
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.errors import Expired, Invalid
from sim.cluster.api_server.api_resources import ApiResource, Key, Objects
from sim.cluster.api_server.object_store import ObjectStore, get_object_key
from sim.cluster.api_server.rules.label_and_field_selectors import select_objects

_SNAPSHOT_TTL: Final = timedelta(minutes=5)


class ObjectPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of a list.

    *continue_token* leads to the next page. *remaining_item_count* is the number of objects after this page; None if a
    selector is used.
    """

    objects: Objects
    revision: int
    continue_token: str = ""
    remaining_item_count: int | None = None


class ListOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a list request; *namespace* None means all namespaces, *limit* 0 means no limit."""

    namespace: str | None = None
    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_token: str = ""

    @property
    def has_selector(self) -> bool:
        """Whether a label or field selector is set."""
        return bool(self.label_selector or self.field_selector)

    def filter_objects(self, resource: str, objects: Objects) -> Objects:
        """Return the objects that match the namespace and the selectors, in their order.

        Raises:
            Invalid: a selector is malformed.
        """
        if self.namespace is not None:
            objects = [obj for obj in objects if obj["metadata"].get("namespace") == self.namespace]
        return select_objects(resource, objects, label_selector=self.label_selector, field_selector=self.field_selector)


class _ContinueKey(msgspec.Struct, frozen=True, kw_only=True):
    revision: int
    after: Key


class Paginator:
    """The snapshots that unfinished lists read."""

    def __init__(self, store: ObjectStore) -> None:
        """Create a paginator without snapshots."""
        self._store = store
        self._snapshots: dict[tuple[str, int], tuple[datetime, Objects]] = {}

    def expire(self) -> None:
        """Discard all snapshots, which expires all continue tokens."""
        self._snapshots.clear()

    def list_page(self, resource: ApiResource, options: ListOptions, now: datetime) -> ObjectPage:
        """Return one page.

        Raises:
            Expired: the continue token is too old.
            Invalid: the continue token or a selector is malformed.
        """
        self._discard_old_snapshots(now)
        continue_key = _decode_continue_token(options.continue_token)
        all_objects, revision = self._get_snapshot(resource.name, continue_key)
        matching_objects = (
            all_objects[bisect_right(all_objects, continue_key.after, key=get_object_key) :]
            if continue_key
            else all_objects
        )
        matching_objects = options.filter_objects(resource.name, matching_objects)
        if options.limit <= 0 or len(matching_objects) <= options.limit:
            return ObjectPage(objects=matching_objects, revision=revision)
        self._snapshots.setdefault((resource.name, revision), (now, all_objects))
        page_objects = matching_objects[: options.limit]
        continue_token = _encode_continue_token(_ContinueKey(revision=revision, after=get_object_key(page_objects[-1])))
        remaining_item_count = None if options.has_selector else len(matching_objects) - len(page_objects)
        return ObjectPage(
            objects=page_objects,
            revision=revision,
            continue_token=continue_token,
            remaining_item_count=remaining_item_count,
        )

    def _get_snapshot(self, resource: str, continue_key: _ContinueKey | None) -> tuple[Objects, int]:
        if continue_key is None:
            return self._store.list_objects(resource, None), self._store.revision
        snapshot = self._snapshots.get((resource, continue_key.revision))
        if snapshot is None:
            raise Expired(f"{resource}: the provided continue parameter is too old to display a consistent list")
        return snapshot[1], continue_key.revision

    def _discard_old_snapshots(self, now: datetime) -> None:
        for key in [key for key, (taken_at, _) in self._snapshots.items() if now - taken_at >= _SNAPSHOT_TTL]:
            del self._snapshots[key]


def _encode_continue_token(continue_key: _ContinueKey) -> str:
    return urlsafe_b64encode(msgspec.json.encode(continue_key)).decode().rstrip("=")


def _decode_continue_token(token: str) -> _ContinueKey | None:
    if not token:
        return None
    try:
        return msgspec.json.decode(urlsafe_b64decode(token + "=" * (-len(token) % 4)), type=_ContinueKey)
    except ValueError as error:
        raise Invalid(f"continue key is not valid: {error}", "BadRequest") from error
