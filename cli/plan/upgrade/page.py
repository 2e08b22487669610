"""The plan of a control-plane upgrade as text, and as a document."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from cli.plan.upgrade.drifting_nodes import UpgradedCluster
from cli.plan.upgrade.image_changes import ImageChange
from cli.plan.upgrade.timeline import (
    PLANNED_PERIOD,
    REPLACEMENT_PERIOD,
    PoolTimeline,
    UpgradeSettings,
    plan_replacements,
)
from cli.plan.upgrade.versions import MAX_KUBELET_SKEW, KubeletVersions
from shared.decide.disruption.budgets.budget import count_disruptions
from shared.decide.disruption.pauses import list_drift_pauses
from shared.model.core.formatting import format_count, format_elapsed, format_usd, format_usd_per_hour, join_names
from shared.model.core.units import format_instant
from shared.state.cluster_state import ClusterState

_ONE_HOUR: Final = timedelta(hours=1)


class BudgetAtUpgrade(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of a NodePool to replace, and when its budgets, windows and pauses allow it."""

    node_pool: str
    nodes_to_replace: int
    planned_at: datetime
    timeline: PoolTimeline
    drift_pause: str = ""
    """Why drift pauses after the upgrade by drift-pause-percent; the timeline is that after a resume."""
    usd_per_hour: float
    """Price of the nodes to replace."""

    @property
    def duration(self) -> timedelta | None:
        """From the time of the plan to the last replacement; None if not all nodes are replaced in two weeks."""
        return None if self.timeline.ends_at is None else self.timeline.ends_at - self.planned_at

    @property
    def surge_usd_per_hour(self) -> float:
        """Price of the new nodes that run beside the nodes they replace, if they cost as much."""
        return self.usd_per_hour / self.nodes_to_replace * self.timeline.max_at_once


class UpgradePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What an upgrade of the control plane does."""

    current_version: str
    target_version: str
    changes: tuple[ImageChange, ...]
    upgraded_cluster: UpgradedCluster
    budgets: tuple[BudgetAtUpgrade, ...]
    kubelets: KubeletVersions


def build_budgets(
    cluster_state: ClusterState, upgraded_cluster: UpgradedCluster, settings: UpgradeSettings
) -> tuple[BudgetAtUpgrade, ...]:
    """Return when the nodes of each NodePool are replaced that drift and that nothing else blocks."""
    cluster = cluster_state.snapshot
    nodes = [node for node in upgraded_cluster.drifting_nodes if not node.blocked_message]
    totals = {name: count.total for name, count in count_disruptions(cluster_state.nodes).items()}
    timelines = plan_replacements(cluster, nodes, totals, settings)
    budgets = []
    for name, timeline in sorted(timelines.items()):
        pool_nodes = [node for node in nodes if node.node_pool == name]
        counts = upgraded_cluster.counts_by_pool.get(name, (0, 0))
        pool = cluster_state.node_pools[name]
        pauses = list_drift_pauses(pool, counts, settings.drift_pause_percent, cluster.taken_at)
        budgets.append(
            BudgetAtUpgrade(
                node_pool=name,
                nodes_to_replace=len(pool_nodes),
                planned_at=cluster.taken_at,
                timeline=timeline,
                drift_pause=next((pause.message for pause in pauses), ""),
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
                "rollout": change.rollout or None,
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
                "allowedNow": budget.timeline.allowed_now,
                "maxAtOnce": budget.timeline.max_at_once,
                "message": budget.timeline.message,
                "driftPause": budget.drift_pause or None,
                "startsAt": _format_optional(budget.timeline.starts_at),
                "endsAt": _format_optional(budget.timeline.ends_at),
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
        rollout = f", {change.rollout}" if change.rollout else ""
        yield f"EC2NodeClass {change.before.name} ({selectors}): {words[change.effect]}{text}{rollout}"


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
        yield f"NodePool {budget.node_pool}: {_describe_timeline(budget)}"
        if budget.drift_pause:
            yield f"  drift pauses first: {budget.drift_pause}; the times are those without this pause"
    if plan.budgets:
        yield (
            f"extra cost {format_usd(_compute_extra_usd(plan))}, if each replacement takes "
            f"{format_elapsed(REPLACEMENT_PERIOD)}, and new nodes cost as much as old ones; "
            "soak times and minimum ages of images are not included"
        )


def _describe_timeline(budget: BudgetAtUpgrade) -> str:
    timeline, replaced = budget.timeline, format_count(budget.nodes_to_replace, "node")
    if timeline.starts_at is None:
        return f"{replaced}, none can be replaced in the next {PLANNED_PERIOD.days} days: {timeline.message}"
    waits = timeline.starts_at > budget.planned_at
    start = f" from {format_instant(timeline.starts_at)} ({timeline.message})" if waits else ""
    surge = f"up to {format_usd_per_hour(budget.surge_usd_per_hour)} more"
    if budget.duration is None:
        count = budget.nodes_to_replace - timeline.replaced_count
        end = f", {count} of them not in the next {PLANNED_PERIOD.days} days"
    else:
        end = f", done in about {format_elapsed(budget.duration)}"
    return f"{replaced}, up to {timeline.max_at_once} at a time{start}{end}, {surge}"


def _format_optional(instant: datetime | None) -> str | None:
    return None if instant is None else format_instant(instant)
