"""What all Kubernetes objects have in common."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TypeAlias

import msgspec

Pairs: TypeAlias = tuple[tuple[str, str], ...]
"""A map as a value: pairs sorted by key."""


def pairs(some: Mapping[str, str] | Iterable[tuple[str, str]]) -> Pairs:
    """Make the value of a map."""
    return tuple(sorted(dict(some).items()))


class Owner(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """One ownerReference."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False


class Condition(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """One status condition; *status* is True, False or Unknown."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    since: datetime | None = None
    """lastTransitionTime."""
    observed_generation: int = 0


class Meta(msgspec.Struct, frozen=True, kw_only=True):
    """metadata, what is read of it."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    created_at: datetime | None = None
    deleted_at: datetime | None = None
    """deletionTimestamp: for a pod, when its grace ends."""
    labels: Pairs = ()
    annotations: Pairs = ()
    finalizers: tuple[str, ...] = ()
    owners: tuple[Owner, ...] = ()

    def label(self, key: str) -> str:
        """Answer a label's value, "" if there is none."""
        for name, value in self.labels:  # asked millions of times: a generator would take twice as long
            if name == key:
                return value
        return ""

    def annotation(self, key: str) -> str:
        """Answer an annotation's value, "" if there is none."""
        return next((value for name, value in self.annotations if name == key), "")

    def is_owned_by(self, api_version: str, kind: str) -> bool:
        """Whether some owner is of that kind."""
        some = self.owners
        return bool(some) and any(owner.api_version == api_version and owner.kind == kind for owner in some)


class Problem(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A bad object: which one, and what about it, with the field and the remedy in the words."""

    kind: str
    name: str
    """With its namespace, where it has one: ``shop/cart``."""
    message: str
    uid: str = ""
    node: str = ""
    """Where a pod that was left out is bound: that node is not empty, whatever the list of pods says."""
    generation: int = 0
    conditions: tuple[Condition, ...] = ()
    """Of a NodePool or EC2NodeClass that was left out: what stands there, so that it can be told."""


def condition(conditions: Iterable[Condition], type_: str) -> Condition | None:
    """Answer the condition of that type, if there is one."""
    for one in conditions:
        if one.type == type_:
            return one
    return None


def is_true(conditions: Iterable[Condition], type_: str) -> bool:
    """Whether the condition of that type is there and True."""
    found = condition(conditions, type_)
    return found is not None and found.status == "True"
