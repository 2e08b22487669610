"""What an installation stores about offerings, for plans of its live cluster: zonal shifts and the history.

Like the other settings of `joiner plan`, the settings come from the environment variables of the functions.
"""

import argparse
import os
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from cli.planning.cluster_source import PlanningInput
from shared.errors import Fault
from shared.model.cloud_provider.zonal_shift import ZonalShifts
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Problem
from shared.ports.storage import Table
from shared.settings import ChosenSettings
from shared.state.zones.zonal_shifts import close_shifted_zones, find_shifted_zones
from shared.store.offerings.offering_history import read_offering_history
from shared.store.zonal_shifts import describe_failure, read_stored_shifts

TABLE_VARIABLE: Final = "JOINER_TABLE_NAME"


def with_stored_state(
    planning_input: PlanningInput, args: argparse.Namespace, settings: ChosenSettings
) -> PlanningInput:
    """Return *planning_input* with the zonal shifts and the history of offerings, if their settings are on."""
    is_live = args.context is not None or args.kubeconfig is not None
    if not is_live or (settings.zonal_shift == "off" and settings.spot_history == "off"):
        return planning_input
    name = os.environ.get(TABLE_VARIABLE, "")
    if not name:
        note = f"zonal shifts and the history of offerings are not known: set ${TABLE_VARIABLE}"
        return replace(planning_input, notes=(*planning_input.notes, note))
    from cli.aws.session import get_default_region  # noqa: PLC0415 - boto3 takes half a second
    from shared.aws.clients import Clients  # noqa: PLC0415
    from shared.aws.dynamodb import DynamoTable  # noqa: PLC0415

    table = DynamoTable(Clients(get_default_region() or "us-east-1"), name)
    try:
        cluster, notes = read_stored_state(planning_input.cluster, table, settings)
    except Fault as fault:
        errors = (*planning_input.read_errors, f"table {name}: {fault}")
        return replace(planning_input, read_errors=errors)
    return replace(planning_input, cluster=cluster, notes=(*planning_input.notes, *notes))


def read_stored_state(
    cluster: ClusterSnapshot, table: Table, settings: ChosenSettings
) -> tuple[ClusterSnapshot, tuple[str, ...]]:
    """Return *cluster* with the stored state, and notes about it.

    Raises:
        Fault: the zonal shifts could not be read.
    """
    notes: list[str] = []
    problems: list[Problem] = []
    if settings.spot_history == "on":
        history = read_offering_history(table, problems)
        cluster = replace(cluster, offering_history=history)
        notes.append(f"prices include the history of {len(history.records)} Spot and on-demand offerings")
    if settings.zonal_shift != "off":
        record = read_stored_shifts(table)
        if record is not None:
            shifts = ZonalShifts(shifts=record.shifts, drains_zones=settings.zonal_shift == "drain")
            cluster = close_shifted_zones(replace(cluster, zonal_shifts=shifts))
            notes += _describe_shifts(cluster)
        if record is not None and record.error:
            notes.append(f"zonal shifts: {describe_failure(record)}")
    return replace(cluster, problems=tuple(sorted({*cluster.problems, *problems}))), tuple(notes)


def _describe_shifts(cluster: ClusterSnapshot) -> Iterator[str]:
    for zone, shift in find_shifted_zones(cluster).items():
        yield f"zone {zone} ({shift.zone_id}) has a zonal shift {shift.describe_end()}: no nodes are launched there"
