"""A little world that does what actions say, and any cluster to begin with: for the laws of both rooms."""

import json
from collections.abc import Iterable
from datetime import timedelta

from hypothesis import strategies as st

from shared.model.cluster import ClusterSnapshot
from shared.model.core import labels
from shared.model.core.metadata import Condition, build_pairs
from shared.model.core.resources import parse_resources
from shared.model.core.taints import UNREGISTERED
from shared.model.core.units import parse_instant
from shared.model.decisions.action import (
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
from shared.model.karpenter.node_pool import DisruptionBudget
from shared.state.state_node import compute_pod_digest
from tests.support.lifecycle_cases import (
    NOW,
    POOL,
    STAGES,
    Case,
    get_time_before,
    make_claim,
    make_cluster,
    make_instance,
    make_node,
    make_pod,
    make_pod_disruption_budget,
    make_true_conditions,
    make_unknown_condition,
    replace_fields,
)


class StaleError(AssertionError):
    """An action's precondition was broken by one that the same decision put before it."""


class Little:
    """Objects by kind and name; every write of an object is another resource version."""

    def __init__(self, start: ClusterSnapshot) -> None:
        """Take the objects of *start*."""
        self.now = start.taken_at
        self.snapshot = start
        self.claims = {node_claim.name: node_claim for node_claim in start.node_claims}
        self.nodes = {node.name: node for node in start.nodes}
        self.pools = {node_pool.name: node_pool for node_pool in start.node_pools}
        self.pods = {pod.meta.uid: pod for pod in start.pods}
        self.instances = {instance.instance_id: instance for instance in start.instances or ()}

    def build_snapshot(self) -> ClusterSnapshot:
        """Build the snapshot of all objects."""
        instances = (
            None
            if self.snapshot.instances is None
            else tuple(instance for _, instance in sorted(self.instances.items()))
        )
        return replace_fields(
            self.snapshot,
            taken_at=self.now,
            node_claims=tuple(node_claim for _, node_claim in sorted(self.claims.items())),
            nodes=tuple(node for _, node in sorted(self.nodes.items())),
            node_pools=tuple(node_pool for _, node_pool in sorted(self.pools.items())),
            pods=tuple(sorted(self.pods.values(), key=lambda one: one.name)),
            instances=instances,
        )

    def advance_time(self, duration: timedelta) -> None:
        """Let time pass: instances that end are gone, the nodes of those that are gone are not Ready."""
        self.now += duration
        self.instances = {
            key: instance for key, instance in self.instances.items() if instance.state != "shutting-down"
        }
        if self.snapshot.instances is not None:
            alive = {instance.provider_id for instance in self.instances.values()}
            for name, node in self.nodes.items():
                if node.provider_id not in alive:
                    self.nodes[name] = replace_fields(node, conditions=(Condition(type="Ready", status="Unknown"),))

    def perform(self, actions: Iterable[Action]) -> None:
        """Do everything, in order."""
        for action in actions:
            self._perform(action)

    def _perform(self, action: Action) -> None:  # noqa: C901 - one case each
        match action:
            case PatchStatus():
                self._apply_status(action)
            case PatchMetadata():
                self._apply_metadata(action)
            case TaintNode() | RegisterNode():
                self._apply_node(action)
            case DeleteObject():
                self._delete(action)
            case EvictPod() | DeletePod():
                self.pods.pop(action.uid, None)
            case TerminateInstances():
                for instance_id in action.instance_ids:
                    if instance_id in self.instances:
                        self.instances[instance_id] = replace_fields(self.instances[instance_id], state="shutting-down")
            case TagInstance():
                if action.instance_id in self.instances:
                    old = self.instances[action.instance_id]
                    self.instances[action.instance_id] = replace_fields(
                        old, tags=build_pairs((*old.tags, *action.tags))
                    )
            case _:
                pass

    def _get_objects(self, kind: str) -> dict[str, Case]:
        objects: dict[str, dict[str, Case]] = {"Node": self.nodes, "NodeClaim": self.claims, "NodePool": self.pools}
        return objects[kind]

    def _write(self, kind: str, name: str, version: str, fields: Case, meta: Case) -> None:
        objects = self._get_objects(kind)
        if name not in objects:
            return
        old = objects[name]
        if version and version != old.meta.resource_version:
            raise StaleError(f"{kind} {name}")
        new = str(int(old.meta.resource_version or 0) + 1)
        objects[name] = replace_fields(
            old, meta=replace_fields(old.meta, resource_version=new, **meta(old.meta)), **fields
        )
        if objects[name].meta.deleted_at is not None and not objects[name].meta.finalizers:
            del objects[name]

    def _apply_status(self, action: PatchStatus) -> None:
        status = json.loads(action.status)
        fields: dict[str, Case] = {}
        if "conditions" in status:
            fields["conditions"] = tuple(_parse_condition(condition) for condition in status["conditions"])
        if "nodeName" in status:
            fields["node_name"] = status["nodeName"]
        if "lastPodEventTime" in status:
            fields["last_pod_event_at"] = parse_instant(status["lastPodEventTime"])
        if "resources" in status:
            fields["usage"] = parse_resources({k: v for k, v in status["resources"].items() if v is not None})
        self._write(action.kind, action.name, action.resource_version, fields, lambda _: {})

    def _apply_metadata(self, action: PatchMetadata) -> None:
        def merge_metadata(old: Case) -> dict[str, Case]:
            merged = {
                "labels": build_pairs((*old.labels, *action.labels)),
                "annotations": build_pairs((*old.annotations, *action.annotations)),
            }
            return merged | ({"finalizers": action.finalizers} if action.finalizers is not None else {})

        self._write(action.kind, action.name, action.resource_version, {}, merge_metadata)

    def _apply_node(self, action: TaintNode | RegisterNode) -> None:
        def merge_metadata(old: Case) -> dict[str, Case]:
            registration_fields = (
                {"finalizers": action.finalizers, "owners": action.owners} if isinstance(action, RegisterNode) else {}
            )
            return {
                "labels": build_pairs((*old.labels, *action.labels)),
                "annotations": build_pairs((*old.annotations, *action.annotations)),
            } | registration_fields

        self._write("Node", action.name, action.resource_version, {"taints": action.taints}, merge_metadata)

    def _delete(self, action: DeleteObject) -> None:
        objects = self._get_objects(action.kind)
        old = objects.get(action.name)
        if old is not None and old.meta.deleted_at is None:
            self._write(action.kind, action.name, "", {}, lambda _: {"deleted_at": self.now})


def _parse_condition(wire: Case) -> Condition:
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
        "deleted": st.sampled_from((get_time_before(minutes=2), get_time_before(seconds=-20))),
        "phase": st.sampled_from(("Running", "Succeeded")),
    },
)
_GUARDS: Case = st.lists(
    st.tuples(st.sampled_from("xyz"), st.sampled_from(({}, {"max_unavailable": "0"}, {"allowed": 0}))), max_size=2
)
_BUDGETS: Case = st.lists(
    st.builds(DisruptionBudget, nodes=st.sampled_from(("0", "1", "2", "10%", "50%", "100%", "odd"))), max_size=2
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
        "claim_deleted": st.just(get_time_before(seconds=30)),
        "node_deleted": st.just(get_time_before(seconds=30)),
        "drained": st.sampled_from((NOW, get_time_before(seconds=9))),
        "proposed": st.sampled_from((NOW, get_time_before(seconds=9))),
        "going": st.booleans(),
        "noted": st.booleans(),
        "expire_after": st.just(timedelta(minutes=30)),
        "grace": st.sampled_from((timedelta(), timedelta(seconds=70), timedelta(hours=1))),
    },
)


def _build_machine(name: str, fields: Case) -> tuple[Case, Case, Case, Case]:
    stage = fields["stage"]
    pods = tuple(
        make_pod(
            f"{pod_fields['app']}{name}{number}",
            name,
            **{key: value for key, value in pod_fields.items() if key != "app"},
        )
        for number, pod_fields in enumerate(fields["pods"])
    )
    pods = tuple(
        replace_fields(pod, meta=replace_fields(pod.meta, labels=(("app", pod.meta.name[0]),))) for pod in pods
    )
    conditions = make_true_conditions(*STAGES[: max(stage - 1, min(stage, 1))])
    if "drained" in fields:
        conditions += (make_unknown_condition("Drained", "Draining", fields["drained"]),)
    if "proposed" in fields:
        conditions += (Condition(type="DisruptionReason", status="True", reason="Empty", since=fields["proposed"]),)
    notes = {labels.POD_DIGEST: compute_pod_digest(pods)} if fields.get("noted") else {}
    node_claim = make_claim(
        name,
        conditions=conditions,
        launched=stage > 0,
        created=get_time_before(minutes=40) if stage > 2 else get_time_before(minutes=2),
        deleted=fields.get("claim_deleted"),
        annotations=notes,
        expire_after=fields.get("expire_after"),
        termination_grace_period=fields.get("grace"),
    )
    has_joined = stage > 2
    node_fields: dict[str, Case] = (
        {"fit": stage > 3} if has_joined else {"fit": False, "finalizers": (), "taints": (UNREGISTERED,)}
    )
    extra = {labels.REGISTERED: "true"} if has_joined else {}
    node = make_node(
        name,
        ready=fields.get("ready", True),
        deleted=fields.get("node_deleted") if has_joined else None,
        extra=extra,
        **(node_fields | ({"going": True} if has_joined and fields.get("going") else {})),
    )
    machine = make_instance(name, state=fields["instance"]) if fields["instance"] and stage > 0 else None
    return (
        (node_claim if fields["claimed"] else None),
        (node if stage > 1 else None),
        machine,
        pods if stage > 1 else (),
    )


def _drop_missing(objects: Iterable[Case]) -> tuple[Case, ...]:
    return tuple(item for item in objects if item is not None)


@st.composite
def generate_cluster(draw: Case) -> ClusterSnapshot:
    """Draw any cluster of at most four machines."""
    fields_of_machines = draw(st.lists(_MACHINES, max_size=4))
    machines = [
        _build_machine(name, machine_fields) for name, machine_fields in zip("abcd", fields_of_machines, strict=False)
    ]
    guards = tuple(
        make_pod_disruption_budget(app, f"guard{number}", **how) for number, (app, how) in enumerate(draw(_GUARDS))
    )
    has_instance_list = draw(st.sampled_from((True, True, False)))
    pool = replace_fields(
        POOL,
        budgets=tuple(draw(_BUDGETS)),
        consolidate_after=draw(st.sampled_from((None, timedelta(), timedelta(seconds=30)))),
    )
    return make_cluster(
        node_claims=_drop_missing(machine[0] for machine in machines),
        nodes=_drop_missing(machine[1] for machine in machines),
        instances=_drop_missing(machine[2] for machine in machines) if has_instance_list else None,
        pods=tuple(pod for machine in machines for pod in machine[3]),
        budgets=guards,
        node_pools=(pool,),
    )


@st.composite
def generate_reordered_clusters(draw: Case) -> tuple[ClusterSnapshot, ClusterSnapshot]:
    """Draw a cluster and the same in another order."""
    snapshot = draw(generate_cluster())
    mixed = {
        name: tuple(draw(st.permutations(list(getattr(snapshot, name)))))
        for name in ("node_claims", "nodes", "pods", "budgets")
    }
    if snapshot.instances is not None:
        mixed["instances"] = tuple(draw(st.permutations(list(snapshot.instances))))
    return snapshot, replace_fields(snapshot, **mixed)


def list_survivors(little: Little) -> tuple[list[str], list[str], list[str]]:
    """Return the names of the remaining claims and nodes and the ids of the remaining instances."""
    return sorted(little.claims), sorted(little.nodes), sorted(little.instances)
