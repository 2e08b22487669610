"""Simulated kubelets of all nodes: registration, readiness, pods of the node, and outages."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from shared.errors import Fault, NotFound
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.controller_runtime.heartbeats import Heartbeats
from sim.cluster.controller_runtime.informer import Informer, NamespacedName, Obj, get_object_key
from sim.cluster.controller_runtime.object_conditions import format_timestamp, is_ready, with_conditions
from sim.cluster.kubelet.node_boot_data import NodeBoot, build_csi_node, build_node, build_pod_status
from sim.cluster.kubelet.pod_stages import POD_STAGES, PodStage, find_next_stage
from sim.time.virtual_clock import Clock, Timer

__all__ = ["Kubelet", "NodeBoot"]

CSI_NODES: Final = "csinodes.storage.k8s.io"
LEASES: Final = "leases.coordination.k8s.io"
_RETRY_INTERVAL: Final = timedelta(seconds=1)
_RESUME_STAGE: Final = PodStage(name="pod-resume", effect="run", delay=timedelta(), deleting=False)


class Kubelet:
    """Simulates the kubelet of every node."""

    def __init__(
        self,
        clock: Clock,
        api: ApiServer,
        heartbeats: Heartbeats,
        pods: Informer,
        *,
        seed: int = 0,
        stages: tuple[PodStage, ...] = POD_STAGES,
    ) -> None:
        """Run *pods* of *api* through *stages*; *seed* determines the jitter of delays."""
        self._clock, self._api, self._heartbeats, self._pods = clock, api, heartbeats, pods
        self._seed, self._stages = seed, stages
        self._booting_by_node: dict[str, NodeBoot] = {}
        self._running_by_node: dict[str, NodeBoot] = {}
        self._timer_by_pod: dict[NamespacedName, tuple[str, str, datetime, Timer]] = {}
        pods.add_event_handler(self._handle_pod_event)

    def start(self, boot: NodeBoot) -> None:
        """Boot an instance: its Node appears after `register_after` and is ready `ready_after` later."""
        self._booting_by_node[boot.node_name] = boot
        self._clock.call_after(boot.register_after, lambda: self._register_node(boot), f"kubelet {boot.node_name}")

    def add_running(self, boot: NodeBoot) -> None:
        """Run the kubelet of a Node that exists already and is ready."""
        self._running_by_node[boot.node_name] = boot
        self._heartbeats.start(boot.node_name)

    def get_boot(self, node_name: str) -> NodeBoot:
        """Return the boot data of a running kubelet.

        Raises:
            KeyError: no kubelet runs on the node.
        """
        return self._running_by_node[node_name]

    def stop(self, node_name: str) -> None:
        """Stop the kubelet: no heartbeats and no progress of its pods, or no registration if it is still booting."""
        self._booting_by_node.pop(node_name, None)
        if self._running_by_node.pop(node_name, None) is not None:
            self._heartbeats.stop(node_name)
        for pod in self._api.list_pods_on_node(node_name):
            self._cancel_stage(get_object_key(pod))

    def freeze(self, node_name: str) -> Callable[[], None]:
        """Stop the kubelet; return a function that resumes it, unless it was started again in between.

        Raises:
            KeyError: no kubelet runs on the node.
        """
        boot = replace(self._running_by_node[node_name], register_after=timedelta(), ready_after=timedelta())
        self.stop(node_name)

        def resume() -> None:
            if node_name not in self._running_by_node and node_name not in self._booting_by_node:
                self.start(boot)

        return resume

    def is_running(self, node_name: str) -> bool:
        """Return whether the kubelet of *node_name* has registered and is running."""
        return node_name in self._running_by_node

    def _is_current(self, boot: NodeBoot) -> bool:
        return boot in (self._booting_by_node.get(boot.node_name), self._running_by_node.get(boot.node_name))

    def _register_node(self, boot: NodeBoot) -> None:
        """Create the Node, or update the existing one; retry later if the API server returns an error."""
        if not self._is_current(boot):
            return
        try:
            node = self._create_or_update_node(boot)
            lease: Obj = {
                "metadata": {"name": boot.node_name},
                "spec": {"holderIdentity": boot.node_name, "leaseDurationSeconds": 40},
            }
            owner = {"apiVersion": "v1", "kind": "Node", "name": boot.node_name, "uid": node["metadata"]["uid"]}
            lease["metadata"]["ownerReferences"] = [owner]
            lease["spec"]["renewTime"] = format_timestamp(self._clock.get_time())
            if not self._api.list(LEASES, "kube-node-lease", field_selector=f"metadata.name={boot.node_name}"):
                self._api.create(LEASES, lease, "kube-node-lease")
        except Fault:
            self._clock.call_after(_RETRY_INTERVAL, lambda: self._register_node(boot), f"kubelet {boot.node_name}")
            return
        self._running_by_node[boot.node_name] = self._booting_by_node.pop(boot.node_name, boot)
        self._heartbeats.start(boot.node_name)
        self._clock.call_after(boot.ready_after, lambda: self._report_ready(boot), f"kubelet {boot.node_name}")
        if boot.device_resources:
            self._clock.call_after(
                boot.device_plugin_delay, lambda: self._report_device_plugins(boot), f"device plugin {boot.node_name}"
            )
        for pod in self._api.list_pods_on_node(boot.node_name):
            self._schedule_stage(pod)
            if _has_lost_readiness(pod):
                self._apply_stage(get_object_key(pod), _RESUME_STAGE)

    def _create_or_update_node(self, boot: NodeBoot) -> Obj:
        desired_node = build_node(boot, self._clock.get_time())
        try:
            self._api.get("nodes", boot.node_name)
        except NotFound:
            return self._api.create("nodes", desired_node)
        return self._api.patch("nodes", boot.node_name, {"status": desired_node["status"]}, "", "status")

    def _report_ready(self, boot: NodeBoot) -> None:
        ready_condition = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "kubelet is posting ready status",
        }
        self._patch_node(
            boot,
            lambda node: {"conditions": with_conditions(node, [ready_condition], self._clock.get_time())},
            self._report_ready,
        )
        if boot.volume_limit and self._is_current(boot):
            self._create_csi_node(boot)

    def _create_csi_node(self, boot: NodeBoot) -> None:
        selector = f"metadata.name={boot.node_name}"
        for node in self._api.list("nodes", field_selector=selector):
            if not self._api.list(CSI_NODES, field_selector=selector):
                self._api.create(CSI_NODES, build_csi_node(boot, node["metadata"]["uid"]))

    def _report_device_plugins(self, boot: NodeBoot) -> None:
        device_resources = dict(boot.device_resources)
        self._patch_node(
            boot, lambda _: {"capacity": device_resources, "allocatable": device_resources}, self._report_device_plugins
        )

    def _patch_node(
        self, boot: NodeBoot, build_status: Callable[[Obj], Obj], retry: Callable[[NodeBoot], None]
    ) -> None:
        if not self._is_current(boot):
            return
        try:
            node = self._api.get("nodes", boot.node_name)
            self._api.patch("nodes", boot.node_name, {"status": build_status(node)}, "", "status")
        except NotFound:
            return
        except Fault:
            self._clock.call_after(_RETRY_INTERVAL, lambda: retry(boot), f"kubelet {boot.node_name}")

    def _handle_pod_event(self, event: str, _old: Obj | None, new: Obj) -> None:
        if event == "DELETED":
            self._cancel_stage(get_object_key(new))
        elif new["spec"].get("nodeName") in self._running_by_node:
            self._schedule_stage(new)

    def _cancel_stage(self, key: NamespacedName) -> None:
        pending_timer = self._timer_by_pod.pop(key, None)
        if pending_timer is not None:
            pending_timer[3].cancel()

    def _schedule_stage(self, pod: Obj) -> None:
        """Start a timer for the current stage of *pod*; a shorter grace period moves it forward."""
        key, stage = get_object_key(pod), find_next_stage(pod, self._stages)
        if stage is None:
            self._cancel_stage(key)
            return
        due_at = self._clock.get_time() + stage.compute_duration(pod, self._seed)
        pending_timer = self._timer_by_pod.get(key)
        if (
            pending_timer is not None
            and pending_timer[:2] == (stage.name, pod["metadata"]["uid"])
            and pending_timer[2] <= due_at
        ):
            return
        self._cancel_stage(key)
        timer = self._clock.call_at(due_at, lambda: self._apply_stage(key, stage), f"{stage.name} {key[0]}/{key[1]}")
        self._timer_by_pod[key] = (stage.name, pod["metadata"]["uid"], due_at, timer)

    def _apply_stage(self, key: NamespacedName, stage: PodStage) -> None:
        self._timer_by_pod.pop(key, None)
        pod = self._pods.get(key[1], key[0])
        if pod is None or pod["spec"].get("nodeName") not in self._running_by_node or not stage.is_match(pod):
            return
        try:
            if stage.effect == "remove":
                self._api.delete("pods", key[1], key[0], grace_period_seconds=0, uid=pod["metadata"]["uid"])
            else:
                boot = self._running_by_node[pod["spec"]["nodeName"]]
                status = build_pod_status(pod, stage.effect, boot, self._clock.get_time())
                self._api.patch("pods", key[1], {"status": status}, key[0], "status")
        except NotFound:
            return
        except Fault:
            self._clock.call_after(_RETRY_INTERVAL, lambda: self._apply_stage(key, stage), stage.name)


def _has_lost_readiness(pod: Obj) -> bool:
    """Return whether *pod* was running when its node stopped reporting."""
    return (pod.get("status") or {}).get("phase") == "Running" and not is_ready(pod)
