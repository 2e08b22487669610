"""Pods out of templates: names, hashes and ownership, spelled as the real controllers spell them."""

import hashlib
import json
from typing import Final

from sim.cluster.controllers.informer import Obj

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_API_VERSIONS: Final = {
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "Job": "batch/v1",
    "Node": "v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
}


def template_hash(template: Obj, *, collisions: int = 0) -> str:
    """Answer ten characters that stand for *template*."""
    text = json.dumps([template, collisions], sort_keys=True)
    digest = hashlib.blake2b(text.encode(), digest_size=10).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest)


def owner_reference(owner: Obj, kind: str) -> Obj:
    """Answer the reference that makes *owner* of *kind* the controller of something."""
    return {
        "apiVersion": _API_VERSIONS[kind],
        "kind": kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_from_template(
    owner: Obj, kind: str, *, name: str = "", labels: Obj | None = None, spec: Obj | None = None
) -> Obj:
    """Answer a pod of *owner*'s template, *labels* and *spec* laid over; without *name* the server makes one."""
    template = owner["spec"]["template"]
    given = template.get("metadata") or {}
    metadata: Obj = {
        "labels": {**(given.get("labels") or {}), **(labels or {})},
        "annotations": given.get("annotations") or {},
        "ownerReferences": [owner_reference(owner, kind)],
    }
    if given.get("finalizers"):
        metadata["finalizers"] = given["finalizers"]
    metadata |= {"name": name} if name else {"generateName": f"{owner['metadata']['name']}-"}
    return {"metadata": metadata, "spec": {**template["spec"], **(spec or {})}}


def scaled_value(value: int | str | None, total: int, *, up: bool, default: int | str) -> int:
    """Read an int-or-percentage of *total*, rounded *up* or down."""
    wanted = default if value is None else value
    if isinstance(wanted, str) and wanted.endswith("%"):
        product = int(wanted[:-1]) * total
        return -(-product // 100) if up else product // 100
    return int(wanted)
