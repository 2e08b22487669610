"""The ClusterRole of the functions (shared/installer/rbac.yaml) in a real API server, and its permissions there."""

from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any, Final

import msgspec
import yaml

from shared.installer.rbac import read_optional_rules
from shared.ports.kubernetes import Kube

Permission = tuple[str, str]
"""A verb and a resource, as ``("patch", "nodeclaims.karpenter.sh/status")``."""

_COLLECTIONS: Final = {
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
}
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def read_documents() -> tuple[dict[str, Any], ...]:
    """Return the ClusterRole and its binding."""
    text = files("shared.installer").joinpath("rbac.yaml").read_text(encoding="utf-8")
    return tuple(yaml.safe_load_all(text))


def grant_functions_role(kube: Kube) -> None:
    """Create the ClusterRole and its binding."""
    for document in read_documents():
        kube.create(_COLLECTIONS[document["kind"]], msgspec.json.encode(document))


def list_granted_permissions() -> frozenset[Permission]:
    """Return the permissions that the ClusterRole grants, by its text."""
    return _list_permissions(read_documents()[0]["rules"])


def list_optional_permissions() -> frozenset[Permission]:
    """Return the permissions that the ClusterRole grants only with the setting of a feature."""
    return _list_permissions(rule for rules in read_optional_rules().values() for rule in rules)


def _list_permissions(rules: Iterable[Mapping[str, list[str]]]) -> frozenset[Permission]:
    return frozenset(
        (verb, _qualify_resource(resource, group))
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    )


def list_served_permissions(kube: Kube) -> frozenset[Permission]:
    """Return every verb of every resource that the API server has, subresources included."""
    groups = msgspec.json.decode(kube.read("/apis"))["groups"]
    versions = [
        "/api/v1",
        *(f"/apis/{version_info['groupVersion']}" for group in groups for version_info in group["versions"]),
    ]
    permissions = set()
    for version in versions:
        group = version.split("/")[2] if version.startswith("/apis/") else ""
        for resource in msgspec.json.decode(kube.read(version))["resources"]:
            permissions |= {(verb, _qualify_resource(resource["name"], group)) for verb in resource["verbs"]}
    return frozenset(permissions)


def is_allowed(kube: Kube, permission: Permission, *groups: str) -> bool:
    """Return whether a user in *groups* has *permission* in every namespace."""
    verb, resource = permission
    qualified_plural, _, subresource = resource.partition("/")
    plural, _, group = qualified_plural.partition(".")
    attributes = {"verb": verb, "group": group, "resource": plural, "subresource": subresource}
    body = {"spec": {"user": "somebody", "groups": list(groups), "resourceAttributes": attributes}}
    review = msgspec.json.decode(kube.create(_REVIEWS, msgspec.json.encode(body)))
    return bool(review["status"]["allowed"])


def _qualify_resource(resource: str, group: str) -> str:
    plural, slash, subresource = resource.partition("/")
    return (f"{plural}.{group}" if group else plural) + slash + subresource
