"""Documents of one kind -> values of the model, and problems.

An object is decoded from its bytes in one go. Only where it does not fit is it taken apart, without its nulls; what
does not fit then is named and left out. Pods that say nothing of themselves but who they are share what their
template says by the very bytes of it: a Deployment's spec is decoded once.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from shared.model.objects import Problem
from shared.snapshot import wire_pods
from shared.snapshot.assumed import Complete, waiting
from shared.snapshot.flat import Document, unreadable
from shared.snapshot.kinds import Listing
from shared.snapshot.pages import without_nulls
from shared.snapshot.pods import Template, pod_from_template, template_from_wire
from shared.snapshot.wire_core import Meta

_NO_STATUS: Final = wire_pods.PodStatus()


class _Bare(msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """A Pod that has no status."""

    api: msgspec.Raw = msgspec.field(name="apiVersion", default=msgspec.Raw())
    kind: msgspec.Raw = msgspec.Raw()
    metadata: Meta
    spec: msgspec.Raw


_BARE: Final = msgspec.json.Decoder(_Bare)
_SPEC: Final = msgspec.json.Decoder(wire_pods.PodSpec)


class Unread:
    """Documents of one kind that are read one after the other; *complete* is what they get before."""

    def __init__(self, listing: Listing, complete: Complete) -> None:
        """Have read nothing."""
        self.found: list[Any] = []
        self.problems: list[Problem] = []
        self._listing, self._complete = listing, complete
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(listing.wire)

    def read(self, documents: Iterable[Document]) -> None:
        """Read *documents*; what they are joins what was found, in order, or the problems."""
        for document in documents:
            self.read_one(document)

    def read_one(self, document: Document) -> None:
        """Read one."""
        try:
            self._take(document, self._decoder.decode(document.body))
        except ValueError:
            self._take_apart(document)

    def _take(self, document: Document, item: Any) -> None:  # noqa: ANN401 - some wire type
        if item.metadata.namespace != document.namespace:
            item = replace(item, metadata=replace(item.metadata, namespace=document.namespace))
        completed = self._complete(item)
        if completed is not None:
            self.found.append(self._listing.convert(completed))

    def _take_apart(self, document: Document) -> None:
        try:
            plain = _placed(document)
        except ValueError as error:
            self.problems.append(unreadable(f"is not JSON: {error}", document.kind, document.name))
            return
        try:
            self._take(document, msgspec.convert(plain, type=self._listing.wire))
        except ValueError:
            _, problems = self._listing.objects([plain])
            self.problems += problems


class UnreadPods(Unread):
    """The same for pods, which are many and alike."""

    def __init__(self, listing: Listing, complete: Complete, *, assume_unschedulable: bool) -> None:
        """Have read nothing."""
        super().__init__(listing, complete)
        self._assume = assume_unschedulable
        self._templates: dict[bytes, tuple[Template, wire_pods.PodStatus]] = {}

    def read_one(self, document: Document) -> None:
        """Read one."""
        try:
            bare = _BARE.decode(document.body)
            template, status = self._template(bytes(bare.spec), bare.metadata.name)
        except ValueError:
            super().read_one(document)
            return
        metadata = bare.metadata
        if not metadata.namespace:
            metadata = replace(metadata, namespace=document.namespace)
        self.found.append(pod_from_template(template, metadata, status))

    def _template(self, body: bytes, name: str) -> tuple[Template, wire_pods.PodStatus]:
        known = self._templates.get(body)
        if known is not None:
            return known
        spec = _SPEC.decode(body)
        status = waiting(spec.node_name, _NO_STATUS) if self._assume else _NO_STATUS
        read = template_from_wire(spec, status, name), status
        if all(volume.ephemeral is None for volume in spec.volumes):  # the names of those claims have the pod's in them
            self._templates[body] = read
        return read


def _placed(document: Document) -> object:
    plain = without_nulls(msgspec.json.decode(document.body))
    meta = plain.get("metadata")
    if document.namespace and isinstance(meta, dict):
        return plain | {"metadata": {"namespace": document.namespace} | meta}
    return plain
