"""The form of a snapshot in the journal: its JSON without data that no decision reads, and a digest of that JSON.

Left out are data that should not leave the cluster (user data, annotations that are not read, addresses of the control
plane) and data that is stored elsewhere: the catalog, which is in the bucket under its timestamp, and launch groups,
which are in the table. Of a pod, the snapshot has its requests and scheduling constraints, but no containers, commands
or environment variables.
"""

from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import POD_DELETION_COST, SAFE_TO_EVICT, SCALE_DOWN_DISABLED
from shared.model.core.metadata import Pairs

_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_READ_ANNOTATION_DOMAINS: Final = ("karpenter.sh", "karpenter.k8s.aws", "joiner.dev", "pv.kubernetes.io")
"""Subdomains are included, like ``compatibility.karpenter.k8s.aws``."""
_OBJECT_LIST_FIELDS: Final = tuple(
    name
    for name in ClusterSnapshot.__struct_fields__
    if name
    not in (
        "taken_at",
        "catalog",
        "facts",
        "launch_groups",
        "problems",
        "namespaces",
        "pods",
        "unavailable",
        "has_surge_drain",
        "has_dynamic_resources",
        "has_gangs",
        "offering_history",
        "zonal_shifts",
        "group_usage",
    )
)
"""Fields that hold objects with metadata, or EC2 objects.

Annotations of pods and namespaces are filtered when they are read.
"""


def encode_snapshot(cluster: ClusterSnapshot) -> bytes:
    """Encode *cluster* as the JSON that the journal stores; equal snapshots give equal bytes in every process."""
    return _ENCODER.encode(strip_unread_data(cluster))


def strip_unread_data(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """Return *cluster* without the data that no decision about nodes reads."""
    parts: dict[str, Any] = {name: strip_unread_annotations(getattr(cluster, name)) for name in _OBJECT_LIST_FIELDS}
    parts["node_classes"] = tuple(replace(node_class, user_data="") for node_class in parts["node_classes"])
    facts = cluster.facts
    if facts is not None:
        facts = replace(facts, endpoint="", certificate_authority="")
    return replace(cluster, catalog=None, launch_groups=(), facts=facts, **parts)


def compute_encoded_digest(body: bytes, cluster: ClusterSnapshot) -> str:
    """Return a digest of 32 hex digits for *body*, the JSON of *cluster*, and for the time of its prices."""
    priced_at = cluster.catalog.priced_at if cluster.catalog is not None else None
    digest = sha256(body)
    digest.update(_ENCODER.encode(priced_at))  # not joined: 150,000 pods are 375 MB of JSON
    return digest.hexdigest()[:32]


def strip_unread_annotations(objects: Any) -> Any:  # noqa: ANN401 - a tuple of any objects of a Cluster, or None
    """Return *objects* without the annotations that no decision reads."""
    return None if objects is None else tuple([_strip_annotations(obj) for obj in objects])


def _strip_annotations(obj: Any) -> Any:  # noqa: ANN401 - any object of a Cluster
    meta = getattr(obj, "meta", None)
    if meta is None or not meta.annotations:
        return obj
    read_annotations: Pairs = tuple(pair for pair in meta.annotations if is_annotation_read(pair[0]))
    return (
        obj
        if len(read_annotations) == len(meta.annotations)
        else replace(obj, meta=replace(meta, annotations=read_annotations))
    )


@lru_cache(maxsize=1024)
def is_annotation_read(annotation: str) -> bool:
    """Return whether a decision reads *annotation*."""
    domain = f".{annotation.partition('/')[0]}"
    return annotation in (POD_DELETION_COST, SAFE_TO_EVICT, SCALE_DOWN_DISABLED) or any(
        domain.endswith(f".{read_domain}") for read_domain in _READ_ANNOTATION_DOMAINS
    )
