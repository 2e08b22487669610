"""Fleet requests in words: what is asked for, and in what two of them differ."""

from collections.abc import Iterator
from typing import Any

import msgspec

from cli.text import count, some
from shared.model.action import LaunchInstances
from shared.model.ec2 import Override

MOST = 5
_NAMES = ("name", "client_token", "tags")


def offers_said(launch: LaunchInstances) -> str:
    """Say how many offerings EC2 may choose from."""
    offered = _offered(launch)
    types, zones = {one.instance_type for one in offered}, {one.zone for one in offered}
    return f"{count(len(offered), 'offering')}: {count(len(types), 'type')} in {some(sorted(zones), MOST)}"


def requests_said(then: LaunchInstances, now: LaunchInstances) -> tuple[str, str]:
    """Say in what two requests for the same claims differ; of each what only it has."""
    parts = [*_ways(then, now), *_offerings(then, now), *_templates(then, now)]
    if not parts:
        return "", ""
    return "; ".join(filter(None, (one for one, _ in parts))), "; ".join(filter(None, (one for _, one in parts)))


def _offered(launch: LaunchInstances) -> list[Override]:
    return [one for config in launch.group.request.configs for one in config.overrides]


def _ways(then: LaunchInstances, now: LaunchInstances) -> Iterator[tuple[str, str]]:
    if then.why != now.why:
        yield then.why, now.why
    for name in ("capacity_type", "allocation_strategy", "context", "reservation_type"):
        one, other = getattr(then.group.request, name), getattr(now.group.request, name)
        if one != other:
            yield f"{name} {one or 'none'}", f"{name} {other or 'none'}"


def _offerings(then: LaunchInstances, now: LaunchInstances) -> Iterator[tuple[str, str]]:
    before = {f"{one.instance_type}/{one.zone}/{one.subnet_id}": one for one in _offered(then)}
    after = {f"{one.instance_type}/{one.zone}/{one.subnet_id}": one for one in _offered(now)}
    lost, new = sorted(before.keys() - after.keys()), sorted(after.keys() - before.keys())
    if lost or new:
        yield _only(lost), _only(new)
    for what, name in (("image", "image_id"), ("priority", "priority")):
        other = [one for one in sorted(before.keys() & after.keys()) if _of(before[one], name) != _of(after[one], name)]
        if other:
            yield f"{what} of {_each(other, before, name)}", f"{what} of {_each(other, after, name)}"


def _of(one: Override, name: str) -> object:
    return getattr(one, name)


def _only(names: list[str]) -> str:
    return f"only here {count(len(names), 'offering')}: {some(names, MOST)}" if names else ""


def _each(names: list[str], known: dict[str, Override], field: str) -> str:
    return some([f"{one} {_of(known[one], field)}" for one in names], MOST)


def _templates(then: LaunchInstances, now: LaunchInstances) -> Iterator[tuple[str, str]]:
    """Compare templates in their order: what stands in them decides that, and their names."""
    before, after = ([_fields(one) for one in each.group.templates] for each in (then, now))
    if len(before) != len(after):
        yield count(len(before), "launch template"), count(len(after), "launch template")
        return
    names = sorted({name for one, other in zip(before, after, strict=True) for name in one if one[name] != other[name]})
    if names:
        yield _values(before, names), _values(after, names)


def _fields(template: Any) -> dict[str, Any]:  # noqa: ANN401 - a struct of EC2
    known: dict[str, Any] = msgspec.to_builtins(template)
    return {name: value for name, value in known.items() if name not in _NAMES}


def _values(templates: list[dict[str, Any]], names: list[str]) -> str:
    each = (", ".join(f"{name}={msgspec.json.encode(one[name]).decode()}" for name in names) for one in templates)
    return f"launch template: {some(dict.fromkeys(each), MOST)}"
