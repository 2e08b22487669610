"""The JSON shapes of the Kubernetes API that all kinds share, with only the fields that are read.

Unknown fields are ignored. A null makes the fast decoder fail; the slow path in `shared.take.kubernetes.page_decoding`
then treats it as a missing field.
"""

from datetime import datetime
from typing import Annotated, TypeAlias

import msgspec
from msgspec import field

Quantities: TypeAlias = dict[str, str | int | float]
"""A ResourceList; the API server writes strings, manifests can also contain numbers."""


Timestamp: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]
"""A timestamp without an offset is refused, because it cannot be compared."""


class OwnerReferenceJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An element of metadata.ownerReferences."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMetaJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The metadata of an object."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Timestamp | None = None
    deletion_timestamp: Timestamp | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReferenceJson, ...] = ()


class TemplateMetaJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The metadata of a template, which is copied to the objects made from it."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class ConditionJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An element of status.conditions."""

    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: Timestamp | None = None
    observed_generation: int = 0


class TaintJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An element of spec.taints."""

    key: str
    effect: str = ""
    value: str = ""


class SelectorExpressionJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """An element of matchExpressions or of a NodePool's requirements; *values* can be written as numbers."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    min_values: int | None = None


class LabelSelectorJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """A label selector."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[SelectorExpressionJson, ...] = ()


class PresenceJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An object of which only the presence is read."""


class NodeSelectorTermJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """A term of a node selector."""

    match_expressions: tuple[SelectorExpressionJson, ...] = ()
    match_fields: tuple[PresenceJson, ...] = ()


class NodeSelectorJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """Node selector terms, of which at least one must match."""

    node_selector_terms: tuple[NodeSelectorTermJson, ...] = ()


class ListMetaJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The metadata of a list page."""

    continue_token: str = field(name="continue", default="")
    resource_version: str = field(name="resourceVersion", default="")
    remaining_count: int | None = field(name="remainingItemCount", default=None)
    """Number of objects on the following pages; None: unknown, as for lists with a field selector."""


class NamespaceJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """v1 Namespace."""

    metadata: ObjectMetaJson


class NodeSpecJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec of a Node."""

    provider_id: str = field(name="providerID", default="")
    taints: tuple[TaintJson, ...] = ()
    unschedulable: bool = False


class NodeStatusJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """status of a Node."""

    capacity: Quantities = {}
    allocatable: Quantities = {}
    conditions: tuple[ConditionJson, ...] = ()


class NodeJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """v1 Node."""

    metadata: ObjectMetaJson
    spec: NodeSpecJson = NodeSpecJson()
    status: NodeStatusJson = NodeStatusJson()
