"""The annotation `joiner.dev/devices` of NodeOverlays: devices as in ResourceSlices, with their driver and count."""

from typing import Final

import msgspec

from shared.model.core.devices import Device
from shared.model.core.labels import DEVICES
from shared.wire.decode.dynamic_resources.devices import parse_device
from shared.wire.schema import devices as wire

MAX_DEVICES: Final = 128
"""Devices of one node; resource.k8s.io allows as many in a ResourceSlice."""
_FIX: Final = (
    'write a JSON list like [{"driver": "gpu.example.com", "count": 8, "attributes": {"model": {"string": "a100"}}}]'
)


class _DeclaredDevicesJson(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """*count* equal devices of a driver."""

    driver: str
    count: int = 1
    name: str = "device"
    """Names get a number: ``device-0``."""
    attributes: dict[str, wire.AttributeJson] = {}
    capacity: dict[str, wire.CapacityJson | str] = {}


def parse_declared_devices(text: str) -> tuple[Device, ...] | None:
    """Parse the value of the annotation; None if it is empty.

    Raises:
        ValueError: it is not valid; the message has the fix.
    """
    if not text:
        return None
    try:
        groups = msgspec.json.decode(text, type=tuple[_DeclaredDevicesJson, ...])
        devices = tuple(
            parse_device(group.driver, "declared", _build_device(group, index))
            for group in groups
            for index in range(min(group.count, MAX_DEVICES + 1))
        )
    except ValueError as error:
        raise ValueError(f"{DEVICES}: {error}; {_FIX}") from None
    if not devices or len(devices) > MAX_DEVICES:
        raise ValueError(f"{DEVICES}: declares {len(devices)} devices; write 1 to {MAX_DEVICES}")
    if len({device.id for device in devices}) < len(devices):
        raise ValueError(f"{DEVICES}: two devices of a driver have the same name; write different names")
    return tuple(sorted(devices, key=lambda device: device.driver))


def _build_device(group: _DeclaredDevicesJson, index: int) -> wire.DeviceJson:
    return wire.DeviceJson(
        name=f"{group.name}-{index}",
        attributes=group.attributes,
        capacity={
            name: wire.CapacityJson(value=capacity) if isinstance(capacity, str) else capacity
            for name, capacity in group.capacity.items()
        },
    )
