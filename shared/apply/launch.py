"""One CreateFleet call, exactly once: the launch group is written, the request sent, and the result written."""

from datetime import timedelta
from typing import Final

import msgspec

from shared.errors import InsufficientCapacity, Invalid, NotFound
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.decisions.action import LaunchInstances
from shared.model.ec2.fleet import FleetError, FleetResult
from shared.ports.storage import FencingToken, TableRow
from shared.ports.world import World
from shared.store.launch_groups import ROW_KIND
from shared.store.table_rows import decode_body, encode_body, try_write

LAUNCH_GROUP_TTL: Final = timedelta(hours=24)


def launch_instances(action: LaunchInstances, world: World, fence: FencingToken | None) -> LaunchGroup:
    """Send the group's request as it was first written; return the group with EC2's result.

    A request that EC2 refuses as invalid, or entirely for insufficient capacity, has a result too: it is written as an
    error, so that the claims report it and the request is not repeated.

    Raises:
        Conflict: the controller lost its lease before the group was written; nothing was sent.
        Fault: EC2 did not respond, or throttled the call; the next cycle repeats the same call.
    """
    row = _ensure_group_row(action.group, world, fence)
    group = decode_body(row, LaunchGroup)
    if group is None:  # the same client token again: EC2 launches nothing twice
        row = world.table.write(
            ROW_KIND, row.name, _encode_group(action.group), version=row.version, expires_at=row.expires_at, fence=fence
        )
        group = action.group
    if group.result is not None:
        return group
    group_with_result = msgspec.structs.replace(group, result=_send_request(group, world))
    body = _encode_group(group_with_result)  # if another process was faster, it repeated the call and wrote the same
    try_write(world.table, ROW_KIND, group.name, body, version=row.version, expires_at=row.expires_at)
    return group_with_result


def _ensure_group_row(group: LaunchGroup, world: World, fence: FencingToken | None) -> TableRow:
    row = world.table.read(ROW_KIND, group.name)
    if row is not None:
        return row
    expires_at = world.clock() + LAUNCH_GROUP_TTL
    return world.table.write(ROW_KIND, group.name, _encode_group(group), version=0, expires_at=expires_at, fence=fence)


def _send_request(group: LaunchGroup, world: World) -> FleetResult:
    try:
        return _create_fleet(group, world)
    except Invalid as refused:
        error = FleetError(code=refused.code or "LaunchFailed", message=str(refused))
    except InsufficientCapacity as refused:
        error = FleetError(code="InsufficientInstanceCapacity", message=str(refused))
    return FleetResult(fleet_id="", errors=(error,))


def _create_fleet(group: LaunchGroup, world: World) -> FleetResult:
    """Create the launch templates and send the request; once more if a template was garbage-collected in between."""
    _ensure_templates(group, world)
    try:
        return world.ec2.create_fleet(group.request)
    except NotFound:
        _ensure_templates(group, world)
        return world.ec2.create_fleet(group.request)


def _ensure_templates(group: LaunchGroup, world: World) -> None:
    for template in group.templates:
        world.ec2.ensure_launch_template(template)


def _encode_group(group: LaunchGroup) -> str:
    return encode_body(group, f"launch group {group.name}", "shorten the user data of the EC2NodeClass")
