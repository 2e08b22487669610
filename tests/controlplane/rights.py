"""The role of the functions (shared/kube/rbac.yaml) in a real API server, and what it allows there."""

from importlib.resources import files
from typing import Any, Final

import msgspec
import yaml

from shared.ports import Kube

Right = tuple[str, str]
"""A verb and a resource, as ``("patch", "nodeclaims.karpenter.sh/status")``."""

_COLLECTIONS: Final = {
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
}
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def documents() -> tuple[dict[str, Any], ...]:
    """Answer the role and its binding."""
    text = files("shared.kube").joinpath("rbac.yaml").read_text(encoding="utf-8")
    return tuple(yaml.safe_load_all(text))


def grant(kube: Kube) -> None:
    """Create role and binding."""
    for document in documents():
        kube.create(_COLLECTIONS[document["kind"]], msgspec.json.encode(document))


def granted() -> frozenset[Right]:
    """Answer what the role grants, by its text."""
    role = documents()[0]
    return frozenset(
        (verb, _named(resource, group))
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    )


def served(kube: Kube) -> frozenset[Right]:
    """Answer every verb of every resource that the API server has, subresources included."""
    groups = msgspec.json.decode(kube.read("/apis"))["groups"]
    versions = ["/api/v1", *(f"/apis/{one['groupVersion']}" for group in groups for one in group["versions"])]
    found = set()
    for version in versions:
        group = version.split("/")[2] if version.startswith("/apis/") else ""
        for resource in msgspec.json.decode(kube.read(version))["resources"]:
            found |= {(verb, _named(resource["name"], group)) for verb in resource["verbs"]}
    return frozenset(found)


def is_allowed(kube: Kube, right: Right, *groups: str) -> bool:
    """Ask whether somebody of *groups* has *right*, in every namespace."""
    verb, resource = right
    whole, _, subresource = resource.partition("/")
    plural, _, group = whole.partition(".")
    attributes = {"verb": verb, "group": group, "resource": plural, "subresource": subresource}
    body = {"spec": {"user": "somebody", "groups": list(groups), "resourceAttributes": attributes}}
    answer = msgspec.json.decode(kube.create(_REVIEWS, msgspec.json.encode(body)))
    return bool(answer["status"]["allowed"])


def _named(resource: str, group: str) -> str:
    plural, slash, subresource = resource.partition("/")
    return (f"{plural}.{group}" if group else plural) + slash + subresource
