"""One CreateFleet call, exactly once: the launch group is written, the request sent, and the result written."""

from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from shared.errors import Conflict, InsufficientCapacity, Invalid, NotFound, Unreachable
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.decisions.action import LaunchInstances
from shared.model.ec2.fleet import FleetError, FleetInstance, FleetResult
from shared.ports.storage import FencingToken, TableRow
from shared.ports.world import World
from shared.store.launch_groups import ROW_KIND
from shared.store.table_rows import decode_body, encode_body, try_write

LAUNCH_GROUP_TTL: Final = timedelta(hours=24)
CONFIRMATION_PERIOD: Final = timedelta(minutes=2)
"""How long DescribeInstances must show no instance of a repeated launch before it counts as none: lists lag up to 1m,
and clocks of invocations differ by up to 1m.
"""


def launch_instances(
    action: LaunchInstances,
    world: World,
    fence: FencingToken | None,
    write_lock: AbstractContextManager[object] | None = None,
) -> LaunchGroup:
    """Send the group's request as it was first written; return the group with EC2's result.

    *write_lock* is held while the row is written with *fence*, but not while EC2 launches the instances.

    A request that EC2 refuses as invalid, or entirely for insufficient capacity, has a result too: it is written as an
    error, so that the claims report it and the request is not repeated.

    Raises:
        Conflict: the controller lost its lease before the group was written, or another process sent the request too.
        Fault: EC2 did not respond, or throttled the call, or it is not known yet what an earlier request launched; the
            next cycle repeats the same call.
    """
    row = world.table.read(ROW_KIND, action.group.name)
    group = decode_body(row, LaunchGroup) or action.group
    if group.result is not None:
        return group
    # A repetition increases the row's version too, so that an earlier sender that is still running records no result.
    with write_lock or nullcontext():
        sent_row = world.table.write(
            ROW_KIND,
            group.name,
            _encode_group(group),
            version=row.version if row is not None else 0,
            expires_at=row.expires_at if row is not None else world.clock() + LAUNCH_GROUP_TTL,
            fence=fence,
        )
    result = _send_request(group, world) if row is None else _repeat_request(group, sent_row, world)
    group_with_result = replace(group, result=result, unconfirmed_since=None)
    if _try_write_group(group_with_result, sent_row, world):
        return group_with_result
    return _read_result(group.name, world)


def _read_result(name: str, world: World) -> LaunchGroup:
    """Return the group with the result that another process recorded: it may know more of the same request.

    Raises:
        Conflict: the other process has no result yet.
    """
    group = decode_body(world.table.read(ROW_KIND, name), LaunchGroup)
    if group is None or group.result is None:
        raise Conflict(f"{ROW_KIND}/{name}: another process repeats the request")
    return group


def _repeat_request(group: LaunchGroup, row: TableRow, world: World) -> FleetResult:
    """Send a request that EC2 may have received before, and return what both launched together.

    AWS does not document the response to the client token of an `instant` fleet that was used before. If the response
    explains nothing (no instances, a refusal, a missing launch template), the instances with the group's tag are the
    result, once all are listed or `CONFIRMATION_PERIOD` is over.

    Raises:
        Unreachable: DescribeInstances may not show all instances yet.
    """
    try:
        result = _send_request(group, world)
    except NotFound as refused:
        result = FleetResult(fleet_id="", errors=(FleetError(code="LaunchTemplateNotFound", message=str(refused)),))
    if result.is_explained():
        return result
    instances = _find_instances(group, world)
    since = group.unconfirmed_since or world.clock()
    if len(instances) < group.request.capacity and world.clock() - since < CONFIRMATION_PERIOD:
        _try_write_group(replace(group, unconfirmed_since=since), row, world)
        texts = ", ".join(f"{error.code}: {error.message}" for error in result.errors)
        raise Unreachable(f"ec2:CreateFleet {group.request.client_token}, repeated: {texts}; its instances are awaited")
    return replace(result, instances=instances, errors=()) if instances else result


def _find_instances(group: LaunchGroup, world: World) -> tuple[FleetInstance, ...]:
    return tuple(
        FleetInstance(
            instance_id=instance.instance_id,
            instance_type=instance.instance_type,
            zone=instance.zone,
            subnet_id=instance.subnet_id,
            image_id=instance.image_id,
            capacity_type=instance.capacity_type,
        )
        for instance in world.ec2.describe_launch_group(group.name)
        if not instance.is_terminating()
    )


def _try_write_group(group: LaunchGroup, row: TableRow, world: World) -> bool:
    body = _encode_group(group)
    new_row = try_write(world.table, ROW_KIND, row.name, body, version=row.version, expires_at=row.expires_at)
    return new_row is not None


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
