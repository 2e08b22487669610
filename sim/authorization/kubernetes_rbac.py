"""Kubernetes RBAC of port calls: the permission that a call needs, and the answer of an API server that refuses it."""

import re
from functools import lru_cache
from http import HTTPStatus
from typing import Final

import msgspec

from shared.errors import Fault, NotFound
from shared.installer.rbac import RbacPermission
from shared.kubernetes.errors import build_fault
from sim.cluster.api_server.paths import parse_path

VERB_BY_METHOD: Final = {
    "create": "create",
    "delete": "delete",
    "list": "list",
    "patch": "patch",
    "read": "get",
    "watch": "watch",
}
"""The RBAC verb of each method of the `Kube` port."""
_DISCOVERY_PATH_PATTERN: Final = re.compile(r"/version|/api(/v1)?|/apis(/[^/]+){0,2}")
"""Paths that the ClusterRole ``system:discovery`` of every cluster allows all users to read."""


@lru_cache(maxsize=16384)
def get_required_permission(method: str, path: str) -> RbacPermission | None:
    """Return the permission that *method* of the `Kube` port needs at *path*; None: every user has it.

    >>> get_required_permission("create", "/api/v1/namespaces/shop/pods/cart/eviction")
    ('create', '', 'pods/eviction')

    Raises:
        KeyError: there is no such method.
        NotFound: *path* is not an API path.
    """
    verb = VERB_BY_METHOD[method]
    try:
        api_path = parse_path(path)
    except NotFound:
        if verb == "get" and _DISCOVERY_PATH_PATTERN.fullmatch(path):
            return None
        raise
    resource = f"{api_path.plural}/{api_path.subresource}" if api_path.subresource else api_path.plural
    return "list" if verb == "get" and not api_path.name else verb, api_path.group, resource


def build_refusal(user: str, method: str, path: str, permission: RbacPermission) -> Fault:
    """Return the fault of a call that the API server refuses because *user* lacks *permission*."""
    verb, group, resource = permission
    message = f'{resource} is forbidden: User "{user}" cannot {verb} resource "{resource}" in API group "{group}"'
    status = {"kind": "Status", "message": message, "reason": "Forbidden"}
    return build_fault(f"{method} {path}", HTTPStatus.FORBIDDEN, msgspec.json.encode(status), {})
