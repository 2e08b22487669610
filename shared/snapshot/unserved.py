"""Kinds that the API server does not have: not installed, or in another version only. Neither means "none"."""

from typing import Final

import msgspec

from shared.errors import Fault
from shared.model.objects import Problem
from shared.ports import Kube
from shared.snapshot.kinds import Listing

KIND: Final = "CustomResourceDefinition"
_SO_LONG: Final = "until then nothing is concluded from its absence"


class _Version(msgspec.Struct, frozen=True, kw_only=True):
    version: str


class _Group(msgspec.Struct, frozen=True, kw_only=True):
    versions: tuple[_Version, ...] = ()


class _Resource(msgspec.Struct, frozen=True, kw_only=True):
    name: str


class _Resources(msgspec.Struct, frozen=True, kw_only=True):
    resources: tuple[_Resource, ...] = ()


def unserved(kube: Kube, listing: Listing) -> Problem:
    """Say what is wrong with the definition of *listing*, whose collection is not there, and what helps."""
    group, _, version = listing.api.partition("/")
    others = [one for one in _versions(kube, group) if one != version and _serves(kube, group, one, listing.plural)]
    if others:
        served = f"is served as {', '.join(others)}, not as {version}, which Joiner reads"
        helps = f"serve {version} too (served: true in spec.versions of the CustomResourceDefinition), or update Joiner"
    else:
        served, helps = "is not installed", "apply the CustomResourceDefinitions"
    message = f"{listing.definition} {served}: {helps}; {_SO_LONG}"
    return Problem(kind=KIND, name=listing.definition, message=message)


def _versions(kube: Kube, group: str) -> list[str]:
    try:
        known = msgspec.json.decode(kube.read(f"/apis/{group}"), type=_Group)
    except (Fault, msgspec.DecodeError):
        return []
    return [one.version for one in known.versions]


def _serves(kube: Kube, group: str, version: str, plural: str) -> bool:
    try:
        found = msgspec.json.decode(kube.read(f"/apis/{group}/{version}"), type=_Resources)
    except (Fault, msgspec.DecodeError):
        return False
    return any(one.name == plural for one in found.resources)
