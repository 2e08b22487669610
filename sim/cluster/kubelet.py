"""The kubelets of all nodes: they register, become ready, run what is bound to them, and may fall silent."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from shared.errors import Fault, Gone
from sim.clock import Clock, Timer
from sim.cluster.api import ApiServer
from sim.cluster.controllers.conditions import is_ready, text_of, with_conditions
from sim.cluster.controllers.heartbeats import Heartbeats
from sim.cluster.controllers.informer import Informer, Key, Obj, key_of
from sim.cluster.kubelet_boot import Boot, csi_node_of, node_of, pod_status
from sim.cluster.stages import POD_STAGES, Stage, next_stage

__all__ = ["Boot", "Kubelet"]

CSI_NODES: Final = "csinodes.storage.k8s.io"
LEASES: Final = "leases.coordination.k8s.io"
_RETRY: Final = timedelta(seconds=1)
_RESUME: Final = Stage(name="pod-resume", effect="run", delay=timedelta(), deleting=False)


class Kubelet:
    """Plays every node's kubelet."""

    def __init__(
        self,
        clock: Clock,
        api: ApiServer,
        heartbeats: Heartbeats,
        pods: Informer,
        *,
        seed: int = 0,
        stages: tuple[Stage, ...] = POD_STAGES,
    ) -> None:
        """Run *pods* of *api* in *stages*; *seed* moves their jitter."""
        self._clock, self._api, self._heartbeats, self._pods = clock, api, heartbeats, pods
        self._seed, self._stages = seed, stages
        self._booting: dict[str, Boot] = {}
        self._running: dict[str, Boot] = {}
        self._timers: dict[Key, tuple[str, str, datetime, Timer]] = {}
        pods.on_change(self._on_pod)

    def start(self, boot: Boot) -> None:
        """Switch a machine on: its Node appears after `register_after` and is ready `ready_after` later."""
        self._booting[boot.node_name] = boot
        self._clock.call_after(boot.register_after, lambda: self._register(boot), f"kubelet {boot.node_name}")

    def stop(self, node_name: str) -> None:
        """The machine is gone: no heartbeats, no progress of its pods, or no registration at all."""
        self._booting.pop(node_name, None)
        if self._running.pop(node_name, None) is not None:
            self._heartbeats.cease(node_name)
        for pod in self._api.pods_on(node_name):
            self._forget(key_of(pod))

    def hang(self, node_name: str) -> Callable[[], None]:
        """Let the machine stand still; answer what lets it go on, where it is not switched on anew meanwhile.

        Raises:
            KeyError: no kubelet runs there.
        """
        boot = replace(self._running[node_name], register_after=timedelta(), ready_after=timedelta())
        self.stop(node_name)

        def wake() -> None:
            if node_name not in self._running and node_name not in self._booting:
                self.start(boot)

        return wake

    def is_running(self, node_name: str) -> bool:
        """Say whether the kubelet of *node_name* has registered and lives."""
        return node_name in self._running

    def _is_current(self, boot: Boot) -> bool:
        return boot in (self._booting.get(boot.node_name), self._running.get(boot.node_name))

    def _register(self, boot: Boot) -> None:
        """Create the Node, or take over the one that is there; again later if the API server does not let us."""
        if not self._is_current(boot):
            return
        try:
            node = self._node(boot)
            lease: Obj = {
                "metadata": {"name": boot.node_name},
                "spec": {"holderIdentity": boot.node_name, "leaseDurationSeconds": 40},
            }
            owner = {"apiVersion": "v1", "kind": "Node", "name": boot.node_name, "uid": node["metadata"]["uid"]}
            lease["metadata"]["ownerReferences"] = [owner]
            lease["spec"]["renewTime"] = text_of(self._clock.now())
            if not self._api.list(LEASES, "kube-node-lease", field_selector=f"metadata.name={boot.node_name}"):
                self._api.create(LEASES, lease, "kube-node-lease")
        except Fault:
            self._clock.call_after(_RETRY, lambda: self._register(boot), f"kubelet {boot.node_name}")
            return
        self._running[boot.node_name] = self._booting.pop(boot.node_name, boot)
        self._heartbeats.begin(boot.node_name)
        self._clock.call_after(boot.ready_after, lambda: self._become_ready(boot), f"kubelet {boot.node_name}")
        if boot.late_resources:
            self._clock.call_after(boot.late_after, lambda: self._report_late(boot), f"device plugin {boot.node_name}")
        for pod in self._api.pods_on(boot.node_name):
            self._consider(pod)
            if _was_lost(pod):
                self._apply(key_of(pod), _RESUME)

    def _node(self, boot: Boot) -> Obj:
        wanted = node_of(boot, self._clock.now())
        try:
            self._api.get("nodes", boot.node_name)
        except Gone:
            return self._api.create("nodes", wanted)
        return self._api.patch("nodes", boot.node_name, {"status": wanted["status"]}, "", "status")

    def _become_ready(self, boot: Boot) -> None:
        fresh = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "kubelet is posting ready status",
        }
        self._patch_node(
            boot, lambda node: {"conditions": with_conditions(node, [fresh], self._clock.now())}, self._become_ready
        )
        if boot.volume_limit and self._is_current(boot):
            self._report_driver(boot)

    def _report_driver(self, boot: Boot) -> None:
        selector = f"metadata.name={boot.node_name}"
        for node in self._api.list("nodes", field_selector=selector):
            if not self._api.list(CSI_NODES, field_selector=selector):
                self._api.create(CSI_NODES, csi_node_of(boot, node["metadata"]["uid"]))

    def _report_late(self, boot: Boot) -> None:
        late = dict(boot.late_resources)
        self._patch_node(boot, lambda _: {"capacity": late, "allocatable": late}, self._report_late)

    def _patch_node(self, boot: Boot, status: Callable[[Obj], Obj], again: Callable[[Boot], None]) -> None:
        if not self._is_current(boot):
            return
        try:
            node = self._api.get("nodes", boot.node_name)
            self._api.patch("nodes", boot.node_name, {"status": status(node)}, "", "status")
        except Gone:
            return
        except Fault:
            self._clock.call_after(_RETRY, lambda: again(boot), f"kubelet {boot.node_name}")

    def _on_pod(self, event: str, _old: Obj | None, new: Obj) -> None:
        if event == "DELETED":
            self._forget(key_of(new))
        elif new["spec"].get("nodeName") in self._running:
            self._consider(new)

    def _forget(self, key: Key) -> None:
        waiting = self._timers.pop(key, None)
        if waiting is not None:
            waiting[3].cancel()

    def _consider(self, pod: Obj) -> None:
        """Wait for the stage that *pod* is at; a shorter grace brings its end forward."""
        key, stage = key_of(pod), next_stage(pod, self._stages)
        if stage is None:
            self._forget(key)
            return
        due = self._clock.now() + stage.takes(pod, self._seed)
        waiting = self._timers.get(key)
        if waiting is not None and waiting[:2] == (stage.name, pod["metadata"]["uid"]) and waiting[2] <= due:
            return
        self._forget(key)
        timer = self._clock.call_at(due, lambda: self._apply(key, stage), f"{stage.name} {key[0]}/{key[1]}")
        self._timers[key] = (stage.name, pod["metadata"]["uid"], due, timer)

    def _apply(self, key: Key, stage: Stage) -> None:
        self._timers.pop(key, None)
        pod = self._pods.get(key[1], key[0])
        if pod is None or pod["spec"].get("nodeName") not in self._running or not stage.matches(pod):
            return
        try:
            if stage.effect == "remove":
                self._api.delete("pods", key[1], key[0], grace_period_seconds=0, uid=pod["metadata"]["uid"])
            else:
                boot = self._running[pod["spec"]["nodeName"]]
                status = pod_status(pod, stage.effect, boot, self._clock.now())
                self._api.patch("pods", key[1], {"status": status}, key[0], "status")
        except Gone:
            return
        except Fault:
            self._clock.call_after(_RETRY, lambda: self._apply(key, stage), stage.name)


def _was_lost(pod: Obj) -> bool:
    """Say whether *pod* ran when its node fell silent."""
    return (pod.get("status") or {}).get("phase") == "Running" and not is_ready(pod)
