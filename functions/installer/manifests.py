"""What is installed: manifests as a deployment ships them, where they live in the API, and whose they are."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec

Manifest = Mapping[str, Any]

DEFINITION: Final = "CustomResourceDefinition"
COLLECTIONS: Final = {
    DEFINITION: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "PriorityLevelConfiguration": "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
    "FlowSchema": "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
}
"""In the order of installing: what others refer to comes first."""
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
OURS: Final = "joiner"
DIGEST: Final = "joiner.dev/manifest"
"""Annotation: of which manifest this was made."""
HELM: Final = "meta.helm.sh/release-name"


def parse_manifests(body: bytes) -> tuple[Manifest, ...]:
    """Read a JSON list of manifests, marked as ours, in the order of installing.

    Raises:
        msgspec.DecodeError: it is none.
        KeyError: a kind is not one that is installed.
    """
    found = msgspec.json.decode(body, type=list[dict[str, Any]])
    kinds = list(COLLECTIONS)
    for one in found:
        COLLECTIONS[one["kind"]]
    return tuple(marked(one) for one in sorted(found, key=lambda one: (kinds.index(one["kind"]), name_of(one))))


def marked(manifest: Manifest) -> Manifest:
    """Answer *manifest* with our label, and with the digest of what it says."""
    metadata = manifest["metadata"]
    digest = sha256(msgspec.json.encode(manifest, order="sorted")).hexdigest()[:16]
    return {
        **manifest,
        "metadata": {
            **metadata,
            "labels": {**metadata.get("labels", {}), MANAGED_BY: OURS},
            "annotations": {**metadata.get("annotations", {}), DIGEST: digest},
        },
    }


def name_of(manifest: Manifest) -> str:
    """Answer the object's name."""
    return str(manifest["metadata"]["name"])


def path_of(manifest: Manifest) -> str:
    """Answer where the object is.

    >>> path_of({"kind": "ClusterRole", "metadata": {"name": "a"}})
    '/apis/rbac.authorization.k8s.io/v1/clusterroles/a'
    """
    return f"{COLLECTIONS[manifest['kind']]}/{name_of(manifest)}"


def titled(manifest: Manifest) -> str:
    """Answer kind and name, as people are told of it."""
    return f"{manifest['kind']} {name_of(manifest)}"


def is_ours(live: Manifest) -> bool:
    """Whether we made what is *live*, or were given it: by our label, and no release of Helm has it."""
    metadata = live["metadata"]
    has_release = HELM in (metadata.get("annotations") or {})
    return (metadata.get("labels") or {}).get(MANAGED_BY) == OURS and not has_release


def is_going(live: Manifest) -> bool:
    """Whether *live* is on its way out."""
    return "deletionTimestamp" in live["metadata"]


def digest_of(live: Manifest) -> str:
    """Answer of which manifest *live* was made, "" if it does not say."""
    return str((live["metadata"].get("annotations") or {}).get(DIGEST, ""))


def objects_of(definition: Manifest) -> str:
    """Answer the path of all objects that *definition* defines, of every namespace, in its storage version.

    >>> versions = [{"name": "v1beta1", "storage": False}, {"name": "v1", "storage": True}]
    >>> objects_of({"spec": {"group": "g.io", "names": {"plural": "things"}, "versions": versions}})
    '/apis/g.io/v1/things'
    """
    spec = definition["spec"]
    [version] = [one["name"] for one in spec["versions"] if one["storage"]]
    return f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"
