"""Offline evaluation of RBAC permissions.

The permissions that manifests grant to a group, and the permission that an API call needs.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sim.cluster.api_server.paths import parse_path

RbacPermission = tuple[str, str, str]
"""Verb, API group ("" is the core group) and resource, as ``("patch", "karpenter.sh", "nodeclaims/status")``."""

VERB_BY_METHOD: Final = {
    "create": "create",
    "delete": "delete",
    "list": "list",
    "patch": "patch",
    "read": "get",
    "watch": "watch",
}
"""The RBAC verb of each method of the `Kube` port."""
WILDCARD: Final = "*"


def get_required_permission(method: str, path: str) -> RbacPermission:
    """Return the permission that *method* of the `Kube` port needs at *path*.

    >>> get_required_permission("create", "/api/v1/namespaces/shop/pods/cart/eviction")
    ('create', '', 'pods/eviction')

    Raises:
        KeyError: there is no such method.
        NotFound: *path* is not an API path.
    """
    api_path = parse_path(path)
    resource = f"{api_path.plural}/{api_path.subresource}" if api_path.subresource else api_path.plural
    return VERB_BY_METHOD[method], api_path.group, resource


def find_granted_permissions(manifests: Iterable[Mapping[str, Any]], group: str) -> frozenset[RbacPermission]:
    """Return the permissions that the ClusterRoles of *manifests* grant to *group* in all namespaces."""
    objects = tuple(manifests)
    role_names = {
        manifest["roleRef"]["name"]
        for manifest in objects
        if manifest["kind"] == "ClusterRoleBinding"
        and any(_is_group(group, subject) for subject in manifest["subjects"])
    }
    roles = (
        manifest
        for manifest in objects
        if manifest["kind"] == "ClusterRole" and manifest["metadata"]["name"] in role_names
    )
    return frozenset(
        (verb, api_group, resource)
        for role in roles
        for rule in role["rules"]
        for api_group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    )


def is_granted(permissions: frozenset[RbacPermission], permission: RbacPermission) -> bool:
    """Return whether *permission* is among *permissions*, in which ``*`` is a wildcard."""
    verb, group, resource = permission
    return any(
        (candidate_verb, api_group, name) in permissions
        for candidate_verb in (verb, WILDCARD)
        for api_group in (group, WILDCARD)
        for name in (resource, WILDCARD)
    )


def _is_group(group: str, subject: Mapping[str, Any]) -> bool:
    return bool(subject["kind"] == "Group" and subject["name"] == group)
