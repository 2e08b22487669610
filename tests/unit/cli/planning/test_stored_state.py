"""What `joiner plan` of a live cluster reads from the table: zonal shifts and the history of offerings."""

import argparse
from datetime import UTC, datetime, timedelta

import pytest

from cli.planning.cluster_source import PlanningInput
from cli.planning.stored_state import read_stored_state, with_stored_state
from shared.errors import NotFound, Unreachable
from shared.model.cloud_provider.instance_type import UnavailableOffering
from shared.model.cloud_provider.offering_history import OfferingEvent
from shared.model.cloud_provider.zonal_shift import ZonalShift, ZonalShiftRecord
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import ObjectMeta
from shared.model.ec2.account import Subnet
from shared.model.karpenter.node_class import EC2NodeClass
from shared.settings import ChosenSettings
from shared.store.offerings.offering_history import record_offering_events
from shared.store.zonal_shifts import read_zonal_shifts
from tests.support.actions_world import Outside

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
SHIFT = ZonalShift(zone_id="use1-az1", started_at=NOW, expires_at=NOW + timedelta(hours=1))
CLUSTER = ClusterSnapshot(
    taken_at=NOW,
    node_classes=(
        EC2NodeClass(
            meta=ObjectMeta(name="default"),
            resolved_subnets=(Subnet(subnet_id="s", zone="us-east-1a", zone_id="use1-az1", available_ip_count=1),),
        ),
    ),
)
LIVE = argparse.Namespace(context="", kubeconfig=None)
ON = ChosenSettings(zonal_shift="on", spot_history="on")


NOT_ENABLED_ARN = "arn:aws:eks:us-east-1:111122223333:cluster/shop"


class StoppedShifts:
    """A zonal shift service with one shift."""

    def get_zonal_shifts(self, cluster_arn: str) -> tuple[ZonalShift, ...]:
        """Return the shift."""
        if cluster_arn == NOT_ENABLED_ARN:
            raise NotFound("arc-zonal-shift: the resource is not managed")
        if not cluster_arn:
            raise Unreachable("arc-zonal-shift: timeout")
        return (SHIFT,)


def build_outside(cluster_arn: str = "arn") -> Outside:
    outside = Outside()
    read_zonal_shifts(outside.table, StoppedShifts(), cluster_arn, NOW, [])
    event = OfferingEvent(
        instance_type="m5.large", zone="us-east-1a", capacity_type="spot", kind="interruption", at=NOW
    )
    record_offering_events((event,), outside.table, NOW)
    return outside


def test_stored_shifts_close_their_zone_and_the_history_is_read() -> None:
    cluster, notes = read_stored_state(CLUSTER, build_outside().table, ON)
    assert cluster.unavailable == (
        UnavailableOffering(capacity_type="", zone="us-east-1a", until=NOW + timedelta(hours=1)),
    )
    assert cluster.offering_history is not None
    assert len(cluster.offering_history.records) == 1
    assert "zone us-east-1a (use1-az1) has a zonal shift until 2026-11-21T09:00:00Z" in notes[1]


def test_each_setting_reads_its_own_row_only() -> None:
    table = build_outside().table
    shifted, _ = read_stored_state(CLUSTER, table, ChosenSettings(zonal_shift="drain"))
    assert shifted.offering_history is None
    assert shifted.zonal_shifts is not None
    assert shifted.zonal_shifts.drains_zones
    priced, _ = read_stored_state(CLUSTER, table, ChosenSettings(spot_history="on"))
    assert priced.zonal_shifts is None
    assert priced.unavailable == ()


def test_shifts_that_the_functions_could_not_read_are_noted() -> None:
    cluster, notes = read_stored_state(CLUSTER, build_outside("").table, ChosenSettings(zonal_shift="on"))
    assert cluster.unavailable == ()
    assert notes == ("zonal shifts: could not be read: Unreachable: arc-zonal-shift: timeout; no zonal shift is known",)


def test_cluster_without_zonal_shift_is_noted_with_the_command_for_it() -> None:
    outside = build_outside(NOT_ENABLED_ARN)
    _, notes = read_stored_state(CLUSTER, outside.table, ChosenSettings(zonal_shift="on"))
    (note,) = notes
    assert note == (
        "zonal shifts: zonal shift is not enabled for the cluster; to fix: run `aws eks update-cluster-config --name "
        "shop --zonal-shift-config enabled=true`, or set `zonal-shift: off`"
    )


@pytest.mark.parametrize(
    ("args", "settings", "notes"),
    [
        (LIVE, ChosenSettings(), 0),
        (argparse.Namespace(context=None, kubeconfig=None), ON, 0),
        (LIVE, ON, 1),
    ],
)
def test_without_a_table_the_plan_is_unchanged(
    args: argparse.Namespace, settings: ChosenSettings, notes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JOINER_TABLE_NAME", raising=False)
    planning_input = PlanningInput(cluster=CLUSTER, read_errors=(), notes=())
    result = with_stored_state(planning_input, args, settings)
    assert result.cluster == CLUSTER
    assert len(result.notes) == notes


def test_record_is_empty_before_the_first_read() -> None:
    cluster, notes = read_stored_state(CLUSTER, Outside().table, ChosenSettings(zonal_shift="on"))
    assert (cluster, notes) == (CLUSTER, ())
    assert ZonalShiftRecord(attempted_at=NOW).shifts == ()
