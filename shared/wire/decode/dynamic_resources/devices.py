"""Dynamic resource allocation: wire JSON of resource.k8s.io/v1 -> model."""

from collections.abc import Iterable, Iterator
from typing import Final

from shared.model.core.devices import (
    Allocation,
    Attribute,
    AttributeKind,
    ClaimSpec,
    Device,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from shared.model.core.taints import Taint
from shared.model.core.units import parse_quantity
from shared.wire.decode.core import parse_object_meta, parse_requirements, parse_tolerations
from shared.wire.decode.field_errors import QUANTITY_FIX, add_field_path
from shared.wire.schema import devices as wire
from shared.wire.schema.core import TaintJson

_RESTRICTING_EFFECTS: Final = ("NoSchedule", "NoExecute")
_NODE_NAME_FIELD: Final = "metadata.name"


def parse_resource_slice(resource_slice: wire.ResourceSliceJson) -> ResourceSlice:
    """Parse a ResourceSlice.

    Raises:
        ValueError: an amount is not a quantity.
    """
    spec = resource_slice.spec
    return ResourceSlice(
        meta=parse_object_meta(resource_slice.metadata, {}),
        driver=spec.driver,
        pool=spec.pool.name,
        generation=spec.pool.generation,
        slice_count=spec.pool.resource_slice_count,
        node_name=spec.node_name,
        devices=tuple(parse_device(spec.driver, spec.pool.name, device) for device in spec.devices),
        counters=tuple(
            sorted(
                (counter_set.name, name, _parse_amount("spec.sharedCounters", counter.value))
                for counter_set in spec.shared_counters
                for name, counter in counter_set.counters.items()
            )
        ),
    )


def parse_device(driver: str, pool: str, device: wire.DeviceJson) -> Device:
    """Parse a device of *driver*.

    Raises:
        ValueError: an amount is not a quantity.
    """
    return Device(
        driver=driver,
        pool=pool,
        name=device.name,
        attributes=tuple(sorted(_list_attributes(driver, device))),
        capacity=tuple(
            sorted(
                (add_domain(driver, name), _check_quantity(device.name, capacity.value))
                for name, capacity in device.capacity.items()
            )
        ),
        taints=_parse_taints(device.taints),
        counters=tuple(
            sorted(
                (consumption.counter_set, name, _parse_amount("consumesCounters", counter.value))
                for consumption in device.consumes_counters
                for name, counter in consumption.counters.items()
            )
        ),
        unsupported=_find_unsupported_device_field(device),
    )


def add_domain(driver: str, name: str) -> str:
    """Return *name* with its domain.

    >>> add_domain("gpu.example.com", "model"), add_domain("gpu.example.com", "resource.kubernetes.io/pcieRoot")
    ('gpu.example.com/model', 'resource.kubernetes.io/pcieRoot')
    """
    return name if "/" in name else f"{driver}/{name}"


def parse_resource_claim(claim: wire.ResourceClaimJson) -> ResourceClaim:
    """Parse a ResourceClaim.

    Raises:
        ValueError: the node selector of its allocation cannot be parsed.
    """
    namespace = claim.metadata.namespace
    return ResourceClaim(
        meta=parse_object_meta(claim.metadata, {}),
        spec=parse_claim_spec(claim.spec),
        allocation=_parse_allocation(claim.status.allocation) if claim.status.allocation is not None else None,
        consumers=tuple(
            sorted(
                f"{namespace}/{consumer.name}"
                if consumer.resource == "pods"
                else f"{consumer.resource} {consumer.name}"
                for consumer in claim.status.reserved_for
            )
        ),
    )


def parse_resource_claim_template(template: wire.ResourceClaimTemplateJson) -> ResourceClaimTemplate:
    """Parse a ResourceClaimTemplate."""
    return ResourceClaimTemplate(
        meta=parse_object_meta(template.metadata, {}), spec=parse_claim_spec(template.spec.spec)
    )


def parse_device_class(device_class: wire.DeviceClassJson) -> DeviceClass:
    """Parse a DeviceClass."""
    selectors, unsupported = _parse_selectors(device_class.spec.selectors, "spec.selectors")
    return DeviceClass(meta=parse_object_meta(device_class.metadata, {}), selectors=selectors, unsupported=unsupported)


def parse_claim_spec(spec: wire.ClaimSpecJson) -> ClaimSpec:
    """Parse the spec of a claim; the first field that is not supported is kept by its path."""
    requests: list[tuple[DeviceRequest, ...]] = []
    unsupported_fields: list[str] = []
    for number, request in enumerate(spec.devices.requests):
        path = f"spec.devices.requests[{number}]"
        if request.exactly is not None:
            pairs = [_parse_request(request.exactly, request.name, f"{path}.exactly")]
        else:
            pairs = [
                _parse_request(alternative, f"{request.name}/{alternative.name}", f"{path}.firstAvailable[{index}]")
                for index, alternative in enumerate(request.first_available)
            ]
        requests.append(tuple(parsed_request for parsed_request, _ in pairs))
        unsupported_fields += [field for _, field in pairs if field] or ([] if pairs else [path])
    constraints = tuple(
        DeviceConstraint(
            requests=tuple(sorted(constraint.requests)),
            attribute=constraint.match_attribute or constraint.distinct_attribute,
            is_distinct=not constraint.match_attribute,
        )
        for constraint in spec.devices.constraints
    )
    unsupported_fields += [
        f"spec.devices.constraints[{number}]"
        for number, constraint in enumerate(constraints)
        if not constraint.attribute
    ]
    return ClaimSpec(requests=tuple(requests), constraints=constraints, unsupported=next(iter(unsupported_fields), ""))


def _parse_request(request: wire.DeviceRequestJson, name: str, path: str) -> tuple[DeviceRequest, str]:
    """Return *request*, and the path of a field in it that is not supported, "" if there is none."""
    selectors, unsupported = _parse_selectors(request.selectors, f"{path}.selectors")
    if request.capacity is not None:
        unsupported = f"{path}.capacity"
    if request.allocation_mode not in ("", "ExactCount", "All"):
        unsupported = f"{path}.allocationMode"
    parsed_request = DeviceRequest(
        name=name,
        device_class=request.device_class_name,
        selectors=selectors,
        takes_all=request.allocation_mode == "All",
        count=request.count or 1,
        has_admin_access=request.admin_access,
        tolerations=parse_tolerations(request.tolerations),
    )
    return parsed_request, unsupported


def _parse_selectors(selectors: Iterable[wire.DeviceSelectorJson], path: str) -> tuple[tuple[str, ...], str]:
    """Return the expressions, and the path of a selector of another kind, "" if there is none."""
    expressions: list[str] = []
    unsupported = ""
    for number, selector in enumerate(selectors):
        if selector.cel is None:
            unsupported = unsupported or f"{path}[{number}]"
        else:
            expressions.append(selector.cel.expression)
    return tuple(expressions), unsupported


def _parse_allocation(allocation: wire.AllocationJson) -> Allocation:
    path = "status.allocation.nodeSelector"
    terms = allocation.node_selector.node_selector_terms
    node_names = {
        name
        for term in terms
        for item in term.match_fields
        if item.key == _NODE_NAME_FIELD and item.operator == "In"
        for name in item.values
    }
    return Allocation(
        devices=tuple(
            sorted(
                (result.driver, result.pool, result.device)
                for result in allocation.devices.results
                if not result.admin_access
            )
        ),
        terms=tuple(
            parse_requirements(f"{path}.nodeSelectorTerms[{number}]", term.match_expressions)
            for number, term in enumerate(terms)
        ),
        node_names=tuple(sorted(node_names)),
    )


def _list_attributes(driver: str, device: wire.DeviceJson) -> Iterator[Attribute]:
    for name, attribute in device.attributes.items():
        texts: tuple[tuple[AttributeKind, str | None], ...] = (
            ("int", None if attribute.integer is None else str(attribute.integer)),
            ("bool", None if attribute.boolean is None else str(attribute.boolean).lower()),
            ("string", attribute.string),
            ("version", attribute.version),
        )
        yield from ((add_domain(driver, name), kind, text) for kind, text in texts if text is not None)


def _find_unsupported_device_field(device: wire.DeviceJson) -> str:
    if device.allow_multiple_allocations:
        return "allowMultipleAllocations"
    if device.node_name or device.node_selector is not None or device.all_nodes:
        return "nodeName, nodeSelector or allNodes of a device"
    return ""


def _parse_taints(taints: Iterable[TaintJson]) -> tuple[Taint, ...]:
    restricting_taints = (
        Taint(key=taint.key, effect=taint.effect, value=taint.value)
        for taint in taints
        if taint.effect in _RESTRICTING_EFFECTS
    )
    return tuple(sorted(set(restricting_taints)))


def _parse_amount(path: str, value: str | int) -> int:
    with add_field_path(path, QUANTITY_FIX):
        return parse_quantity(str(value), per_unit=1000)


def _check_quantity(device: str, value: str | int) -> str:
    _parse_amount(f"spec.devices[{device}].capacity", value)
    return str(value)
