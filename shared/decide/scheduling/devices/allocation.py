"""Allocation of the devices of one node to claims, as kube-scheduler's allocator for structured parameters does it.

A depth-first search takes devices in the order in which they are published, and goes back when a later request or a
constraint cannot be satisfied. Alternatives of firstAvailable are tried in their order. Devices that are taken stay
taken: pods that were placed earlier are not moved to other devices.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

import msgspec

from shared.decide.scheduling.devices.cel_selectors import SelectorError, is_selected
from shared.model.core.devices import ClaimSpec, Device, DeviceConstraint, DeviceId, DeviceRequest, NodeDevices
from shared.model.core.taints import find_untolerated_taint
from shared.state.dynamic_resources.pod_claims import DeviceDemand

MAX_DEVICES_PER_CLAIM: Final = 32
"""resource.k8s.io: AllocationResultsMaxSize."""
MAX_SEARCH_STEPS: Final = 20_000
"""Devices that are tried for the claims of one pod on one node. kube-scheduler stops after 10 s."""
AllocatedDevice: TypeAlias = tuple[str, Device, bool]
"""Request, device, and whether with admin access, which takes nothing."""
Used: TypeAlias = frozenset[DeviceId]


class _SearchLimitReached(Exception):
    """The search was stopped: it has no result."""


def allocate(
    node_devices: NodeDevices, used: Used, claims: tuple[ClaimSpec, ...]
) -> tuple[tuple[AllocatedDevice, ...], ...] | None:
    """Return the devices for each of *claims*; None if they cannot all be allocated next to the *used* devices."""
    return _search(node_devices, used, claims)[0]


def is_search_stopped(node_devices: NodeDevices, demand: DeviceDemand) -> bool:
    """Return whether the search for one pod with *demand* on unused devices reached its limit, without a result."""
    return _search(node_devices, frozenset(), demand.specs)[1]


@lru_cache(maxsize=32_768)
def _search(
    node_devices: NodeDevices, used: Used, claims: tuple[ClaimSpec, ...]
) -> tuple[tuple[tuple[AllocatedDevice, ...], ...] | None, bool]:
    """Return the devices for each claim, or None, and whether the search was stopped."""
    try:
        return _Search(node_devices, used, claims).find_first(), False
    except SelectorError:
        return None, False
    except _SearchLimitReached:
        return None, True


def take_devices(node_devices: NodeDevices, used: Used, claims: tuple[ClaimSpec, ...]) -> Used | None:
    """Return *used* with the devices for *claims*; None if they cannot be allocated."""
    allocated_claims = allocate(node_devices, used, claims)
    if allocated_claims is None:
        return None
    return used | {device.id for devices in allocated_claims for _, device, is_admin in devices if not is_admin}


@lru_cache(maxsize=32_768)
def list_used_by_count(
    node_devices: NodeDevices, used: Used, claims_on_node: frozenset[str], demand: DeviceDemand, max_count: int
) -> tuple[Used, ...]:
    """Return what is used after one pod with *demand*, after two, and so on, up to *max_count* or until none fits.

    Of the shared claims, those in *claims_on_node* are allocated to the node already.
    """
    new_claims = tuple(spec for name, spec in demand.shared if name not in claims_on_node)
    used_by_count: list[Used] = []
    claims = (*new_claims, *demand.generated)
    while len(used_by_count) < max_count:
        used_with_pod = take_devices(node_devices, used, claims) if claims else used
        if used_with_pod is None:
            break
        used_by_count.append(used_with_pod)
        used, claims = used_with_pod, demand.generated
    return tuple(used_by_count)


def find_selector_error(node_devices: NodeDevices, demand: DeviceDemand) -> str:
    """Return the first error of a selector of *demand* on a device; "" if there is none."""
    for spec in demand.specs:
        for request in (alternative for alternatives in spec.requests for alternative in alternatives):
            for device in node_devices.devices:
                try:
                    _is_matching(request, device)
                except SelectorError as error:
                    return str(error)
    return ""


def _is_matching(request: DeviceRequest, device: Device) -> bool:
    return all(is_selected(expression, device) for expression in request.selectors)


class _Constraint(msgspec.Struct, kw_only=True, eq=False):
    """A constraint of one claim, and the values of the devices taken so far."""

    rule: DeviceConstraint
    values: list[tuple[str, str]] = msgspec.field(default_factory=list)

    def is_about(self, request: DeviceRequest) -> bool:
        """Return whether the constraint applies to the devices of *request*; `gpu` includes `gpu/large`."""
        return not self.rule.requests or any(
            name in (request.name, request.name.partition("/")[0]) for name in self.rule.requests
        )

    def find_value(self, device: Device) -> tuple[str, str] | None:
        """Return kind and text of the attribute; None if the device cannot be added."""
        value = next(((kind, text) for name, kind, text in device.attributes if name == self.rule.attribute), None)
        if value is None:
            return None
        can_add = value not in self.values if self.rule.is_distinct else not self.values or value == self.values[0]
        return value if can_add else None


class _Search:
    """One depth-first search; requests are numbered over all claims."""

    def __init__(self, node_devices: NodeDevices, used: Used, claims: tuple[ClaimSpec, ...]) -> None:
        self._devices, self._claims = node_devices.devices, claims
        self._taken_ids = set(used)
        self._counters = {
            (driver, pool, counter_set, counter): amount
            for driver, pool, counter_set, counter, amount in node_devices.counters
        }
        for device in node_devices.devices:
            if device.id in used:
                self._consume(device, -1)
        self._requests = [
            (claim_number, alternatives) for claim_number, claim in enumerate(claims) for alternatives in claim.requests
        ]
        self._constraints = [[_Constraint(rule=rule) for rule in claim.constraints] for claim in claims]
        self._allocated: list[list[AllocatedDevice]] = [[] for _ in claims]
        self._steps = 0

    def find_first(self) -> tuple[tuple[AllocatedDevice, ...], ...] | None:
        """Return the devices of the first solution; None if there is none."""
        for _ in self._allocate_from(0):
            return tuple(tuple(devices) for devices in self._allocated)
        return None

    def _allocate_from(self, position: int) -> Iterator[None]:
        """Yield once for each way to allocate the requests from *position* on."""
        if position == len(self._requests):
            yield
            return
        claim_number, alternatives = self._requests[position]
        for request in alternatives:
            candidates = self._list_candidates(request)
            count = len(candidates) if request.takes_all else request.count
            if not count or count > len(candidates):
                continue
            for _ in self._take(request, claim_number, candidates, count):
                yield from self._allocate_from(position + 1)

    def _list_candidates(self, request: DeviceRequest) -> Sequence[Device]:
        return [device for device in self._devices if _is_matching(request, device)]

    def _take(
        self, request: DeviceRequest, claim_number: int, candidates: Sequence[Device], count: int, start: int = 0
    ) -> Iterator[None]:
        """Yield once for each way to take *count* of *candidates*, of those from number *start* on."""
        if not count:
            yield
            return
        if len(self._allocated[claim_number]) + count > MAX_DEVICES_PER_CLAIM:
            return
        for number in range(start, len(candidates) - count + 1):
            self._steps += 1
            if self._steps > MAX_SEARCH_STEPS:
                raise _SearchLimitReached
            device = candidates[number]
            if self._can_take(request, device):
                yield from self._with_device(request, claim_number, device, (candidates, count - 1, number + 1))
            elif request.takes_all:
                return

    def _with_device(
        self, request: DeviceRequest, claim_number: int, device: Device, next_choice: tuple[Sequence[Device], int, int]
    ) -> Iterator[None]:
        """Take *device*, go on with *next_choice* (candidates, their count, and where to start), and give it back."""
        constraints = [item for item in self._constraints[claim_number] if item.is_about(request)]
        values = [item.find_value(device) for item in constraints]
        if None in values:
            return
        for constraint, value in zip(constraints, values, strict=True):
            if value is not None:
                constraint.values.append(value)
        if not request.has_admin_access:
            self._taken_ids.add(device.id)
            self._consume(device, -1)
        self._allocated[claim_number].append((request.name, device, request.has_admin_access))
        yield from self._take(request, claim_number, *next_choice)
        self._allocated[claim_number].pop()
        if not request.has_admin_access:
            self._taken_ids.discard(device.id)
            self._consume(device, 1)
        for constraint in constraints:
            constraint.values.pop()

    def _can_take(self, request: DeviceRequest, device: Device) -> bool:
        if device.unsupported or find_untolerated_taint(device.taints, request.tolerations) is not None:
            return False
        if request.has_admin_access:
            return True
        return device.id not in self._taken_ids and all(
            self._counters.get((device.driver, device.pool, counter_set, counter), 0) >= amount
            for counter_set, counter, amount in device.counters
        )

    def _consume(self, device: Device, sign: int) -> None:
        for counter_set, counter, amount in device.counters:
            key = (device.driver, device.pool, counter_set, counter)
            self._counters[key] = self._counters.get(key, 0) + sign * amount
