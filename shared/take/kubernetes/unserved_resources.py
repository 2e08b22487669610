"""Kinds that the API server does not serve.

The kind is not installed, or served in another version only. Neither means an empty list.
"""

from typing import Final

import msgspec

from shared.errors import Fault
from shared.model.core.metadata import Problem
from shared.ports.kubernetes import Kube
from shared.take.kubernetes.resource_kinds import ResourceKind
from shared.wire.paths import CRD_KIND

_CONSEQUENCE: Final = "until then Joiner does not act on missing objects"


class _Version(msgspec.Struct, frozen=True, kw_only=True):
    version: str


class _Group(msgspec.Struct, frozen=True, kw_only=True):
    versions: tuple[_Version, ...] = ()


class _Resource(msgspec.Struct, frozen=True, kw_only=True):
    name: str


class _Resources(msgspec.Struct, frozen=True, kw_only=True):
    resources: tuple[_Resource, ...] = ()


def build_unserved_problem(kube: Kube, resource_kind: ResourceKind) -> Problem:
    """Return the Problem of *resource_kind*, which the API server does not serve, and how to fix it."""
    group, _, version = resource_kind.api_version.partition("/")
    served_versions = [
        other_version
        for other_version in _list_versions(kube, group)
        if other_version != version and _is_served(kube, group, other_version, resource_kind.plural)
    ]
    if served_versions:
        description = f"is served as {', '.join(served_versions)}, not as {version}, which Joiner reads"
        fix = f"serve {version} too (served: true in spec.versions of the CustomResourceDefinition), or update Joiner"
    else:
        description, fix = "is not installed", "apply the CustomResourceDefinitions"
    message = f"{resource_kind.crd_name} {description}: {fix}; {_CONSEQUENCE}"
    return Problem(kind=CRD_KIND, name=resource_kind.crd_name, message=message)


def _list_versions(kube: Kube, group: str) -> list[str]:
    try:
        api_group = msgspec.json.decode(kube.read(f"/apis/{group}"), type=_Group)
    except (Fault, msgspec.DecodeError):
        return []
    return [group_version.version for group_version in api_group.versions]


def _is_served(kube: Kube, group: str, version: str, plural: str) -> bool:
    try:
        resource_list = msgspec.json.decode(kube.read(f"/apis/{group}/{version}"), type=_Resources)
    except (Fault, msgspec.DecodeError):
        return False
    return any(resource.name == plural for resource in resource_list.resources)
