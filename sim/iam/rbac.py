"""What RBAC would answer: the rights that manifests give to a group, and the right that a call of the API needs."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sim.cluster.api_paths import parse_path

Right = tuple[str, str, str]
"""Verb, API group ("" is the core's), and resource, as ``("patch", "karpenter.sh", "nodeclaims/status")``."""

VERBS: Final = {
    "create": "create",
    "delete": "delete",
    "list": "list",
    "patch": "patch",
    "read": "get",
    "watch": "watch",
}
"""What each method of the `Kube` port is to RBAC."""
ANY: Final = "*"


def right_for(method: str, path: str) -> Right:
    """Answer the right that *method* of the `Kube` port needs at *path*.

    >>> right_for("create", "/api/v1/namespaces/shop/pods/cart/eviction")
    ('create', '', 'pods/eviction')

    Raises:
        KeyError: there is no such method.
        Gone: *path* leads nowhere.
    """
    place = parse_path(path)
    resource = f"{place.plural}/{place.subresource}" if place.subresource else place.plural
    return VERBS[method], place.group, resource


def granted(manifests: Iterable[Mapping[str, Any]], group: str) -> frozenset[Right]:
    """Answer what the ClusterRoles among *manifests* grant to whoever is in *group*, everywhere."""
    found = tuple(manifests)
    bound = {
        one["roleRef"]["name"]
        for one in found
        if one["kind"] == "ClusterRoleBinding" and any(_is(group, subject) for subject in one["subjects"])
    }
    roles = (one for one in found if one["kind"] == "ClusterRole" and one["metadata"]["name"] in bound)
    return frozenset(
        (verb, api_group, resource)
        for role in roles
        for rule in role["rules"]
        for api_group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    )


def is_granted(rights: frozenset[Right], wanted: Right) -> bool:
    """Whether *wanted* is among *rights*, in which a star stands for anything."""
    verb, group, resource = wanted
    return any(
        (each, api_group, name) in rights
        for each in (verb, ANY)
        for api_group in (group, ANY)
        for name in (resource, ANY)
    )


def _is(group: str, subject: Mapping[str, Any]) -> bool:
    return bool(subject["kind"] == "Group" and subject["name"] == group)
