"""Devices of dynamic resource allocation (resource.k8s.io/v1): what nodes publish, and what pods claim.

Attributes and capacities have names with a domain (``gpu.example.com/model``); a name that is published without a
domain belongs to the domain of its driver.
"""

from datetime import datetime
from typing import Literal, TypeAlias

import msgspec

from shared.model.core.metadata import ObjectMeta
from shared.model.core.requirements import Requirements
from shared.model.core.taints import Taint, Toleration

AttributeKind: TypeAlias = Literal["int", "bool", "string", "version"]
Attribute: TypeAlias = tuple[str, AttributeKind, str]
"""Name with its domain, kind of the value, and the value as text: ``true`` and ``false`` for a bool."""
DeviceId: TypeAlias = tuple[str, str, str]
"""Driver, pool and name."""


class Device(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True, order=True):
    """One device of a node."""

    driver: str
    pool: str
    name: str
    attributes: tuple[Attribute, ...] = ()
    """Sorted."""
    capacity: tuple[tuple[str, str], ...] = ()
    """Quantities by name with its domain, sorted."""
    taints: tuple[Taint, ...] = ()
    """Those that keep claims off: NoSchedule and NoExecute."""
    counters: tuple[tuple[str, str, int], ...] = ()
    """What the device consumes of shared counters: set, counter and thousandths of a unit."""
    unsupported: str = ""
    """The field that Joiner does not support, so that the device is never planned; "" if there is none."""

    @property
    def id(self) -> DeviceId:
        """What identifies the device on its node."""
        return self.driver, self.pool, self.name


class NodeDevices(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """The devices of one node, and the shared counters that they consume."""

    devices: tuple[Device, ...] = ()
    """By driver, pool, and then in the order in which the driver publishes them."""
    counters: tuple[tuple[str, str, str, str, int], ...] = ()
    """Driver, pool, set, counter and thousandths of a unit; sorted."""


class ResourceSlice(msgspec.Struct, frozen=True, kw_only=True):
    """resource.k8s.io/v1 ResourceSlice: a part of a resource pool."""

    meta: ObjectMeta
    driver: str
    pool: str
    generation: int
    slice_count: int
    node_name: str = ""
    """Empty if the devices do not belong to one node: such devices are not planned."""
    devices: tuple[Device, ...] = ()
    counters: tuple[tuple[str, str, int], ...] = ()
    """Shared counters: set, counter and thousandths of a unit."""


class DeviceRequest(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """One alternative of a request for devices."""

    name: str
    """``gpu``; of an alternative in firstAvailable with its request: ``gpu/large``."""
    device_class: str
    selectors: tuple[str, ...] = ()
    """CEL expressions; the device class has more of them."""
    takes_all: bool = False
    count: int = 1
    has_admin_access: bool = False
    tolerations: tuple[Toleration, ...] = ()


class DeviceConstraint(msgspec.Struct, frozen=True, kw_only=True):
    """A constraint on the devices of several requests."""

    requests: tuple[str, ...] = ()
    """Names of requests; empty: all."""
    attribute: str
    is_distinct: bool = False
    """Whether all devices must differ in the attribute; else they must have the same value."""


class ClaimSpec(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """spec of a ResourceClaim."""

    requests: tuple[tuple[DeviceRequest, ...], ...] = ()
    """Of each request the alternatives, the first that is possible is used; without firstAvailable only one."""
    constraints: tuple[DeviceConstraint, ...] = ()
    unsupported: str = ""
    """The field that Joiner does not support; "" if there is none."""


class Allocation(msgspec.Struct, frozen=True, kw_only=True):
    """status.allocation of a ResourceClaim."""

    devices: tuple[DeviceId, ...] = ()
    """Without those of admin access, which do not take devices."""
    terms: tuple[Requirements, ...] = ()
    """Node selector terms: any of them. Empty: every node."""
    node_names: tuple[str, ...] = ()
    """Names of nodes in the terms' matchFields: of any of them, if there are any."""


class ResourceClaim(msgspec.Struct, frozen=True, kw_only=True):
    """resource.k8s.io/v1 ResourceClaim."""

    meta: ObjectMeta
    spec: ClaimSpec
    allocation: Allocation | None = None
    consumers: tuple[str, ...] = ()
    """The pods for which it is reserved, as ``namespace/name``; other consumers as their resource and name."""

    @property
    def name(self) -> str:
        """Namespace and name."""
        return f"{self.meta.namespace}/{self.meta.name}"


class ResourceClaimTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """resource.k8s.io/v1 ResourceClaimTemplate."""

    meta: ObjectMeta
    spec: ClaimSpec


class DeviceClass(msgspec.Struct, frozen=True, kw_only=True):
    """resource.k8s.io/v1 DeviceClass."""

    meta: ObjectMeta
    selectors: tuple[str, ...] = ()
    unsupported: str = ""


class PodClaim(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """An element of spec.resourceClaims of a pod: a ResourceClaim, or a template of which each pod gets its own."""

    name: str
    claim: str = ""
    template: str = ""


class ObservedDevices(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """The devices that nodes of an instance type and NodePool publish."""

    instance_type: str
    node_pool: str
    devices: tuple[Device, ...] = ()
    """Empty: a node of the kind published none."""
    counters: tuple[tuple[str, str, str, str, int], ...] = ()
    varying: tuple[tuple[str, str], ...] = ()
    """Drivers and attributes with different values on different nodes, such as serial numbers; left out of devices."""
    at: datetime
    """When they were last observed."""
