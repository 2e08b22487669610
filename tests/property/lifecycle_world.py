"""A little world that does what actions say, and any cluster to begin with: for the laws of both rooms."""

import json
from collections.abc import Iterable
from datetime import timedelta

from hypothesis import strategies as st

from shared.model import labels
from shared.model.action import (
    Action,
    DeleteObject,
    DeletePod,
    EvictPod,
    PatchMetadata,
    PatchStatus,
    RegisterNode,
    TagInstance,
    TaintNode,
    TerminateInstances,
)
from shared.model.cluster import Cluster
from shared.model.nodepools import Budget
from shared.model.objects import Condition, pairs
from shared.model.resources import parse_resources
from shared.model.state import pod_digest
from shared.model.taints import UNREGISTERED
from shared.model.units import parse_instant
from tests.unit.lifecycle_cases import (
    NOW,
    POOL,
    STAGES,
    Case,
    ago,
    changed,
    claim,
    cluster,
    guard,
    instance,
    node,
    pod,
    true,
    unknown,
)


class StaleError(AssertionError):
    """An action's precondition was broken by one that the same decision put before it."""


class Little:
    """Objects by kind and name; every write of an object is another resource version."""

    def __init__(self, start: Cluster) -> None:
        """Take the objects of *start*."""
        self.now = start.taken_at
        self.rest = start
        self.claims = {one.name: one for one in start.node_claims}
        self.nodes = {one.name: one for one in start.nodes}
        self.pools = {one.name: one for one in start.node_pools}
        self.pods = {one.meta.uid: one for one in start.pods}
        self.instances = {one.instance_id: one for one in start.instances or ()}

    def cluster(self) -> Cluster:
        """Look at it all."""
        seen = None if self.rest.instances is None else tuple(one for _, one in sorted(self.instances.items()))
        return changed(
            self.rest,
            taken_at=self.now,
            node_claims=tuple(one for _, one in sorted(self.claims.items())),
            nodes=tuple(one for _, one in sorted(self.nodes.items())),
            node_pools=tuple(one for _, one in sorted(self.pools.items())),
            pods=tuple(sorted(self.pods.values(), key=lambda one: one.name)),
            instances=seen,
        )

    def pass_time(self, by: timedelta) -> None:
        """Let time pass: instances that end are gone, the nodes of those that are gone are not Ready."""
        self.now += by
        self.instances = {key: one for key, one in self.instances.items() if one.state != "shutting-down"}
        if self.rest.instances is not None:
            alive = {one.provider_id for one in self.instances.values()}
            for name, one in self.nodes.items():
                if one.provider_id not in alive:
                    self.nodes[name] = changed(one, conditions=(Condition(type="Ready", status="Unknown"),))

    def perform(self, actions: Iterable[Action]) -> None:
        """Do everything, in order."""
        for action in actions:
            self._perform(action)

    def _perform(self, action: Action) -> None:  # noqa: C901 - one case each
        match action:
            case PatchStatus():
                self._status(action)
            case PatchMetadata():
                self._metadata(action)
            case TaintNode() | RegisterNode():
                self._node(action)
            case DeleteObject():
                self._delete(action)
            case EvictPod() | DeletePod():
                self.pods.pop(action.uid, None)
            case TerminateInstances():
                for one in action.instance_ids:
                    if one in self.instances:
                        self.instances[one] = changed(self.instances[one], state="shutting-down")
            case TagInstance():
                if action.instance_id in self.instances:
                    old = self.instances[action.instance_id]
                    self.instances[action.instance_id] = changed(old, tags=pairs((*old.tags, *action.tags)))
            case _:
                pass

    def _objects(self, kind: str) -> dict[str, Case]:
        objects: dict[str, dict[str, Case]] = {"Node": self.nodes, "NodeClaim": self.claims, "NodePool": self.pools}
        return objects[kind]

    def _write(self, kind: str, name: str, version: str, fields: Case, meta: Case) -> None:
        objects = self._objects(kind)
        if name not in objects:
            return
        old = objects[name]
        if version and version != old.meta.resource_version:
            raise StaleError(f"{kind} {name}")
        new = str(int(old.meta.resource_version or 0) + 1)
        objects[name] = changed(old, meta=changed(old.meta, resource_version=new, **meta(old.meta)), **fields)
        if objects[name].meta.deleted_at is not None and not objects[name].meta.finalizers:
            del objects[name]

    def _status(self, action: PatchStatus) -> None:
        status = json.loads(action.status)
        fields: dict[str, Case] = {}
        if "conditions" in status:
            fields["conditions"] = tuple(_condition(one) for one in status["conditions"])
        if "nodeName" in status:
            fields["node_name"] = status["nodeName"]
        if "lastPodEventTime" in status:
            fields["last_pod_event_at"] = parse_instant(status["lastPodEventTime"])
        if "resources" in status:
            fields["usage"] = parse_resources({k: v for k, v in status["resources"].items() if v is not None})
        self._write(action.kind, action.name, action.resource_version, fields, lambda _: {})

    def _metadata(self, action: PatchMetadata) -> None:
        def meta(old: Case) -> dict[str, Case]:
            merged = {
                "labels": pairs((*old.labels, *action.labels)),
                "annotations": pairs((*old.annotations, *action.annotations)),
            }
            return merged | ({"finalizers": action.finalizers} if action.finalizers is not None else {})

        self._write(action.kind, action.name, action.resource_version, {}, meta)

    def _node(self, action: TaintNode | RegisterNode) -> None:
        def meta(old: Case) -> dict[str, Case]:
            more = (
                {"finalizers": action.finalizers, "owners": action.owners} if isinstance(action, RegisterNode) else {}
            )
            return {
                "labels": pairs((*old.labels, *action.labels)),
                "annotations": pairs((*old.annotations, *action.annotations)),
            } | more

        self._write("Node", action.name, action.resource_version, {"taints": action.taints}, meta)

    def _delete(self, action: DeleteObject) -> None:
        objects = self._objects(action.kind)
        old = objects.get(action.name)
        if old is not None and old.meta.deleted_at is None:
            self._write(action.kind, action.name, "", {}, lambda _: {"deleted_at": self.now})


def _condition(wire: Case) -> Condition:
    since = wire.get("lastTransitionTime")
    return Condition(
        type=wire["type"],
        status=wire["status"],
        reason=wire["reason"],
        message=wire["message"],
        since=parse_instant(since) if since else None,
        observed_generation=wire.get("observedGeneration", 0),
    )


_PODS: Case = st.fixed_dictionaries(
    {"app": st.sampled_from("xyz")},
    optional={
        "annotations": st.just({labels.DO_NOT_DISRUPT: "true"}),
        "daemon": st.booleans(),
        "priority_class": st.just("system-node-critical"),
        "deleted": st.sampled_from((ago(minutes=2), ago(seconds=-20))),
        "phase": st.sampled_from(("Running", "Succeeded")),
    },
)
_GUARDS: Case = st.lists(
    st.tuples(st.sampled_from("xyz"), st.sampled_from(({}, {"max_unavailable": "0"}, {"allowed": 0}))), max_size=2
)
_BUDGETS: Case = st.lists(
    st.builds(Budget, nodes=st.sampled_from(("0", "1", "2", "10%", "50%", "100%", "odd"))), max_size=2
)
_MACHINES: Case = st.fixed_dictionaries(
    {
        "stage": st.integers(0, 4),
        "pods": st.lists(_PODS, max_size=3),
        "instance": st.sampled_from(("running", "running", "shutting-down", None)),
        "claimed": st.sampled_from((True, True, True, False)),
    },
    optional={
        "ready": st.booleans(),
        "claim_deleted": st.just(ago(seconds=30)),
        "node_deleted": st.just(ago(seconds=30)),
        "drained": st.sampled_from((NOW, ago(seconds=9))),
        "proposed": st.sampled_from((NOW, ago(seconds=9))),
        "going": st.booleans(),
        "noted": st.booleans(),
        "expire_after": st.just(timedelta(minutes=30)),
        "grace": st.sampled_from((timedelta(), timedelta(seconds=70), timedelta(hours=1))),
    },
)


def _machine(name: str, drawn: Case) -> tuple[Case, Case, Case, Case]:
    stage = drawn["stage"]
    pods = tuple(
        pod(f"{one['app']}{name}{number}", name, **{key: value for key, value in one.items() if key != "app"})
        for number, one in enumerate(drawn["pods"])
    )
    pods = tuple(changed(one, meta=changed(one.meta, labels=(("app", one.meta.name[0]),))) for one in pods)
    conditions = true(*STAGES[: max(stage - 1, min(stage, 1))])
    if "drained" in drawn:
        conditions += (unknown("Drained", "Draining", drawn["drained"]),)
    if "proposed" in drawn:
        conditions += (Condition(type="DisruptionReason", status="True", reason="Empty", since=drawn["proposed"]),)
    notes = {labels.POD_DIGEST: pod_digest(pods)} if drawn.get("noted") else {}
    mine = claim(
        name,
        conditions=conditions,
        launched=stage > 0,
        created=ago(minutes=40) if stage > 2 else ago(minutes=2),
        deleted=drawn.get("claim_deleted"),
        annotations=notes,
        expire_after=drawn.get("expire_after"),
        termination_grace_period=drawn.get("grace"),
    )
    joined = stage > 2
    own: dict[str, Case] = {"fit": stage > 3} if joined else {"fit": False, "finalizers": (), "taints": (UNREGISTERED,)}
    extra = {labels.REGISTERED: "true"} if joined else {}
    there = node(
        name,
        ready=drawn.get("ready", True),
        deleted=drawn.get("node_deleted") if joined else None,
        extra=extra,
        **(own | ({"going": True} if joined and drawn.get("going") else {})),
    )
    machine = instance(name, state=drawn["instance"]) if drawn["instance"] and stage > 0 else None
    return (mine if drawn["claimed"] else None), (there if stage > 1 else None), machine, pods if stage > 1 else ()


def _present(some: Iterable[Case]) -> tuple[Case, ...]:
    return tuple(one for one in some if one is not None)


@st.composite
def clusters(draw: Case) -> Cluster:
    """Draw any cluster of at most four machines."""
    drawn = draw(st.lists(_MACHINES, max_size=4))
    machines = [_machine(name, one) for name, one in zip("abcd", drawn, strict=False)]
    guards = tuple(guard(app, f"guard{number}", **how) for number, (app, how) in enumerate(draw(_GUARDS)))
    seen = draw(st.sampled_from((True, True, False)))
    pool = changed(
        POOL,
        budgets=tuple(draw(_BUDGETS)),
        consolidate_after=draw(st.sampled_from((None, timedelta(), timedelta(seconds=30)))),
    )
    return cluster(
        node_claims=_present(one[0] for one in machines),
        nodes=_present(one[1] for one in machines),
        instances=_present(one[2] for one in machines) if seen else None,
        pods=tuple(one for machine in machines for one in machine[3]),
        budgets=guards,
        node_pools=(pool,),
    )


@st.composite
def orders(draw: Case) -> tuple[Cluster, Cluster]:
    """Draw a cluster and the same in another order."""
    one = draw(clusters())
    mixed = {
        name: tuple(draw(st.permutations(list(getattr(one, name)))))
        for name in ("node_claims", "nodes", "pods", "budgets")
    }
    if one.instances is not None:
        mixed["instances"] = tuple(draw(st.permutations(list(one.instances))))
    return one, changed(one, **mixed)


def survivors(little: Little) -> tuple[list[str], list[str], list[str]]:
    """Answer what machines are there: claims, nodes, instances."""
    return sorted(little.claims), sorted(little.nodes), sorted(little.instances)
