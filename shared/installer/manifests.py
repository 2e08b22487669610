"""Manifests of a deployment: parsing, labels, API paths, and whether Joiner manages a live object."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec

from shared.wire.paths import CRD_KIND

Manifest = Mapping[str, Any]

MANIFEST_PATHS: Final = {
    CRD_KIND: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "PriorityLevelConfiguration": "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
    "FlowSchema": "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
}
"""In install order: referenced kinds come first."""
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
MANAGER_NAME: Final = "joiner"
DIGEST_ANNOTATION: Final = "joiner.dev/manifest"
"""Annotation: digest of the manifest that the object was created from."""
HELM_RELEASE_ANNOTATION: Final = "meta.helm.sh/release-name"


def parse_manifests(body: bytes) -> tuple[Manifest, ...]:
    """Parse a JSON list of manifests and mark them as managed by Joiner; the result is in install order.

    Raises:
        msgspec.DecodeError: *body* is not a list of manifests.
        KeyError: a kind cannot be installed.
    """
    manifests = msgspec.json.decode(body, type=list[dict[str, Any]])
    kinds = list(MANIFEST_PATHS)
    for item in manifests:
        MANIFEST_PATHS[item["kind"]]
    return tuple(
        mark_as_managed(manifest)
        for manifest in sorted(
            manifests, key=lambda manifest: (kinds.index(manifest["kind"]), get_manifest_name(manifest))
        )
    )


def mark_as_managed(manifest: Manifest) -> Manifest:
    """Return *manifest* with our label and the digest of its content."""
    metadata = manifest["metadata"]
    digest = sha256(msgspec.json.encode(manifest, order="sorted")).hexdigest()[:16]
    return {
        **manifest,
        "metadata": {
            **metadata,
            "labels": {**metadata.get("labels", {}), MANAGED_BY_LABEL: MANAGER_NAME},
            "annotations": {**metadata.get("annotations", {}), DIGEST_ANNOTATION: digest},
        },
    }


def get_manifest_name(manifest: Manifest) -> str:
    """Return the object's name."""
    return str(manifest["metadata"]["name"])


def build_manifest_path(manifest: Manifest) -> str:
    """Return the API path of the object.

    >>> build_manifest_path({"kind": "ClusterRole", "metadata": {"name": "a"}})
    '/apis/rbac.authorization.k8s.io/v1/clusterroles/a'
    """
    return f"{MANIFEST_PATHS[manifest['kind']]}/{get_manifest_name(manifest)}"


def format_kind_and_name(manifest: Manifest) -> str:
    """Return kind and name, as shown to users."""
    return f"{manifest['kind']} {get_manifest_name(manifest)}"


def is_managed_by_joiner(live: Manifest) -> bool:
    """Return whether *live* has our label and does not belong to a Helm release."""
    metadata = live["metadata"]
    has_release = HELM_RELEASE_ANNOTATION in (metadata.get("annotations") or {})
    return (metadata.get("labels") or {}).get(MANAGED_BY_LABEL) == MANAGER_NAME and not has_release


def is_being_deleted(live: Manifest) -> bool:
    """Return whether *live* has a deletion timestamp."""
    return "deletionTimestamp" in live["metadata"]


def get_manifest_digest(live: Manifest) -> str:
    """Return the digest of the manifest that *live* was created from, "" if it has none."""
    return str((live["metadata"].get("annotations") or {}).get(DIGEST_ANNOTATION, ""))


def build_collection_path(definition: Manifest) -> str:
    """Return the path of all objects of the CRD *definition*, in all namespaces, at its storage version.

    >>> versions = [{"name": "v1beta1", "storage": False}, {"name": "v1", "storage": True}]
    >>> build_collection_path({"spec": {"group": "g.io", "names": {"plural": "things"}, "versions": versions}})
    '/apis/g.io/v1/things'
    """
    spec = definition["spec"]
    [storage_version] = [version["name"] for version in spec["versions"] if version["storage"]]
    return f"/apis/{spec['group']}/{storage_version}/{spec['names']['plural']}"
