"""Text for fleet requests: what one requests, and how two requests differ."""

from collections.abc import Iterator
from typing import Any

import msgspec

from shared.model.core.formatting import format_count, join_names
from shared.model.decisions.action import LaunchInstances
from shared.model.ec2.fleet import Override

MAX_LISTED_NAMES = 5
_IDENTITY_FIELDS = ("name", "client_token", "tags")


def describe_offerings(launch: LaunchInstances) -> str:
    """Describe how many offerings EC2 may choose from."""
    overrides = _list_overrides(launch)
    types, zones = {override.instance_type for override in overrides}, {override.zone for override in overrides}
    zones_text = join_names(sorted(zones), MAX_LISTED_NAMES)
    return f"{format_count(len(overrides), 'offering')}: {format_count(len(types), 'instance type')} in {zones_text}"


def describe_request_differences(old_launch: LaunchInstances, new_launch: LaunchInstances) -> tuple[str, str]:
    """Describe how two requests for the same claims differ: for each request, the parts that only it has."""
    parts = [
        *_compare_request_settings(old_launch, new_launch),
        *_compare_offerings(old_launch, new_launch),
        *_compare_templates(old_launch, new_launch),
    ]
    old_text, new_text = ("; ".join(filter(None, (part[side] for part in parts))) for side in (0, 1))
    return old_text, new_text


def _list_overrides(launch: LaunchInstances) -> list[Override]:
    return [override for config in launch.group.request.configs for override in config.overrides]


def _compare_request_settings(old_launch: LaunchInstances, new_launch: LaunchInstances) -> Iterator[tuple[str, str]]:
    if old_launch.message != new_launch.message:
        yield old_launch.message, new_launch.message
    for name in ("capacity_type", "allocation_strategy", "context", "reservation_type"):
        old_value, new_value = getattr(old_launch.group.request, name), getattr(new_launch.group.request, name)
        if old_value != new_value:
            yield f"{name} {old_value or 'none'}", f"{name} {new_value or 'none'}"


def _compare_offerings(old_launch: LaunchInstances, new_launch: LaunchInstances) -> Iterator[tuple[str, str]]:
    before, after = (
        {f"{override.instance_type}/{override.zone}/{override.subnet_id}": override for override in overrides}
        for overrides in (_list_overrides(old_launch), _list_overrides(new_launch))
    )
    removed_names, added_names = sorted(before.keys() - after.keys()), sorted(after.keys() - before.keys())
    if removed_names or added_names:
        yield _format_exclusive_offerings(removed_names), _format_exclusive_offerings(added_names)
    for label, name in (("image", "image_id"), ("priority", "priority")):
        changed_names = [
            offering_name
            for offering_name in sorted(before.keys() & after.keys())
            if getattr(before[offering_name], name) != getattr(after[offering_name], name)
        ]
        if changed_names:
            old_values, new_values = (_format_values(changed_names, side, name) for side in (before, after))
            yield f"{label} of {old_values}", f"{label} of {new_values}"


def _format_exclusive_offerings(names: list[str]) -> str:
    return f"{format_count(len(names), 'offering')} only here: {join_names(names, MAX_LISTED_NAMES)}" if names else ""


def _format_values(names: list[str], override_by_name: dict[str, Override], field: str) -> str:
    return join_names([f"{name} {getattr(override_by_name[name], field)}" for name in names], MAX_LISTED_NAMES)


def _compare_templates(old_launch: LaunchInstances, new_launch: LaunchInstances) -> Iterator[tuple[str, str]]:
    """Compare templates in order; their order follows from their contents and names."""
    before, after = (
        [_select_template_fields(template) for template in launch.group.templates]
        for launch in (old_launch, new_launch)
    )
    if len(before) != len(after):
        yield format_count(len(before), "launch template"), format_count(len(after), "launch template")
        return
    pairs = zip(before, after, strict=True)
    names = sorted({name for old, new in pairs for name in old if old[name] != new[name]})
    if names:
        yield _format_template_values(before, names), _format_template_values(after, names)


def _select_template_fields(template: Any) -> dict[str, Any]:  # noqa: ANN401 - a struct of EC2
    fields: dict[str, Any] = msgspec.to_builtins(template)
    return {name: value for name, value in fields.items() if name not in _IDENTITY_FIELDS}


def _format_template_values(templates: list[dict[str, Any]], names: list[str]) -> str:
    descriptions = (
        ", ".join(f"{name}={msgspec.json.encode(template_fields[name]).decode()}" for name in names)
        for template_fields in templates
    )
    return f"launch template: {join_names(dict.fromkeys(descriptions), MAX_LISTED_NAMES)}"
