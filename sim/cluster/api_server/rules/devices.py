"""Validation of resource.k8s.io/v1, as far as fields are used here: ResourceClaims, templates, slices and classes."""

from collections.abc import Iterator
from typing import Final

from shared.crds.definitions import Object
from sim.cluster.api_server.api_resources import ApiResource
from sim.cluster.api_server.metadata import build_invalid_error

_MAX_REQUESTS: Final = 32
_MAX_SELECTORS: Final = 32
_MAX_ALTERNATIVES: Final = 8
_MAX_DEVICES: Final = 128
_MAX_CONSUMERS: Final = 256
_NODE_FIELDS: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_VALUE_KINDS: Final = ("int", "bool", "string", "version")
Error = tuple[str, str]
"""Field and reason."""


def check_claim(resource: ApiResource, obj: Object) -> None:
    """Check a ResourceClaim.

    Raises:
        Invalid: the message names the first invalid field.
    """
    _raise_first(resource, obj, _find_claim_errors(obj.get("spec") or {}, "spec"))
    status = obj.get("status") or {}
    if len(status.get("reservedFor") or ()) > _MAX_CONSUMERS:
        raise build_invalid_error(resource, obj["metadata"]["name"], "status.reservedFor", "Too many")
    if status.get("reservedFor") and not status.get("allocation"):
        reason = "Forbidden: may not be specified when `allocated` is not set"
        raise build_invalid_error(resource, obj["metadata"]["name"], "status.reservedFor", reason)


def check_claim_template(resource: ApiResource, obj: Object) -> None:
    """Check a ResourceClaimTemplate.

    Raises:
        Invalid: the message names the first invalid field.
    """
    spec = (obj.get("spec") or {}).get("spec") or {}
    _raise_first(resource, obj, _find_claim_errors(spec, "spec.spec"))


def check_device_class(resource: ApiResource, obj: Object) -> None:
    """Check a DeviceClass.

    Raises:
        Invalid: the message names the first invalid field.
    """
    _raise_first(resource, obj, _find_selector_errors((obj.get("spec") or {}).get("selectors") or [], "spec.selectors"))


def check_slice(resource: ApiResource, obj: Object) -> None:
    """Check a ResourceSlice.

    Raises:
        Invalid: the message names the first invalid field.
    """
    _raise_first(resource, obj, _find_slice_errors(obj.get("spec") or {}))


def check_claim_update(resource: ApiResource, old: Object, new: Object) -> None:
    """Check that the spec of a claim and its allocation do not change.

    Raises:
        Invalid: the message names the field.
    """
    name = old["metadata"]["name"]
    if old.get("spec") != new.get("spec"):
        raise build_invalid_error(resource, name, "spec", "Invalid value: field is immutable")
    before, after = ((obj.get("status") or {}).get("allocation") for obj in (old, new))
    if before and after and before != after:
        raise build_invalid_error(resource, name, "status.allocation", "Invalid value: field is immutable")


def _raise_first(resource: ApiResource, obj: Object, errors: Iterator[Error]) -> None:
    for field, reason in errors:
        raise build_invalid_error(resource, obj["metadata"]["name"], field, reason)


def _find_claim_errors(spec: Object, path: str) -> Iterator[Error]:
    devices = spec.get("devices") or {}
    requests = devices.get("requests") or []
    if len(requests) > _MAX_REQUESTS:
        yield f"{path}.devices.requests", f"Too many: {len(requests)}: must have at most {_MAX_REQUESTS} items"
    names = [request.get("name", "") for request in requests]
    for number, request in enumerate(requests):
        field = f"{path}.devices.requests[{number}]"
        if not request.get("name") or names.count(request["name"]) > 1:
            yield f"{field}.name", "Required value" if not request.get("name") else "Duplicate value"
        yield from _find_named_request_errors(request, field)
    for number, constraint in enumerate(devices.get("constraints") or []):
        if ("matchAttribute" in constraint) == ("distinctAttribute" in constraint):
            yield f"{path}.devices.constraints[{number}]", "Required value: exactly one constraint is required"


def _find_named_request_errors(request: Object, path: str) -> Iterator[Error]:
    if ("exactly" in request) == ("firstAvailable" in request):
        yield path, "Required value: exactly one of `exactly` or `firstAvailable` is required"
    alternatives = request.get("firstAvailable") or []
    if len(alternatives) > _MAX_ALTERNATIVES:
        yield f"{path}.firstAvailable", "Too many"
    if "exactly" in request:
        yield from _find_request_errors(request["exactly"], f"{path}.exactly")
    for index, alternative in enumerate(alternatives):
        yield from _find_request_errors(alternative, f"{path}.firstAvailable[{index}]")


def _find_request_errors(request: Object, path: str) -> Iterator[Error]:
    if not request.get("deviceClassName"):
        yield f"{path}.deviceClassName", "Required value"
    mode, count = request.get("allocationMode", "ExactCount"), request.get("count")
    if mode not in ("ExactCount", "All"):
        yield f"{path}.allocationMode", f'Unsupported value: "{mode}"'
    if mode == "All" and count:
        yield f"{path}.count", "Invalid value: must not be specified when allocationMode is 'All'"
    if mode == "ExactCount" and count is not None and count <= 0:
        yield f"{path}.count", "Invalid value: must be greater than zero"
    yield from _find_selector_errors(request.get("selectors") or [], f"{path}.selectors")


def _find_selector_errors(selectors: list[Object], path: str) -> Iterator[Error]:
    if len(selectors) > _MAX_SELECTORS:
        yield path, "Too many"
    for number, selector in enumerate(selectors):
        if not (selector.get("cel") or {}).get("expression"):
            yield f"{path}[{number}].cel.expression", "Required value"


def _find_slice_errors(spec: Object) -> Iterator[Error]:
    for field in ("driver", "pool"):
        if not spec.get(field):
            yield f"spec.{field}", "Required value"
    if not (spec.get("pool") or {}).get("name"):
        yield "spec.pool.name", "Required value"
    if (spec.get("pool") or {}).get("resourceSliceCount", 0) <= 0:
        yield "spec.pool.resourceSliceCount", "Invalid value: must be greater than zero"
    if sum(bool(spec.get(field)) for field in _NODE_FIELDS) != 1:
        yield "spec", "Required value: exactly one of nodeName, nodeSelector, allNodes, perDeviceNodeSelection"
    yield from _find_device_errors(spec.get("devices") or [])


def _find_device_errors(devices: list[Object]) -> Iterator[Error]:
    if len(devices) > _MAX_DEVICES:
        yield "spec.devices", f"Too many: {len(devices)}: must have at most {_MAX_DEVICES} items"
    names = [device.get("name", "") for device in devices]
    for number, device in enumerate(devices):
        if not device.get("name") or names.count(device["name"]) > 1:
            yield f"spec.devices[{number}].name", "Required value" if not device.get("name") else "Duplicate value"
        for key, value in (device.get("attributes") or {}).items():
            if sum(kind in value for kind in _VALUE_KINDS) != 1:
                yield f"spec.devices[{number}].attributes[{key}]", "Required value: exactly one value must be specified"
