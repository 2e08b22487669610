"""The JSON shapes of resource.k8s.io/v1, with only the fields that are read."""

import msgspec
from msgspec import field

from shared.wire.schema.core import ObjectMetaJson, PresenceJson, SelectorExpressionJson, TaintJson
from shared.wire.schema.pods import TolerationJson


class CelSelectorJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """cel of a selector."""

    expression: str = ""


class DeviceSelectorJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An element of selectors."""

    cel: CelSelectorJson | None = None


class DeviceRequestJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """exactly of a request, or an element of firstAvailable."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelectorJson, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool = False
    tolerations: tuple[TolerationJson, ...] = ()
    capacity: PresenceJson | None = None


class NamedRequestJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An element of spec.devices.requests."""

    name: str = ""
    exactly: DeviceRequestJson | None = None
    first_available: tuple[DeviceRequestJson, ...] = ()


class DeviceConstraintJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An element of spec.devices.constraints."""

    requests: tuple[str, ...] = ()
    match_attribute: str = ""
    distinct_attribute: str = ""


class DeviceClaimJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec.devices of a ResourceClaim."""

    requests: tuple[NamedRequestJson, ...] = ()
    constraints: tuple[DeviceConstraintJson, ...] = ()


class ClaimSpecJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec of a ResourceClaim."""

    devices: DeviceClaimJson = DeviceClaimJson()


class FieldSelectorJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An element of matchFields."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class AllocationTermJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A term of the node selector of an allocation."""

    match_expressions: tuple[SelectorExpressionJson, ...] = ()
    match_fields: tuple[FieldSelectorJson, ...] = ()


class AllocationSelectorJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """nodeSelector of an allocation."""

    node_selector_terms: tuple[AllocationTermJson, ...] = ()


class AllocationResultJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An element of status.allocation.devices.results."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False


class AllocatedDevicesJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """status.allocation.devices."""

    results: tuple[AllocationResultJson, ...] = ()


class AllocationJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """status.allocation of a ResourceClaim."""

    devices: AllocatedDevicesJson = AllocatedDevicesJson()
    node_selector: AllocationSelectorJson = AllocationSelectorJson()


class ConsumerJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An element of status.reservedFor."""

    resource: str = ""
    name: str = ""


class ClaimStatusJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """status of a ResourceClaim."""

    allocation: AllocationJson | None = None
    reserved_for: tuple[ConsumerJson, ...] = ()


class ResourceClaimJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """resource.k8s.io/v1 ResourceClaim."""

    metadata: ObjectMetaJson
    spec: ClaimSpecJson = ClaimSpecJson()
    status: ClaimStatusJson = ClaimStatusJson()


class ClaimTemplateSpecJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec of a ResourceClaimTemplate."""

    spec: ClaimSpecJson = ClaimSpecJson()


class ResourceClaimTemplateJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """resource.k8s.io/v1 ResourceClaimTemplate."""

    metadata: ObjectMetaJson
    spec: ClaimTemplateSpecJson = ClaimTemplateSpecJson()


class DeviceClassSpecJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec of a DeviceClass."""

    selectors: tuple[DeviceSelectorJson, ...] = ()


class DeviceClassJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """resource.k8s.io/v1 DeviceClass."""

    metadata: ObjectMetaJson
    spec: DeviceClassSpecJson = DeviceClassSpecJson()


class AttributeJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The value of an attribute: exactly one field is set."""

    integer: int | None = field(name="int", default=None)
    boolean: bool | None = field(name="bool", default=None)
    string: str | None = None
    version: str | None = None


class CapacityJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The value of a capacity."""

    value: str | int = "0"


class CounterJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The value of a counter."""

    value: str | int = "0"


class CounterConsumptionJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An element of consumesCounters."""

    counter_set: str = ""
    counters: dict[str, CounterJson] = {}


class DeviceJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An element of spec.devices of a ResourceSlice."""

    name: str
    attributes: dict[str, AttributeJson] = {}
    capacity: dict[str, CapacityJson] = {}
    taints: tuple[TaintJson, ...] = ()
    consumes_counters: tuple[CounterConsumptionJson, ...] = ()
    node_name: str = ""
    node_selector: PresenceJson | None = None
    all_nodes: bool = False
    allow_multiple_allocations: bool = False


class CounterSetJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An element of spec.sharedCounters."""

    name: str
    counters: dict[str, CounterJson] = {}


class ResourcePoolJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec.pool of a ResourceSlice."""

    name: str
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpecJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec of a ResourceSlice."""

    driver: str
    pool: ResourcePoolJson
    node_name: str = ""
    devices: tuple[DeviceJson, ...] = ()
    shared_counters: tuple[CounterSetJson, ...] = ()


class ResourceSliceJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """resource.k8s.io/v1 ResourceSlice."""

    metadata: ObjectMetaJson
    spec: ResourceSliceSpecJson
