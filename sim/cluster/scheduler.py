"""kube-scheduler: it finds a node for every pending pod, or says why there is none.

A pod that is tried in vain loses its nomination, as in all versions but 1.34.

Known differences: no preemption (its message is that of a cluster without lower priorities), scores in a simple form
(least and balanced allocation, preferred affinity, taints to avoid, soft rules), no service-based default spreading;
ties go to the first name instead of to chance.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from shared.errors import Fault
from sim.clock import Clock, Timer
from sim.cluster.api import ApiServer
from sim.cluster.controllers.conditions import condition, is_terminal, with_conditions
from sim.cluster.scheduler_find import Finder
from sim.cluster.scheduler_match import Obj
from sim.cluster.scheduler_nodes import Nodes
from sim.cluster.scheduler_nominator import Nominator, nominated_node
from sim.cluster.scheduler_queue import Waiting
from sim.cluster.scheduler_shape import Shapes
from sim.cluster.scheduler_volumes import SELECTED_NODE, Plan, Volumes, claim_names

NAME: Final = "default-scheduler"
DELAY: Final = timedelta(milliseconds=10)


class Scheduler:
    """The default scheduler of one cluster."""

    def __init__(self, clock: Clock, api: ApiServer) -> None:
        """Follow *api* from now on."""
        self._clock, self._api = clock, api
        self.log: Callable[[str], None] = lambda _: None
        """Hears what is logged of pods that find no node."""
        self.nodes, self.volumes = Nodes(), Volumes(api)
        self._shapes = Shapes()
        self._waiting: dict[str, Waiting] = {}
        self._binding: dict[str, tuple[str, Waiting]] = {}
        self._finder, self._nominator = Finder(self.nodes, self.volumes), Nominator(self.nodes)
        self._turn = 0
        self._moved = self._moved_near = False
        self._timer: tuple[datetime, Timer] | None = None
        self._watch()

    def _watch(self) -> None:
        for resource, watcher in (("namespaces", self._on_namespace), ("nodes", self._on_node), ("pods", self._on_pod)):
            for obj in self._api.list(resource):
                watcher("ADDED", None, obj)
            self._api.subscribe(resource, watcher)
        for informer in (self.volumes.claims, self.volumes.volumes, self.volumes.classes, self.volumes.csi_nodes):
            informer.on_change(self._on_volume)

    def pending(self) -> list[str]:
        """Answer "namespace/name" of the pods that wait for a node, sorted."""
        return sorted(self._waiting)

    def _on_namespace(self, _event: str, _old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            self.nodes.read_namespace(new)
            self._finder.forget()
            self._move()

    def _on_node(self, event: str, old: Obj | None, new: Obj | None) -> None:
        node: Obj = new or old or {}
        if event == "DELETED":
            self.nodes.drop_node(node["metadata"]["name"])
            self._move()
        elif self.nodes.read_node(node):
            self._move()

    def _on_volume(self, _event: str, _old: Obj | None, _new: Obj | None) -> None:
        self._move()

    def _on_pod(self, event: str, old: Obj | None, new: Obj | None) -> None:
        pod: Obj = new or old or {}
        key = key_of(pod)
        if event == "DELETED" or is_terminal(pod):
            self._gone(key)
        elif old is not None and _asks_the_same(old, pod) and self._is_known(key, pod):
            return
        elif pod["spec"].get("nodeName"):
            self._bound(key, pod)
        else:
            self._unbound(key, pod)

    def _is_known(self, key: str, pod: Obj) -> bool:
        """Say whether *pod*, of which only the status has changed, needs no other look; keep what it says now."""
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.pod = pod
            self._note(key, waiting)
        return waiting is not None or (key in self.nodes.placed and bool(pod["spec"].get("nodeName")))

    def _note(self, key: str, entry: Waiting) -> None:
        """A nomination is no reason to try the pod itself; one that is given up may be the place of others."""
        if self._nominator.note(key, entry.pod, entry.shape):
            self._move()

    def _gone(self, key: str) -> None:
        self._waiting.pop(key, None)
        self._binding.pop(key, None)
        self._nominator.forget(key)
        if self.nodes.lift(key):
            self._move()

    def _bound(self, key: str, pod: Obj) -> None:
        self._waiting.pop(key, None)
        self._binding.pop(key, None)
        self._nominator.forget(key)
        shape = self._shapes.of(pod)
        terminating = bool(pod["metadata"].get("deletionTimestamp"))
        if self.nodes.place(key, pod["spec"]["nodeName"], shape, terminating=terminating):
            self._move(near=True)

    def _unbound(self, key: str, pod: Obj) -> None:
        spec = pod["spec"]
        if spec.get("schedulerName", NAME) != NAME or key in self._binding:
            return
        if pod["metadata"].get("deletionTimestamp"):
            self._waiting.pop(key, None)
            return
        if spec.get("schedulingGates"):
            self._clock.call_after(DELAY, lambda: self._say_gated(key), f"scheduler {key}")
            return
        self._turn += 1
        due = self._clock.now() + DELAY
        self._waiting[key] = Waiting(pod, self._shapes.of(pod), self._turn, due)
        self._note(key, self._waiting[key])
        self._wake(due)

    def _say_gated(self, key: str) -> None:
        namespace, name = key.split("/", 1)
        try:
            pod = self._api.get("pods", name, namespace)
            self._explain(pod, "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")
        except Fault:
            return

    def _move(self, *, near: bool = False) -> None:
        """Something changed: pods that had no place are worth another look, if *near* only those that look around."""
        self._moved_near = True
        self._moved = self._moved or not near
        if self._waiting or self._binding:
            self._wake(self._clock.now() + DELAY)

    def _wake(self, when: datetime) -> None:
        if self._timer is not None:
            if self._timer[0] <= when:
                return
            self._timer[1].cancel()
        self._timer = (when, self._clock.call_at(when, self._run, "scheduler"))

    def _run(self) -> None:
        self._timer = None
        self._finish_binding()
        self._requeue_moved()
        now = self._clock.now()
        due = [entry for entry in self._waiting.values() if entry.due is not None and entry.due <= now]
        for entry in sorted(due, key=Waiting.order):
            self._schedule(entry)
        times = [entry.due for entry in self._waiting.values() if entry.due is not None]
        if self._moved or self._moved_near:
            times.append(now + DELAY)
        if times and self._waiting:
            self._wake(min(times))

    def _requeue_moved(self) -> None:
        if self._moved or self._moved_near:
            for entry in self._waiting.values():
                if entry.due is None and (self._moved or entry.shape.looks_around):
                    entry.due = entry.after_backoff()
        self._moved = self._moved_near = False

    def _schedule(self, entry: Waiting) -> None:
        entry.attempts += 1
        entry.last_attempt = self._clock.now()
        entry.due = None
        plan = self.volumes.plan(entry.pod, entry.shape) if entry.shape.claims or entry.shape.ephemeral_claims else None
        asking = self._nominator.asking(key_of(entry.pod), entry.pod, entry.shape)
        node, message = self._finder.find(entry.shape, plan, asking)
        try:
            if node is None:
                name = "/".join(key_of(entry.pod))
                self.log(f'"Unable to schedule pod; no fit; waiting" pod="{name}" err="{message}"')
                self._explain(entry.pod, "Unschedulable", message)
            else:
                self._assume(entry, node, plan)
        except Fault:
            entry.due = entry.after_backoff()

    def _explain(self, pod: Obj, reason: str, message: str) -> None:
        old = condition(pod, "PodScheduled") or {}
        dropped = {"nominatedNodeName": None} if nominated_node(pod) else {}
        said = (old.get("status"), old.get("reason"), old.get("message"))
        if said == ("False", reason, message) and not dropped:
            return
        fresh = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        patch = {"status": {"conditions": with_conditions(pod, [fresh], self._clock.now()), **dropped}}
        metadata = pod["metadata"]
        self._api.patch("pods", metadata["name"], patch, metadata["namespace"], "status")

    def _assume(self, entry: Waiting, node: str, plan: Plan | None) -> None:
        """Count the pod on *node* at once; bind it, or first have its claims bound."""
        metadata, key = entry.pod["metadata"], key_of(entry.pod)
        self._nominator.forget(key)
        self.nodes.place(key, node, entry.shape)
        self._move(near=True)
        try:
            if plan is not None and plan.late:
                self._select_node(plan, node)
                self._binding[key] = (node, self._waiting.pop(key))
            else:
                self._api.bind(metadata["namespace"], metadata["name"], node)
        except Fault:
            self.nodes.lift(key)
            self._note(key, entry)
            raise

    def _select_node(self, plan: Plan, node: str) -> None:
        for claim in plan.late:
            metadata = claim["metadata"]
            patch = {"metadata": {"annotations": {SELECTED_NODE: node}}}
            self._api.patch("persistentvolumeclaims", metadata["name"], patch, metadata["namespace"])

    def _finish_binding(self) -> None:
        """Bind the pods whose claims are bound by now; try those again whose node is gone meanwhile."""
        for key, (node, entry) in sorted(self._binding.items(), key=lambda item: item[0]):
            namespace, name = key.split("/", 1)
            claims = [self.volumes.claims.get(claim, namespace) for claim in claim_names(entry.pod, entry.shape)]
            try:
                if node not in self.nodes.known:
                    self._unselect_node(claims)
                    self._give_up(key, entry)
                elif all(claim is not None and claim["status"].get("phase") == "Bound" for claim in claims):
                    self._api.bind(namespace, name, node)
            except Fault:
                self._give_up(key, entry)

    def _unselect_node(self, claims: list[Obj | None]) -> None:
        for claim in claims:
            if claim is not None and not claim["spec"].get("volumeName"):
                metadata = claim["metadata"]
                patch = {"metadata": {"annotations": {SELECTED_NODE: None}}}
                self._api.patch("persistentvolumeclaims", metadata["name"], patch, metadata["namespace"])

    def _give_up(self, key: str, entry: Waiting) -> None:
        del self._binding[key]
        self.nodes.lift(key)
        entry.due = entry.after_backoff()
        self._waiting[key] = entry
        self._note(key, entry)


def key_of(pod: Obj) -> str:
    """Answer "namespace/name"."""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _asks_the_same(old: Obj, new: Obj) -> bool:
    """Say whether nothing that decides where a pod may go differs."""
    before, after = old["metadata"], new["metadata"]
    return (
        before.get("deletionTimestamp") == after.get("deletionTimestamp")
        and before.get("labels") == after.get("labels")
        and bool(old["spec"] == new["spec"])
    )
