"""Pods from templates: names, hashes and owner references, in the format of kube-controller-manager."""

import hashlib
import json
from typing import Final

from sim.cluster.controller_runtime.informer import Obj

_HASH_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_API_VERSION_BY_KIND: Final = {
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "Job": "batch/v1",
    "Node": "v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
}


def compute_template_hash(template: Obj, *, collisions: int = 0) -> str:
    """Return a hash of *template*, of ten characters."""
    text = json.dumps([template, collisions], sort_keys=True)
    digest = hashlib.blake2b(text.encode(), digest_size=10).digest()
    return "".join(_HASH_ALPHABET[byte % len(_HASH_ALPHABET)] for byte in digest)


def build_owner_reference(owner: Obj, kind: str) -> Obj:
    """Return the owner reference that makes *owner* of *kind* the controller of an object."""
    return {
        "apiVersion": _API_VERSION_BY_KIND[kind],
        "kind": kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def build_pod_from_template(
    owner: Obj, kind: str, *, name: str = "", labels: Obj | None = None, spec: Obj | None = None
) -> Obj:
    """Return a pod from *owner*'s template with *labels* and *spec* merged over it.

    Without *name* the API server generates the name.
    """
    template = owner["spec"]["template"]
    template_metadata = template.get("metadata") or {}
    metadata: Obj = {
        "labels": {**(template_metadata.get("labels") or {}), **(labels or {})},
        "annotations": template_metadata.get("annotations") or {},
        "ownerReferences": [build_owner_reference(owner, kind)],
    }
    if template_metadata.get("finalizers"):
        metadata["finalizers"] = template_metadata["finalizers"]
    metadata |= {"name": name} if name else {"generateName": f"{owner['metadata']['name']}-"}
    return {"metadata": metadata, "spec": {**template["spec"], **(spec or {})}}


def compute_scaled_value(value: int | str | None, total: int, *, up: bool, default: int | str) -> int:
    """Return the value of an int-or-percentage of *total*, rounded *up* or down."""
    int_or_percent = default if value is None else value
    if isinstance(int_or_percent, str) and int_or_percent.endswith("%"):
        product = int(int_or_percent[:-1]) * total
        return -(-product // 100) if up else product // 100
    return int(int_or_percent)
