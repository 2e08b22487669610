"""The JSON of the Kubernetes API that all kinds share, only the fields that are read.

Unknown fields are ignored. A null takes the slow way of `shared.snapshot.pages`, where it is as if it were not there.
"""

from datetime import datetime
from typing import Annotated, TypeAlias

import msgspec
from msgspec import field

Quantities: TypeAlias = dict[str, str | int | float]
"""A ResourceList; the API server writes strings, people numbers too."""


Instant: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]
"""One without its offset is refused: it could not be compared."""


class Owner(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One of metadata.ownerReferences."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Meta(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The metadata of an object."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Instant | None = None
    deletion_timestamp: Instant | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[Owner, ...] = ()


class TemplateMeta(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The metadata of a template: what is made of it gets these."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class Condition(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One of status.conditions."""

    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: Instant | None = None
    observed_generation: int = 0


class Taint(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A taint."""

    key: str
    effect: str = ""
    value: str = ""


class Expression(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """One of matchExpressions, or of a NodePool's requirements; *values* may be written as numbers."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    min_values: int | None = None


class LabelSelector(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """A selector of labels."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[Expression, ...] = ()


class Unread(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Something of which only the presence counts."""


class NodeTerm(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """A term of a node selector."""

    match_expressions: tuple[Expression, ...] = ()
    match_fields: tuple[Unread, ...] = ()


class NodeSelector(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """Terms, of which any one must hold."""

    node_selector_terms: tuple[NodeTerm, ...] = ()


class ListMeta(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The metadata of a page."""

    continue_token: str = field(name="continue", default="")
    resource_version: str = field(name="resourceVersion", default="")


class Namespace(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """v1 Namespace."""

    metadata: Meta


class NodeSpec(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec of a Node."""

    provider_id: str = field(name="providerID", default="")
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """status of a Node."""

    capacity: Quantities = {}
    allocatable: Quantities = {}
    conditions: tuple[Condition, ...] = ()


class Node(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """v1 Node."""

    metadata: Meta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
