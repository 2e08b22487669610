"""The Kubernetes permissions of the functions: what rbac.yaml grants, and what a live ClusterRole lacks."""

from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

from shared.installer.manifests import Manifest, get_manifest_name

RbacPermission = tuple[str, str, str]
"""Verb, API group ("" is the core group) and resource, as ``("patch", "karpenter.sh", "nodeclaims/status")``."""
WILDCARD: Final = "*"


class UnsupportedRbacError(Exception):
    """A rule uses a feature that is not evaluated here; a guess would prove nothing."""


@cache
def read_rbac_manifests(*, surge_drain: bool = False) -> tuple[Manifest, ...]:
    """Return the ClusterRole of the functions and its binding, as they are installed with or without *surge_drain*."""
    folder = files("shared.installer")
    text = folder.joinpath("rbac.yaml").read_text(encoding="utf-8")
    role, binding = (msgspec.yaml.decode(document) for document in text.split("\n---\n"))
    if surge_drain:
        rule = msgspec.yaml.decode(folder.joinpath("rbac-surge-drain.yaml").read_text(encoding="utf-8"))
        role = {**role, "rules": [*role["rules"], rule]}
    return role, binding


def find_granted_permissions(manifests: Iterable[Manifest], groups: Iterable[str]) -> frozenset[RbacPermission]:
    """Return the permissions that the ClusterRoles of *manifests* grant to members of *groups* in all namespaces.

    Raises:
        UnsupportedRbacError: a rule is limited to names or URLs, or roles of single namespaces are used.
    """
    objects, group_names = tuple(manifests), set(groups)
    if any(manifest["kind"] in {"Role", "RoleBinding"} for manifest in objects):
        raise UnsupportedRbacError("permissions in single namespaces are not evaluated here")
    role_names = {
        manifest["roleRef"]["name"]
        for manifest in objects
        if manifest["kind"] == "ClusterRoleBinding"
        and any(subject["kind"] == "Group" and subject["name"] in group_names for subject in manifest["subjects"])
    }
    roles = (manifest for manifest in objects if manifest["kind"] == "ClusterRole")
    return frozenset(
        permission for role in roles if get_manifest_name(role) in role_names for permission in list_permissions(role)
    )


def list_permissions(role: Manifest) -> Iterator[RbacPermission]:
    """Yield the permissions that the ClusterRole *role* grants.

    Raises:
        UnsupportedRbacError: a rule is limited to names or URLs.
    """
    for rule in role.get("rules") or ():
        if "resourceNames" in rule or "nonResourceURLs" in rule:
            raise UnsupportedRbacError(f"{get_manifest_name(role)}: resourceNames and nonResourceURLs")
        for api_group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    yield verb, api_group, resource


def is_granted(permissions: frozenset[RbacPermission], permission: RbacPermission) -> bool:
    """Return whether *permission* is among *permissions*, in which ``*`` is a wildcard."""
    if permission in permissions:
        return True
    verb, group, resource = permission
    return any(
        (granted_verb, granted_group, granted_resource) in permissions
        for granted_verb in (verb, WILDCARD)
        for granted_group in (group, WILDCARD)
        for granted_resource in (resource, WILDCARD)
    )


def format_permission(permission: RbacPermission) -> str:
    """Return *permission* as text.

    >>> format_permission(("patch", "karpenter.sh", "nodeclaims/status"))
    'patch on nodeclaims.karpenter.sh/status'
    """
    verb, group, resource = permission
    plural, slash, subresource = resource.partition("/")
    return f"{verb} on {plural}{'.' if group else ''}{group}{slash}{subresource}"
