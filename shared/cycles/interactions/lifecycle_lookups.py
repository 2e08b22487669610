"""Lookups of the lifecycle cycle while it decides."""

from datetime import datetime, timedelta
from typing import Final

from shared.errors import Fault
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Problem
from shared.model.decisions.decision_answers import AppliedOverlays, ExistingTemplates
from shared.ports.world import World
from shared.report.journal.replay_inputs import strip_templates
from shared.report.journal.snapshot_digest import strip_unread_annotations
from shared.store.catalog import build_catalog_key

TEMPLATE_CLEANUP_INTERVAL: Final = timedelta(minutes=10)
"""Between two searches of a container for unused launch templates: they cost nothing, but listing them does."""
_CLEANUP_KEY: Final = "tidied"


def list_launch_templates(world: World, problems: list[Problem]) -> ExistingTemplates:
    """Return the existing launch templates; a fault is added to *problems*."""
    name = world.settings.cluster_name
    try:
        return ExistingTemplates(templates=strip_templates(world.ec2.describe_launch_templates(name)))
    except Fault as fault:
        message = f"cannot list launch templates: {type(fault).__name__}: {fault}; no launch template is deleted"
        problems.append(Problem(kind="EC2", name=name, message=message))
        return ExistingTemplates()


def build_applied_overlays(overlaid_cluster: ClusterSnapshot) -> AppliedOverlays:
    """Return what a replay needs of the NodeOverlays in *overlaid_cluster*; nothing if there are none."""
    catalog = overlaid_cluster.catalog
    if not overlaid_cluster.node_overlays:
        return AppliedOverlays()
    return AppliedOverlays(
        overlays=strip_unread_annotations(overlaid_cluster.node_overlays),
        overlaid_at=overlaid_cluster.taken_at,
        catalog_key=build_catalog_key(catalog) if catalog is not None else "",
    )


def is_cleanup_due(world: World, cluster: ClusterSnapshot) -> bool:
    """Return whether it is time to search for unused launch templates; the search counts as done."""
    now = cluster.taken_at
    if world.memory is None or not cluster.node_pools:
        return True
    last = world.memory.get(_CLEANUP_KEY)
    if isinstance(last, datetime) and now - last < TEMPLATE_CLEANUP_INTERVAL:
        return False
    world.memory[_CLEANUP_KEY] = now
    return True
