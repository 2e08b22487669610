"""The stored document of one list: its objects and the problems of the objects that were left out, as MessagePack.

A document contains what the decoders read and nothing else: no containers, commands or environment variables of pods,
no managed fields. Only the version of Joiner that wrote a document reads it (`list_index`), so the format can change in
every release.
"""

import zlib
from typing import Any, Final

import msgspec

from shared.model.core.metadata import Problem
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.volumes import CSINode, PersistentVolume, VolumeAttachment, VolumeClaim
from shared.model.kubernetes.workloads import Workload
from shared.store.shared_cache.pod_table import PodColumns, build_pod_columns, build_pods

Values = tuple[Any, ...]

_COMPRESSION_LEVEL: Final = 1
"""Higher levels take several times as long, and save a tenth."""
_MAX_DOCUMENT_BYTES: Final = 1024**3
"""Far above the size of any list: 150,000 pods are 20 MB. A body that decompresses to more is refused."""
_TYPE_BY_FIELD: Final[dict[str, Any]] = {
    "pods": PodColumns,
    "nodes": tuple[Node, ...],
    "node_claims": tuple[NodeClaim, ...],
    "csi_nodes": tuple[CSINode, ...],
    "volumes": tuple[PersistentVolume, ...],
    "volume_claims": tuple[VolumeClaim, ...],
    "volume_attachments": tuple[VolumeAttachment, ...],
    "replica_sets": tuple[Workload, ...],
}
"""The types of the values of a document, by the field of the list in a ClusterSnapshot."""
STORED_FIELDS: Final = frozenset(_TYPE_BY_FIELD)
"""The lists that grow with the number of nodes and pods. EC2NodeClasses, which have user data, are never stored."""
_ENCODER: Final = msgspec.msgpack.Encoder()


class _Document(msgspec.Struct, frozen=True, kw_only=True):
    problems: tuple[Problem, ...]
    values: msgspec.Raw


def encode_list(field: str, values: Values, problems: tuple[Problem, ...]) -> bytes:
    """Return the document of the list *field* with *values* in the order of a ClusterSnapshot."""
    content = build_pod_columns(values) if field == "pods" else values
    document = _Document(problems=problems, values=msgspec.Raw(_ENCODER.encode(content)))
    return zlib.compress(_ENCODER.encode(document), _COMPRESSION_LEVEL)


def decode_list(field: str, body: bytes) -> tuple[Values, tuple[Problem, ...]]:
    """Return the values and problems of the list *field* that `encode_list` encoded.

    Raises:
        ValueError: *body* is truncated, too large, or not a document of that list.
    """
    decompressor = zlib.decompressobj()
    try:
        content = decompressor.decompress(body, _MAX_DOCUMENT_BYTES)
    except zlib.error as error:
        raise ValueError(f"{field}: {error}") from None
    if not decompressor.eof:
        raise ValueError(f"{field}: truncated, or too large")
    document = msgspec.msgpack.decode(content, type=_Document)
    stored_values = msgspec.msgpack.decode(document.values, type=_TYPE_BY_FIELD[field])
    if not isinstance(stored_values, PodColumns):
        return stored_values, document.problems
    try:
        return build_pods(stored_values), document.problems
    except IndexError as error:
        raise ValueError(f"{field}: {error}") from None
