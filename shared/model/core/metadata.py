"""The common parts of Kubernetes objects: metadata, owner references, conditions; and problems."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TypeAlias

import msgspec

Pairs: TypeAlias = tuple[tuple[str, str], ...]
"""A map as an immutable value: pairs sorted by key."""


def build_pairs(mapping: Mapping[str, str] | Iterable[tuple[str, str]]) -> Pairs:
    """Return the value of a map."""
    return tuple(sorted(dict(mapping).items()))


class OwnerReference(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
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


class ObjectMeta(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of metadata that are read."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    created_at: datetime | None = None
    deleted_at: datetime | None = None
    """deletionTimestamp: for a pod, the end of its grace period."""
    labels: Pairs = ()
    annotations: Pairs = ()
    finalizers: tuple[str, ...] = ()
    owners: tuple[OwnerReference, ...] = ()

    def get_label(self, key: str) -> str:
        """Return the value of a label, "" if it is absent."""
        for name, value in self.labels:  # called millions of times: a generator would take twice as long
            if name == key:
                return value
        return ""

    def get_annotation(self, key: str) -> str:
        """Return the value of an annotation, "" if it is absent."""
        for name, value in self.annotations:  # as above
            if name == key:
                return value
        return ""

    def is_owned_by(self, api_version: str, kind: str) -> bool:
        """Return whether an owner is of that kind."""
        for owner in self.owners:  # noqa: SIM110 - as above
            if owner.kind == kind and owner.api_version == api_version:
                return True
        return False


class Problem(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """An invalid object: its name and the error, with the field and the fix in the message."""

    kind: str
    name: str
    """With its namespace, if it has one: ``shop/cart``."""
    message: str
    uid: str = ""
    node: str = ""
    """For a pod that was left out, its node: the node is not empty, although the pod is not listed."""
    generation: int = 0
    conditions: tuple[Condition, ...] = ()
    """For a NodePool or EC2NodeClass that was left out: its current conditions, so that the problem can be written
    there.
    """
    annotations: Pairs | None = None
    """For a NodePool that was left out: its annotations of Joiner; None if its metadata cannot be read."""


def find_condition(conditions: Iterable[Condition], type_: str) -> Condition | None:
    """Return the condition of that type, None if it is absent."""
    for item in conditions:
        if item.type == type_:
            return item
    return None


def is_condition_true(conditions: Iterable[Condition], type_: str) -> bool:
    """Return whether the condition of that type is present and True."""
    matching_condition = find_condition(conditions, type_)
    return matching_condition is not None and matching_condition.status == "True"
