"""Manifest documents of one kind -> model values and problems.

An object is decoded from its bytes in one pass. Only if it does not fit, it is decoded again without its null members;
if it still does not fit, it is left out with a Problem. Pods without a status share a converted template if the bytes
of their specs are equal, so that the spec of a Deployment is decoded once.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from shared.model.core.metadata import Problem
from shared.take.kubernetes.page_decoding import without_nulls
from shared.take.kubernetes.resource_kinds import ResourceKind
from shared.take.manifests.defaults import FillDefaults, add_unschedulable_condition
from shared.take.manifests.documents import ManifestDocument, build_unreadable_problem
from shared.wire.decode.pods import PodTemplateSpec, build_pod, parse_pod_template_spec
from shared.wire.schema import pods
from shared.wire.schema.core import ObjectMetaJson

_EMPTY_STATUS: Final = pods.PodStatusJson()


class _StatuslessPod(msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """A Pod that has no status."""

    api_version: msgspec.Raw = msgspec.field(name="apiVersion", default=msgspec.Raw())
    kind: msgspec.Raw = msgspec.Raw()
    metadata: ObjectMetaJson
    spec: msgspec.Raw


_STATUSLESS_POD_DECODER: Final = msgspec.json.Decoder(_StatuslessPod)
_POD_SPEC_DECODER: Final = msgspec.json.Decoder(pods.PodSpecJson)


class ManifestDecoder:
    """Decoder for manifests of one kind; *fill_defaults* is applied before the conversion."""

    def __init__(self, resource_kind: ResourceKind, fill_defaults: FillDefaults) -> None:
        """Start without values and problems."""
        self.values: list[Any] = []
        self.problems: list[Problem] = []
        self._resource_kind, self._fill_defaults = resource_kind, fill_defaults
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(resource_kind.wire_type)

    def decode_documents(self, documents: Iterable[ManifestDocument]) -> None:
        """Decode *documents* in order into *values* and *problems*."""
        for document in documents:
            self.decode_document(document)

    def decode_document(self, document: ManifestDocument) -> None:
        """Decode one document."""
        try:
            self._add_value(document, self._decoder.decode(document.body))
        except ValueError:
            self._decode_without_nulls(document)

    def _add_value(self, document: ManifestDocument, item: Any) -> None:  # noqa: ANN401 - some wire type
        if item.metadata.namespace != document.namespace:
            item = replace(item, metadata=replace(item.metadata, namespace=document.namespace))
        completed_item = self._fill_defaults(item)
        if completed_item is not None:
            self.values.append(self._resource_kind.convert(completed_item))

    def _decode_without_nulls(self, document: ManifestDocument) -> None:
        try:
            plain = _decode_plain_document(document)
        except ValueError as error:
            self.problems.append(build_unreadable_problem(f"is not JSON: {error}", document.kind, document.name))
            return
        try:
            self._add_value(document, msgspec.convert(plain, type=self._resource_kind.wire_type))
        except ValueError:
            _, problems = self._resource_kind.convert_objects([plain])
            self.problems += problems


class PodManifestDecoder(ManifestDecoder):
    """Decoder for pods, which are numerous and often share a template."""

    def __init__(self, resource_kind: ResourceKind, fill_defaults: FillDefaults, *, assume_unschedulable: bool) -> None:
        """Start without values and problems."""
        super().__init__(resource_kind, fill_defaults)
        self._assume_unschedulable = assume_unschedulable
        self._templates: dict[bytes, tuple[PodTemplateSpec, pods.PodStatusJson]] = {}

    def decode_document(self, document: ManifestDocument) -> None:
        """Decode one pod."""
        try:
            statusless_pod = _STATUSLESS_POD_DECODER.decode(document.body)
            template, status = self._get_template(bytes(statusless_pod.spec), statusless_pod.metadata.name)
        except ValueError:
            super().decode_document(document)
            return
        metadata = statusless_pod.metadata
        if not metadata.namespace:
            metadata = replace(metadata, namespace=document.namespace)
        self.values.append(build_pod(template, metadata, status))

    def _get_template(self, body: bytes, name: str) -> tuple[PodTemplateSpec, pods.PodStatusJson]:
        cached_template = self._templates.get(body)
        if cached_template is not None:
            return cached_template
        spec = _POD_SPEC_DECODER.decode(body)
        status = (
            add_unschedulable_condition(spec.node_name, _EMPTY_STATUS) if self._assume_unschedulable else _EMPTY_STATUS
        )
        template_and_status = parse_pod_template_spec(spec, status, name), status
        if all(
            volume.ephemeral is None for volume in spec.volumes
        ):  # the names of these volume claims contain the name of the pod
            self._templates[body] = template_and_status
        return template_and_status


def _decode_plain_document(document: ManifestDocument) -> object:
    plain = without_nulls(msgspec.json.decode(document.body))
    meta = plain.get("metadata")
    if document.namespace and isinstance(meta, dict):
        return plain | {"metadata": {"namespace": document.namespace} | meta}
    return plain
