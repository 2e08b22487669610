"""Launches that are killed, or that fail, at one call."""

from collections.abc import Callable

from shared.apply.launch import launch_instances
from shared.errors import Fault
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.decisions.action import LaunchInstances
from shared.ports.world import World
from shared.store.launch_groups import ROW_KIND
from shared.store.table_rows import decode_body
from sim.fault_tap import Killed, PortCall
from tests.support.actions_world import Outside

FIRST_LAUNCH_SITES = (
    "table.read before",
    "table.write before",
    "table.write after",
    "ec2.ensure_launch_template before",
    "ec2.ensure_launch_template after",
    "ec2.create_fleet before",
    "ec2.create_fleet after",
    "table.write 2 before",
    "table.write 2 after",
)
"""The calls of a launch that no process began before."""


def build_site_counter() -> Callable[[PortCall], str]:
    counts: dict[str, int] = {}

    def name_site(call: PortCall) -> str:
        place = f"{call.port}.{call.method}"
        if call.phase == "before":
            counts[place] = counts.get(place, 0) + 1
        return f"{place} {call.phase}" if counts[place] == 1 else f"{place} {counts[place]} {call.phase}"

    return name_site


def build_killing_tap(site_name: str) -> Callable[[PortCall], None]:
    site = build_site_counter()

    def kill_at_site(call: PortCall) -> None:
        if site(call) == site_name:
            raise Killed(site_name)

    return kill_at_site


def build_raising_tap(method: str, fault: Fault, when: str = "before", times: int = 1) -> Callable[[PortCall], None]:
    pending_faults = [fault] * times

    def raise_pending_fault(call: PortCall) -> None:
        if pending_faults and call.method == method and call.phase == when:
            raise pending_faults.pop()

    return raise_pending_fault


def launch_group(group: LaunchGroup, world: World) -> LaunchGroup:
    return launch_instances(LaunchInstances(group=group), world, None)


def read_stored_group(outside: Outside, name: str = "group") -> LaunchGroup | None:
    row = outside.table.read(ROW_KIND, name)
    return decode_body(row, LaunchGroup)
