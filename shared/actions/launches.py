"""One CreateFleet, exactly once: written down, sent, its answer written down."""

from datetime import timedelta
from typing import Final

import msgspec

from shared.errors import Conflict, Gone, InsufficientCapacity, Invalid
from shared.model.action import LaunchInstances
from shared.model.cluster import LaunchGroup
from shared.model.ec2 import FleetError, FleetResult
from shared.ports import Fence, Row, World

KIND: Final = "launch-group"
KEPT_FOR: Final = timedelta(hours=24)


def launch(action: LaunchInstances, world: World, fence: Fence | None) -> LaunchGroup:
    """Send the group's request, as it was first written down; answer the group with EC2's answer.

    A request that EC2 refuses as wrong, or as a whole for want of capacity, is an answer too: it is written down as an
    error, so that the claims can be told and are not asked for again and again.

    Raises:
        Conflict: the lease was lost before the group was written down: nothing was sent.
        Fault: EC2 did not answer, or answered "later": the same call is repeated by the next cycle.
    """
    row = _write_down(action.group, world, fence)
    group = _written(row)
    if group is None:  # the same token again: EC2 starts nothing twice
        row = world.table.write(
            KIND, row.name, _body(action.group), version=row.version, expires_at=row.expires_at, fence=fence
        )
        group = action.group
    if group.result is not None:
        return group
    answered = msgspec.structs.replace(group, result=_send(group, world))
    try:
        world.table.write(KIND, group.name, _body(answered), version=row.version, expires_at=row.expires_at)
    except Conflict:
        return answered  # somebody repeated the same call and wrote the same answer
    return answered


def _write_down(group: LaunchGroup, world: World, fence: Fence | None) -> Row:
    row = world.table.read(KIND, group.name)
    if row is not None:
        return row
    expires_at = world.clock() + KEPT_FOR
    return world.table.write(KIND, group.name, _body(group), version=0, expires_at=expires_at, fence=fence)


def _written(row: Row) -> LaunchGroup | None:
    """Answer the group in *row*, None if it cannot be read."""
    try:
        return msgspec.json.decode(row.body, type=LaunchGroup)
    except msgspec.DecodeError:
        return None


def _send(group: LaunchGroup, world: World) -> FleetResult:
    try:
        return _ask(group, world)
    except Invalid as refused:
        error = FleetError(code=refused.code or "LaunchFailed", message=str(refused))
    except InsufficientCapacity as refused:
        error = FleetError(code="InsufficientInstanceCapacity", message=str(refused))
    return FleetResult(fleet_id="", errors=(error,))


def _ask(group: LaunchGroup, world: World) -> FleetResult:
    """Make the templates and send the request; once more if a template was collected between the two."""
    _ensure_templates(group, world)
    try:
        return world.ec2.create_fleet(group.request)
    except Gone:
        _ensure_templates(group, world)
        return world.ec2.create_fleet(group.request)


def _ensure_templates(group: LaunchGroup, world: World) -> None:
    for template in group.templates:
        world.ec2.ensure_launch_template(template)


def _body(group: LaunchGroup) -> str:
    return msgspec.json.encode(group).decode()
