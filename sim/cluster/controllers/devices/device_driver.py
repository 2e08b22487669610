"""A fake DRA driver: publishes the devices of each node in a ResourceSlice, some seconds after the node is ready.

Tests set which devices an instance type has. A real driver runs as a DaemonSet and finds them on the node.
"""

from datetime import timedelta
from typing import Final

from sim.cluster.api_server.api_resources import RESOURCE_SLICES
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.controller_runtime.informer import Informer, NamespacedName, Obj, get_object_key
from sim.cluster.controller_runtime.object_conditions import is_ready
from sim.cluster.controller_runtime.work_queue import WorkQueue
from sim.time.virtual_clock import Clock

PUBLISH_DELAY: Final = timedelta(seconds=8)
"""Time from a ready node to its slices: the driver's pod starts first."""
_INSTANCE_TYPE_LABEL: Final = "node.kubernetes.io/instance-type"


class DeviceDriver:
    """Publishes `devices_by_type` of *driver* for all nodes."""

    def __init__(self, clock: Clock, api: ApiServer, nodes: Informer, driver: str = "gpu.example.com") -> None:
        """Watch *nodes* of *api*."""
        self._api, self._nodes, self._driver = api, nodes, driver
        self.devices_by_type: dict[str, list[Obj]] = {}
        """Devices, as in spec.devices of a ResourceSlice, by instance type; other types publish nothing."""
        self._queue: WorkQueue[NamespacedName] = WorkQueue(clock, self._publish, "device driver", PUBLISH_DELAY)
        nodes.add_event_handler(self._handle_node)

    def _handle_node(self, event: str, _old: Obj | None, new: Obj) -> None:
        if event != "DELETED" and self.devices_by_type and is_ready(new):
            self._queue.add(get_object_key(new))

    def _publish(self, key: NamespacedName) -> None:
        node = self._nodes.get(key[1])
        type_name = (node["metadata"].get("labels") or {}).get(_INSTANCE_TYPE_LABEL, "") if node is not None else ""
        if node is None or type_name not in self.devices_by_type:
            return
        name = f"{key[1]}-{self._driver}"
        if self._api.list(RESOURCE_SLICES, field_selector=f"metadata.name={name}"):
            return
        owner = {"apiVersion": "v1", "kind": "Node", "name": key[1], "uid": node["metadata"]["uid"]}
        spec = {
            "driver": self._driver,
            "nodeName": key[1],
            "pool": {"name": key[1], "generation": 1, "resourceSliceCount": 1},
            "devices": self.devices_by_type[type_name],
        }
        self._api.create(RESOURCE_SLICES, {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": spec})
