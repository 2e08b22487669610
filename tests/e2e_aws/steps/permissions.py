"""RBAC: `kubectl auth can-i` for each permission of the functions."""

from collections.abc import Iterator
from importlib.resources import files
from typing import Any, Final

import msgspec
import yaml

from tests.e2e_aws.environment import Environment
from tests.e2e_aws.results import Observation, compare

REVIEWS_PATH: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
FUNCTIONS_GROUP: Final = "joiner:functions"
FORBIDDEN: Final = (("", "secrets", "get"), ("", "nodes", "create"), ("apps", "deployments", "patch"))
"""Permissions that the functions must not have: API group, resource, verb."""


def check_permissions(environment: Environment) -> Observation:
    """Ask the API server about every permission of the functions' ClusterRole, and about three others."""
    required = list(list_required_permissions())
    denied = [permission for permission in required if not _can_do(environment, *permission)]
    allowed = [permission for permission in FORBIDDEN if _can_do(environment, *permission)]
    observed = (
        f"{len(required) - len(denied)} of {len(required)} permissions allowed, "
        f"{len(allowed)} of {len(FORBIDDEN)} other permissions allowed"
    )
    evidence = {"denied": [_format(*item) for item in denied], "unexpected": [_format(*item) for item in allowed]}
    return compare(observed, is_expected=not denied and not allowed, evidence=evidence)


def list_required_permissions() -> Iterator[tuple[str, str, str]]:
    """Yield API group, resource and verb of each permission of the functions."""
    text = files("shared.installer").joinpath("rbac.yaml").read_text(encoding="utf-8")
    for document in yaml.safe_load_all(text):
        for rule in document.get("rules", ()):
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        yield group, resource, verb


def _can_do(environment: Environment, group: str, resource: str, verb: str) -> bool:
    name, _, subresource = resource.partition("/")
    attributes = {"group": group, "resource": name, "subresource": subresource, "verb": verb}
    review: dict[str, Any] = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": "joiner-e2e", "groups": [FUNCTIONS_GROUP], "resourceAttributes": attributes},
    }
    response = msgspec.json.decode(environment.kubectl.kube.create(REVIEWS_PATH, msgspec.json.encode(review)))
    return bool(response["status"].get("allowed"))


def _format(group: str, resource: str, verb: str) -> str:
    return f"{verb} {resource}{f'.{group}' if group else ''}"
