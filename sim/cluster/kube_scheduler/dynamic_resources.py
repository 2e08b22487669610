"""The plug-in DynamicResources: which nodes have devices for the claims of a pod, and their allocation.

The search is exhaustive and independent of the planner's; only the evaluation of CEL is shared.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import combinations
from typing import Final

import msgspec

from shared.decide.scheduling.devices.cel_selectors import SelectorError, is_selected
from shared.model.core.devices import Device
from shared.wire.decode.dynamic_resources.devices import parse_device
from shared.wire.schema.devices import DeviceJson
from sim.cluster.api_server.api_resources import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.controller_runtime.informer import Informer
from sim.cluster.kube_scheduler.node_filters import FilterRejection, build_rejection
from sim.cluster.kube_scheduler.node_selection import NodeFilter
from sim.cluster.matching import Obj, find_untolerated_taint

_CANNOT_ALLOCATE: Final = build_rejection("cannot allocate all claims", unresolvable=True)
_OTHER_NODE: Final = build_rejection("resourceclaim not available on the node", unresolvable=True)
DEVICE_TAINT_EFFECTS: Final = ("NoSchedule", "NoExecute")
Allocated = list[tuple[str, Device]]
"""Names of requests with their devices."""


class PodDevices(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of one pod, or the problem with them."""

    claims: tuple[Obj, ...] = ()
    problem: str = ""


class DeviceFilter:
    """The devices and claims of a cluster."""

    def __init__(self, api: ApiServer) -> None:
        """Watch the kinds of resource.k8s.io of *api*."""
        self._api = api
        self.claims, self.slices = Informer(api, RESOURCE_CLAIMS), Informer(api, RESOURCE_SLICES)
        self.device_classes = Informer(api, DEVICE_CLASSES)

    @property
    def informers(self) -> tuple[Informer, ...]:
        """The caches whose changes can make a pod schedulable."""
        return self.claims, self.slices, self.device_classes

    def resolve_claims(self, pod: Obj) -> PodDevices | None:
        """Return the claims of *pod*, None if it has none; a claim that does not exist yet is a problem."""
        if not pod["spec"].get("resourceClaims"):
            return None
        namespace = pod["metadata"]["namespace"]
        generated = {
            item["name"]: item.get("resourceClaimName") for item in pod["status"].get("resourceClaimStatuses") or []
        }
        claims: list[Obj] = []
        for pod_claim in pod["spec"]["resourceClaims"]:
            if not isinstance(pod_claim, dict):
                return PodDevices(problem=f"spec.resourceClaims has {pod_claim!r}, which this version cannot read")
            name = pod_claim.get("resourceClaimName") or generated.get(pod_claim["name"])
            claim = self.claims.get(name, namespace) if name else None
            if claim is None:
                return PodDevices(problem=f"waiting for resource claim {pod_claim['name']} to be created")
            claims.append(claim)
        return PodDevices(claims=tuple(claims))

    def build_filter(self, pod_devices: PodDevices | None) -> NodeFilter | None:
        """Return the filter of nodes for a pod with these claims; None if it has none."""
        return None if pod_devices is None else partial(self.find_rejection, pod_devices)

    def find_rejection(self, pod_devices: PodDevices, node_name: str) -> FilterRejection | None:
        """Return why the claims cannot be used on the node; None if they can."""
        if pod_devices.problem:
            return build_rejection(pod_devices.problem, unresolvable=True)
        for claim in pod_devices.claims:
            allocation = (claim.get("status") or {}).get("allocation")
            if allocation is not None and node_name not in _list_node_names(allocation):
                return _OTHER_NODE
        return None if self._allocate(pod_devices, node_name) is not None else _CANNOT_ALLOCATE

    def reserve_claims(self, pod_devices: PodDevices | None, pod: Obj, node_name: str) -> None:
        """Allocate the claims on the node, and reserve them for *pod*."""
        if pod_devices is None:
            return
        allocated_claims = self._allocate(pod_devices, node_name) or []
        metadata = pod["metadata"]
        consumer = {"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}
        for claim, allocated in zip(pod_devices.claims, allocated_claims, strict=True):
            status = claim.get("status") or {}
            reserved_for = [*(status.get("reservedFor") or []), consumer]
            allocation = status.get("allocation") or _build_allocation(allocated, node_name)
            patch = {"status": {"allocation": allocation, "reservedFor": reserved_for}}
            self._api.patch(RESOURCE_CLAIMS, claim["metadata"]["name"], patch, metadata["namespace"], "status")

    def _allocate(self, pod_devices: PodDevices, node_name: str) -> list[Allocated] | None:
        """Return the devices of each claim, [] for those that are allocated; None if there are too few."""
        devices, used = self._list_devices(node_name), self._list_used()
        results: list[Allocated] = []
        for claim in pod_devices.claims:
            if (claim.get("status") or {}).get("allocation") is not None:
                results.append([])
                continue
            free_devices = [device for device in devices if device.id not in used]
            try:
                allocated = next(self._iterate_allocations(claim["spec"]["devices"], free_devices, devices), None)
            except SelectorError:
                return None
            if allocated is None:
                return None
            used |= {device.id for _, device in allocated}
            results.append(allocated)
        return results

    def _iterate_allocations(self, spec: Obj, free: list[Device], devices: list[Device]) -> Iterator[Allocated]:
        """Yield every allocation of a claim that satisfies its constraints."""
        for allocated in self._iterate_requests(spec["requests"], free, devices):
            if all(_is_constraint_met(item, allocated) for item in spec.get("constraints") or []):
                yield allocated

    def _iterate_requests(self, requests: list[Obj], free: list[Device], devices: list[Device]) -> Iterator[Allocated]:
        if not requests:
            yield []
            return
        first, *later_requests = requests
        alternatives = [(first["name"], first["exactly"])] if "exactly" in first else []
        alternatives += [(f"{first['name']}/{item['name']}", item) for item in first.get("firstAvailable") or []]
        for name, request in alternatives:
            matching = [device for device in devices if self._is_match(request, device)]
            usable = [device for device in matching if device in free and _is_tolerated(request, device)]
            takes_all = request.get("allocationMode") == "All"
            count = len(matching) if takes_all else request.get("count") or 1
            for request_devices in combinations(usable, count) if count else ():
                remaining_devices = [device for device in free if device not in request_devices]
                for remaining in self._iterate_requests(later_requests, remaining_devices, devices):
                    yield [*((name, device) for device in request_devices), *remaining]

    def _is_match(self, request: Obj, device: Device) -> bool:
        device_class = self.device_classes.get(request["deviceClassName"])
        if device_class is None:
            return False
        selectors = [*(device_class["spec"].get("selectors") or []), *(request.get("selectors") or [])]
        return all(is_selected(selector["cel"]["expression"], device) for selector in selectors)

    def _list_devices(self, node_name: str) -> list[Device]:
        slices = [item["spec"] for item in self.slices.list_all() if item["spec"].get("nodeName") == node_name]
        newest: dict[tuple[str, str], int] = {}
        for spec in slices:
            pool = (spec["driver"], spec["pool"]["name"])
            newest[pool] = max(newest.get(pool, 0), spec["pool"]["generation"])
        devices: list[Device] = []
        for (driver, pool_name), generation in sorted(newest.items()):
            current = [
                spec
                for spec in slices
                if (spec["driver"], spec["pool"]["name"], spec["pool"]["generation"]) == (driver, pool_name, generation)
            ]
            if len(current) == current[0]["pool"]["resourceSliceCount"]:
                devices += [
                    parse_device(driver, pool_name, msgspec.convert(item, DeviceJson))
                    for spec in current
                    for item in spec.get("devices") or []
                ]
        return devices

    def _list_used(self) -> set[tuple[str, str, str]]:
        return {
            (result["driver"], result["pool"], result["device"])
            for claim in self.claims.list_all()
            for result in (((claim.get("status") or {}).get("allocation") or {}).get("devices") or {}).get(
                "results", ()
            )
        }


def _build_allocation(allocated: Allocated, node_name: str) -> Obj:
    results = [
        {"request": name, "driver": device.driver, "pool": device.pool, "device": device.name}
        for name, device in allocated
    ]
    field = {"key": "metadata.name", "operator": "In", "values": [node_name]}
    return {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]}}


def _list_node_names(allocation: Obj) -> list[str]:
    terms = (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms") or []
    return [name for term in terms for item in term.get("matchFields") or [] for name in item["values"]]


def _is_tolerated(request: Obj, device: Device) -> bool:
    taints = [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in device.taints]
    return find_untolerated_taint(taints, request.get("tolerations") or [], DEVICE_TAINT_EFFECTS) is None


def _is_constraint_met(constraint: Obj, allocated: Iterable[tuple[str, Device]]) -> bool:
    requests = constraint.get("requests") or []
    name = constraint.get("matchAttribute") or constraint["distinctAttribute"]
    values = [
        next((text for key, _, text in device.attributes if key == name), None)
        for request, device in allocated
        if not requests or request in requests or request.partition("/")[0] in requests
    ]
    if None in values:
        return False
    return len(set(values)) <= 1 if constraint.get("matchAttribute") else len(set(values)) == len(values)
