"""The plan of a control-plane upgrade as text, and as a document."""

from collections.abc import Iterator
from datetime import timedelta
from math import ceil
from typing import Any, Final

import msgspec

from cli.plan.upgrade.drifting_nodes import UpgradedCluster
from cli.plan.upgrade.image_changes import ImageChange
from cli.plan.upgrade.versions import MAX_KUBELET_SKEW, KubeletVersions
from shared.decide.disruption.budgets.budget import compute_allowed_disruptions, count_disruptions
from shared.decide.disruption.drift.drift import DRIFTED
from shared.model.core.formatting import format_count, format_elapsed, format_usd, format_usd_per_hour, join_names
from shared.state.cluster_state import ClusterState

REPLACEMENT_PERIOD: Final = timedelta(minutes=5)
"""Assumed time to replace a node: launch, registration, readiness of the new node, and drain of the old one."""
_ONE_HOUR: Final = timedelta(hours=1)


class BudgetAtUpgrade(msgspec.Struct, frozen=True, kw_only=True):
    """What the budgets of a NodePool allow, and its nodes to replace."""

    node_pool: str
    nodes_to_replace: int
    allowed_now: int
    """Nodes at a time for reason Drifted, at the time of the plan; at most the number of nodes to replace."""
    message: str
    """Why the budgets allow none."""
    usd_per_hour: float
    """Price of the nodes to replace."""

    @property
    def duration(self) -> timedelta | None:
        """How long the replacements take with the budgets of the time of the plan; None if these allow none."""
        return REPLACEMENT_PERIOD * ceil(self.nodes_to_replace / self.allowed_now) if self.allowed_now else None

    @property
    def surge_usd_per_hour(self) -> float:
        """Price of the new nodes that run beside the nodes they replace, if they cost as much."""
        return self.usd_per_hour / self.nodes_to_replace * self.allowed_now


class UpgradePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What an upgrade of the control plane does."""

    current_version: str
    target_version: str
    changes: tuple[ImageChange, ...]
    upgraded_cluster: UpgradedCluster
    budgets: tuple[BudgetAtUpgrade, ...]
    kubelets: KubeletVersions


def build_budgets(cluster_state: ClusterState, upgraded_cluster: UpgradedCluster) -> tuple[BudgetAtUpgrade, ...]:
    """Return what the budgets of each NodePool with drifting nodes that nothing else blocks allow now."""
    counts = count_disruptions(cluster_state.nodes)
    nodes = [node for node in upgraded_cluster.drifting_nodes if not node.blocked_message]
    budgets = []
    for name in sorted({node.node_pool for node in nodes}):
        pool_nodes = [node for node in nodes if node.node_pool == name]
        total = counts[name].total if name in counts else len(pool_nodes)
        allowed = compute_allowed_disruptions(cluster_state.node_pools[name], DRIFTED, total, cluster_state.taken_at)
        budgets.append(
            BudgetAtUpgrade(
                node_pool=name,
                nodes_to_replace=len(pool_nodes),
                allowed_now=min(allowed.count, len(pool_nodes)),
                message=allowed.problem or ("" if allowed.count else "an active budget allows 0 nodes"),
                usd_per_hour=sum(node.usd_per_hour for node in pool_nodes),
            )
        )
    return tuple(budgets)


def build_upgrade_document(plan: UpgradePlan) -> dict[str, Any]:
    """Return the JSON and YAML output."""
    return {
        "currentVersion": plan.current_version or None,
        "targetVersion": plan.target_version,
        "nodeClasses": [
            {
                "name": change.before.name,
                "amiFamily": change.before.ami_family,
                "selectors": change.list_selectors(),
                "effect": change.effect,
                "oldImages": change.old_image_ids,
                "newImages": change.new_image_ids,
                "message": change.message,
            }
            for change in plan.changes
        ],
        "nodes": [
            {
                "node": node.node,
                "nodePool": node.node_pool,
                "reason": node.reason,
                "blocked": bool(node.blocked_message),
                "message": node.blocked_message,
            }
            for node in plan.upgraded_cluster.drifting_nodes
        ],
        "unknownNodes": plan.upgraded_cluster.unknown_nodes,
        "nodePools": [
            {
                "name": budget.node_pool,
                "nodesToReplace": budget.nodes_to_replace,
                "allowedNow": budget.allowed_now,
                "message": budget.message,
                "durationSeconds": None if budget.duration is None else int(budget.duration.total_seconds()),
                "surgeUsdPerHour": budget.surge_usd_per_hour,
            }
            for budget in plan.budgets
        ],
        "extraUsd": _compute_extra_usd(plan),
        "kubelets": {
            "nodesByVersion": dict(plan.kubelets.nodes_by_version),
            "tooOld": plan.kubelets.too_old,
            "unknown": plan.kubelets.unknown_count,
        },
    }


def render_upgrade(plan: UpgradePlan) -> str:
    """Return the plan as text."""
    parts = (_render_versions(plan), _render_images(plan), _render_nodes(plan), _render_budgets(plan))
    sections = [lines for part in parts if (lines := list(part))]
    return "\n\n".join("\n".join(lines) for lines in sections) + "\n"


def _compute_extra_usd(plan: UpgradePlan) -> float:
    return sum(budget.usd_per_hour for budget in plan.budgets) * (REPLACEMENT_PERIOD / _ONE_HOUR)


def _render_versions(plan: UpgradePlan) -> Iterator[str]:
    kubelets = plan.kubelets
    yield f"upgrade of the control plane: {plan.current_version or 'unknown version'} -> {plan.target_version}"
    counts = ", ".join(f"{format_count(count, 'node')} {name}" for name, count in kubelets.nodes_by_version.items())
    if counts:
        yield f"kubelets: {counts}"
    if kubelets.too_old:
        yield (
            f"too old for {plan.target_version} (more than {MAX_KUBELET_SKEW} minor versions): "
            f"{join_names(kubelets.too_old, 5)}: replace these nodes before the upgrade"
        )
    if kubelets.unknown_count:
        yield f"kubelet version unknown: {format_count(kubelets.unknown_count, 'node')}"
    yield "APIs that the new version removes are not checked: see the upgrade insights of EKS"


def _render_images(plan: UpgradePlan) -> Iterator[str]:
    words = {"Moves": "new images", "Stays": "same images", "NoImages": "NO IMAGES"}
    for change in plan.changes:
        ids = f" {', '.join(change.old_image_ids)} -> {', '.join(change.new_image_ids)}" if change.new_image_ids else ""
        text = f"{ids if change.effect == 'Moves' else ''}{f': {change.message}' if change.message else ''}"
        selectors = ", ".join(change.list_selectors())
        yield f"EC2NodeClass {change.before.name} ({selectors}): {words[change.effect]}{text}"


def _render_nodes(plan: UpgradePlan) -> Iterator[str]:
    nodes = plan.upgraded_cluster.drifting_nodes
    yield f"{format_count(len(nodes), 'node')} to replace, in this order:" if nodes else "no node drifts"
    for node in nodes:
        blocked = f": blocked now: {node.blocked_message}" if node.blocked_message else ""
        yield f"  {node.node} ({node.node_pool}, {node.reason}){blocked}"
    if plan.upgraded_cluster.unknown_nodes:
        yield f"drift unknown: {join_names(plan.upgraded_cluster.unknown_nodes, 5)}"


def _render_budgets(plan: UpgradePlan) -> Iterator[str]:
    for budget in plan.budgets:
        replaced = format_count(budget.nodes_to_replace, "node")
        if budget.duration is None:
            yield f"NodePool {budget.node_pool}: {replaced}, none can be replaced now: {budget.message}"
            continue
        yield (
            f"NodePool {budget.node_pool}: {replaced}, {budget.allowed_now} at a time, "
            f"about {format_elapsed(budget.duration)}, up to {format_usd_per_hour(budget.surge_usd_per_hour)} more"
        )
    if plan.budgets:
        yield (
            f"extra cost {format_usd(_compute_extra_usd(plan))}, if each replacement takes "
            f"{format_elapsed(REPLACEMENT_PERIOD)}, "
            "new nodes cost as much as old ones, and budgets stay as they are now; "
            "budgets of the setting disruption-budgets, pauses and image soak times are not included"
        )
