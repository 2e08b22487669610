"""Rows of dry-run results."""

from typing import Final

from shared.model.cloud_provider.node_class_findings import DryRunResult
from shared.model.core.digest import compute_digest
from shared.model.ec2.dry_run import DryRunRefusal
from shared.model.karpenter.node_class import EC2NodeClass
from shared.ports.storage import TableRow
from shared.ports.world import World
from shared.store.table_rows import decode_body


def read_dry_run_refusals(node_class: EC2NodeClass, world: World) -> tuple[DryRunRefusal, ...]:
    """Return the refusals of the last dry run for *node_class* in its current form; () if there was no dry run.

    A refusal holds until a later dry run succeeds, regardless of its age.

    Raises:
        Fault: the table could not be read.
    """
    dry_run_result = decode_dry_run_result(world.table.read(DRY_RUN_KIND, node_class.name), node_class)
    return dry_run_result.refusals if dry_run_result is not None else ()


DRY_RUN_KIND: Final = "rehearsal"
"""Kind of the table rows that store a `DryRunResult`, by node class."""


def compute_dry_run_key(node_class: EC2NodeClass) -> str:
    """Return a digest that changes when a new dry run is needed: with the spec or what it selects, in any order."""
    return compute_digest(
        node_class.name,
        node_class.spec_hash,
        node_class.kubelet_text,
        node_class.ip_prefix_count,
        node_class.resolved_profile,
        sorted(subnet.subnet_id for subnet in node_class.resolved_subnets),
        sorted(group.group_id for group in node_class.resolved_security_groups),
        sorted({image.image_id for image in node_class.resolved_images}),
    )


def decode_dry_run_result(row: TableRow | None, node_class: EC2NodeClass) -> DryRunResult | None:
    """Decode a recorded dry run; return None if it is invalid, or belongs to an earlier state of the class."""
    result = decode_body(row, DryRunResult)
    return result if result is not None and result.key == compute_dry_run_key(node_class) else None
