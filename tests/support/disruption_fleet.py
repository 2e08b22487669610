"""A fleet of nodes with their claims and pods, for tests of disruption: each with few parameters."""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings
from shared.decide.disruption.disruption_context import DEFAULT_SETTINGS
from shared.decide.disruption.disruption_controller import DisruptionDecision, decide_node_disruption
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODECLASS, NODEPOOL, ZONE
from shared.model.core.metadata import Condition, ObjectMeta, OwnerReference, build_pairs
from shared.model.core.selectors import build_label_selector
from shared.model.decisions.disruption_verdict import BlockedVerdict
from shared.model.decisions.placement import SchedulingOptions
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_pool import DisruptionBudget, NodePool
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.pod import Pod
from shared.model.kubernetes.pod_disruption_budget import PodDisruptionBudget
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import (
    NOW,
    attach_claim,
    make_cluster_snapshot,
    make_instance_type,
    make_node,
    make_node_pool,
    make_pod,
)

Machine = tuple[Node, NodeClaim, tuple[Pod, ...]]
CPUS = (2, 4, 8, 16)
TYPES = tuple(make_instance_type(f"m.{cpu:02d}", cpu) for cpu in CPUS)
BOTH = tuple(make_instance_type(f"m.{cpu:02d}", cpu, capacity_types=("spot", "on-demand")) for cpu in CPUS)
MANY_SPOT = tuple(
    make_instance_type(f"m{letter}.{cpu:02d}", cpu, capacity_types=("spot",), price=cpu * 0.05 + number * 0.001)
    for number, letter in enumerate("abcdefgh")
    for cpu in CPUS
)
OPTIONS = SchedulingOptions()
FREE = make_node_pool(budgets=())
STAGES = ("Launched", "Registered", "Initialized", "Consolidatable")
REPLICA_SET = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web", uid="rs")


def make_conditions(*types: str, reason: str = "") -> tuple[Condition, ...]:
    return tuple(
        Condition(type=condition_type, status="True", reason=reason or condition_type, since=NOW)
        for condition_type in types
    )


def make_node_with_pods(
    name: str,
    *pods: Pod,
    cpu: int = 4,
    zone: str = "a",
    capacity_type: str = "on-demand",
    kind: str = "",
    pool: str = "default",
    conditions: tuple[Condition, ...] = make_conditions(*STAGES),
    annotations: Mapping[str, str] | None = None,
    **fields: object,
) -> Machine:
    """Return an initialized node and its pods, which are bound to it."""
    labels = {INSTANCE_TYPE: kind or f"m.{cpu:02d}", CAPACITY_TYPE: capacity_type, ZONE: zone, NODECLASS: "default"}
    plain_node = make_node(
        name, cpu=str(cpu), memory=f"{4 * cpu}Gi", labels=labels, conditions=make_conditions("Ready")
    )
    claimed_node, claim = attach_claim(plain_node)
    claim = replace(claim, conditions=conditions, **fields)
    notes = build_pairs(annotations or {})
    claimed_node = replace(
        claimed_node,
        meta=replace(claimed_node.meta, annotations=notes, labels=_add_pool_label(claimed_node.meta, pool)),
    )
    claim = replace(claim, meta=replace(claim.meta, uid=f"uid-{name}", labels=_add_pool_label(claim.meta, pool)))
    return claimed_node, claim, tuple(_bind(pod, name) for pod in pods)


def _add_pool_label(meta: ObjectMeta, pool: str) -> tuple[tuple[str, str], ...]:
    return build_pairs(dict(meta.labels) | {NODEPOOL: pool})


def _bind(pod: Pod, name: str) -> Pod:
    return replace(pod, node_name=name, phase="Running", conditions=())


def make_fleet(
    *machines: Machine, pools: Iterable[NodePool] = (FREE,), types: object = TYPES, **fields: object
) -> ClusterSnapshot:
    pods = tuple(pod for _, _, node_pods in machines for pod in node_pods) + tuple(fields.pop("pods", ()))  # type: ignore[arg-type]
    return make_cluster_snapshot(
        *sorted(pods, key=lambda one: one.name),
        types=types,  # type: ignore[arg-type]
        node_pools=tuple(pools),
        nodes=tuple(sorted((node for node, _, _ in machines), key=lambda one: one.name)),
        node_claims=tuple(sorted((node_claim for _, node_claim, _ in machines), key=lambda one: one.name)),
        **fields,
    )


def decide_disruption(
    cluster: ClusterSnapshot, terms: DisruptionSettings = DEFAULT_SETTINGS, **fields: object
) -> DisruptionDecision:
    return decide_node_disruption(ClusterState(cluster), options=OPTIONS, settings=terms, **fields)  # type: ignore[arg-type]


def summarize_commands(decision: DisruptionDecision) -> list[tuple[str, list[str], list[str]]]:
    """Return for each command its method, its nodes, and the allowed types of its replacements."""
    return [
        (
            command.method,
            sorted(command.list_node_names()),
            [
                kind
                for replacement in command.replacements
                for kind in sorted(replacement.claim.requirements[INSTANCE_TYPE].values)
            ],
        )
        for command in decision.commands
    ]


def get_verdict(decision: DisruptionDecision, name: str) -> tuple[str, str, str]:
    node_verdict = next(verdict for verdict in decision.verdicts if verdict.node == name)
    return node_verdict.verdict, node_verdict.reason, node_verdict.message


def make_pod_disruption_budget(
    name: str, labels: Mapping[str, str], allowed: int, **fields: str
) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        meta=ObjectMeta(name=name, namespace="shop"),
        selector=build_label_selector(dict(labels)),
        disruptions_allowed=allowed,
        **fields,  # type: ignore[arg-type]
    )


def make_web_pod(name: str, cpu: str = "1", **fields: object) -> Pod:
    """Return a pod of the workload `web`."""
    return make_pod(name, cpu, owners=(REPLICA_SET,), **({"labels": {"app": "web"}} | fields))  # type: ignore[arg-type]


def make_budgeted_pool(nodes: str, **fields: object) -> NodePool:
    """Return a pool with one budget."""
    return make_node_pool(budgets=(DisruptionBudget(nodes=nodes, **fields),))  # type: ignore[arg-type]


__all__ = [
    "BlockedVerdict",
    "decide_disruption",
    "get_verdict",
    "make_budgeted_pool",
    "make_fleet",
    "make_node_with_pods",
    "make_pod_disruption_budget",
    "make_web_pod",
    "summarize_commands",
]
