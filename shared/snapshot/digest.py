"""What stands for a snapshot in the journal: its JSON, without what no decision reads, and a digest of that.

Left out is what may be nobody else's business (user data, annotations that are not read, addresses of the control
plane), and what is elsewhere: the catalogue, in the bucket under its instant, and launches, in the table. Of a pod
there is what a Cluster has: what it asks for and where it may be, no container, command or variable.
"""

from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from shared.model.cluster import Cluster
from shared.model.labels import POD_DELETION_COST
from shared.model.objects import Pairs

_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_DOMAINS: Final = ("karpenter.sh", "karpenter.k8s.aws", "joiner.dev", "pv.kubernetes.io")
"""With those below them, as ``compatibility.karpenter.k8s.aws``."""
_LISTS: Final = tuple(
    name
    for name in Cluster.__struct_fields__
    if name not in ("taken_at", "catalogue", "facts", "launch_groups", "problems", "namespaces", "pods", "unavailable")
)
"""Of objects with metadata, or of EC2; annotations of pods and of namespaces are sifted when they are read."""


def stored(cluster: Cluster) -> bytes:
    """Answer the JSON of *cluster* as the journal keeps it; equal clusters are equal bytes, in every process."""
    return _ENCODER.encode(bared(cluster))


def bared(cluster: Cluster) -> Cluster:
    """Answer *cluster* without what no decision about nodes reads."""
    parts: dict[str, Any] = {name: sifted(getattr(cluster, name)) for name in _LISTS}
    parts["node_classes"] = tuple(replace(one, user_data="") for one in parts["node_classes"])
    facts = cluster.facts
    if facts is not None:
        facts = replace(facts, endpoint="", certificate_authority="")
    return replace(cluster, catalogue=None, launch_groups=(), facts=facts, **parts)


def digest_of(body: bytes, cluster: Cluster) -> str:
    """Answer 32 hex digits that stand for *cluster*, whose JSON is *body*, and for the prices that it has."""
    priced_at = cluster.catalogue.priced_at if cluster.catalogue is not None else None
    return sha256(body + _ENCODER.encode(priced_at)).hexdigest()[:32]


def snapshot_digest(cluster: Cluster) -> str:
    """Answer the digest of *cluster*."""
    return digest_of(stored(cluster), cluster)


def sifted(some: Any) -> Any:  # noqa: ANN401 - a tuple of any objects of a Cluster, or None
    """Answer *some* objects without the annotations that no decision reads."""
    return None if some is None else tuple([_without_words(one) for one in some])


def _without_words(one: Any) -> Any:  # noqa: ANN401 - any object of a Cluster
    meta = getattr(one, "meta", None)
    if meta is None or not meta.annotations:
        return one
    kept: Pairs = tuple(pair for pair in meta.annotations if is_read(pair[0]))
    return one if len(kept) == len(meta.annotations) else replace(one, meta=replace(meta, annotations=kept))


def is_read(annotation: str) -> bool:
    """Whether some decision may read that *annotation* of an object."""
    domain = f".{annotation.partition('/')[0]}"
    return annotation == POD_DELETION_COST or any(domain.endswith(f".{one}") for one in _DOMAINS)
