"""The catalog cycle: resolves node classes and reads instance types and prices."""

from typing import Final

from msgspec.structs import replace

from shared.apply.executor import apply_actions
from shared.cycles.setup.decision_driver import DecisionDriver
from shared.cycles.setup.options_from_settings import build_budget_policy, build_capacity_settings
from shared.cycles.setup.run_cycle import CATALOG_LEASE, CycleReport, run_and_report, run_with_lease
from shared.decide.launch.instance_types import catalog
from shared.decide.node_class import canary_rollout, status, subnet_addresses
from shared.decide.scheduling.templates.declared_devices import list_declared_kinds
from shared.model.cluster import ClusterSnapshot
from shared.model.core.devices import ObservedDevices
from shared.model.decisions.action_outcome import Outcome
from shared.model.decisions.decision_answers import AccountAnswersRecord
from shared.model.decisions.decision_requests import DecisionProcess, PerformActions, QueryAccount
from shared.model.decisions.month_costs import find_budget_state
from shared.ports.storage import FencingToken
from shared.ports.world import World
from shared.report.costs.ledger_store import bill_costs
from shared.report.costs.month_costs import update_month_costs
from shared.report.costs.notification import publish_cost_report
from shared.report.journal.decision_record import DecisionInputs, DecisionSummary, build_inputs
from shared.report.journal.journal import DecisionNote
from shared.report.journal.journal_entries import build_catalog_note
from shared.report.metrics.cycle_metrics import compute_catalog_ages
from shared.report.metrics.emf import MONEY_USED
from shared.state.cluster_state import ClusterState
from shared.state.dynamic_resources.observed_devices import has_changed_devices, observe_devices
from shared.store.catalog import build_catalog_key, write_catalog
from shared.take.commitments import load_commitments
from shared.take.kubernetes.optional_resources import OVERLAY_LISTS
from shared.take.kubernetes.status_after_write import apply_status_patches
from shared.take.regional_offerings import load_regional_catalog
from shared.take.snapshot import SnapshotRequest, refresh_snapshot, take_snapshot

CATALOG_REQUEST: Final = SnapshotRequest(lists=("node_classes",), catalog=True)
CANARY_REQUEST: Final = SnapshotRequest(lists=("node_pools", "nodes", "node_claims", "pods"))
FLEET_REQUEST: Final = SnapshotRequest(lists=("nodes", "node_claims"))
DEVICE_SUPPLY_LISTS: Final = ("nodes", "node_pools", "resource_slices")
COSTS_REQUEST: Final = SnapshotRequest(lists=("nodes", "node_claims", "pods"))


def run_catalog(world: World, trigger: str) -> CycleReport:
    """Update the status of node classes, and the catalog in the bucket, from what the account offers."""

    def run_cycle(fence: FencingToken) -> CycleReport:
        cluster = take_snapshot(world, CATALOG_REQUEST)
        if canary_rollout.needs_fleet(cluster.node_classes):
            cluster = refresh_snapshot(world, cluster, CANARY_REQUEST)
        inputs = build_inputs(world.settings)
        report = DecisionDriver(world, fence, cluster).run(decide_node_class_statuses(cluster, inputs), inputs)
        current, outcomes, problems = report.cluster or cluster, report.outcomes, report.problems
        counts, notes = compute_catalog_ages(current), tuple[DecisionNote, ...]()
        observed_devices = _observe_devices(world, current)
        if catalog.is_catalog_due(cluster, current) or has_changed_devices(current.catalog, observed_devices):
            regional_catalog = load_regional_catalog(world)
            capacity_settings = build_capacity_settings(world.settings)
            observed_memory = catalog.collect_seen_memory(refresh_snapshot(world, current, FLEET_REQUEST))
            new_catalog = catalog.build_catalog(
                current, regional_catalog.infos, regional_catalog.market, capacity_settings, observed_memory
            )
            commitments, commitment_problems = load_commitments(world, current, regional_catalog.market.on_demand)
            new_catalog = replace(new_catalog, commitments=commitments, observed_devices=observed_devices)
            problems += (
                *regional_catalog.problems,
                *commitment_problems,
                *catalog.find_unsold_node_classes(new_catalog),
            )
            if any(types for _, types in new_catalog.by_node_class):
                write_catalog(new_catalog, world.bucket)
                current = replace(current, catalog=new_catalog)
                notes = (build_catalog_note(new_catalog, build_catalog_key(new_catalog)),)
                outcomes += apply_actions(catalog.plan_requeues(cluster, current), world)
            counts = compute_catalog_ages(current) | regional_catalog.counts
        problems += bill_costs(
            world, lambda: ClusterState(refresh_snapshot(world, current, COSTS_REQUEST))
        ) + publish_cost_report(world)
        month_costs, budget_problems = update_month_costs(world)
        problems += budget_problems
        budget = find_budget_state(build_budget_policy(world.settings), month_costs, current.taken_at)
        counts |= canary_rollout.count_rejections(current)
        counts |= {MONEY_USED: budget.used_percent} if month_costs is not None else {}
        return replace(
            report, cluster=current, outcomes=outcomes, counts=counts, notes=notes, problems=problems, before=cluster
        )

    return run_and_report("catalog", world, trigger, lambda: run_with_lease(CATALOG_LEASE, "catalog", world, run_cycle))


def _observe_devices(world: World, cluster: ClusterSnapshot) -> tuple[ObservedDevices, ...]:
    """Return the devices that nodes publish, with earlier observations; none if the setting is off."""
    if world.settings.dynamic_resource_allocation == "off":
        return ()
    overlay_lists = OVERLAY_LISTS if world.settings.gates.node_overlay else ()
    device_cluster = refresh_snapshot(world, cluster, SnapshotRequest(lists=(*DEVICE_SUPPLY_LISTS, *overlay_lists)))
    return observe_devices(device_cluster, list_declared_kinds(device_cluster))


def decide_node_class_statuses(cluster: ClusterSnapshot, inputs: DecisionInputs) -> DecisionProcess[CycleReport]:
    """Patch the status of each node class, and mark zones without free addresses as unavailable.

    Return the report with the cluster after that.
    """
    account: AccountAnswersRecord = yield QueryAccount(node_classes=cluster.node_classes)
    canaries = canary_rollout.advance_canaries(cluster, account.answers)
    cluster = canaries.cluster
    actions = (
        *canaries.actions,
        *status.plan_status_patches(cluster, account.answers, account.profile),
        *subnet_addresses.plan_exhausted_zones(cluster, account.answers),
        *subnet_addresses.build_address_events(cluster, account.answers),
    )
    outcomes: tuple[Outcome, ...] = yield PerformActions(actions=actions, is_guarded=True)
    # In mode plan nothing is written, but the result is known all the same.
    is_plan = inputs.decode_settings().mode == "plan"
    current = apply_status_patches(
        cluster, [outcome.action for outcome in outcomes if is_plan or outcome.result == "done"]
    )
    return CycleReport(
        cluster=catalog.with_counts(current, account.answers),
        outcomes=outcomes,
        summary=DecisionSummary(decided=len(outcomes)),
    )
