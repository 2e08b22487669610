"""Selectors of v1alpha1, which are maps, -> the terms of v1.

All keys of a map had to match, and each value could be a list with commas in it; of terms one has to match, and a comma
is a comma. So one map is as many terms as its values have combinations.
"""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import product
from typing import Any, Final

from cli.conversion.parts import Part, remedy

Object = dict[str, Any]
IDS: Final = ("aws-ids", "aws::ids")
MOST: Final = 30
"""Terms that v1 takes."""
SUBNET: Final = re.compile(r"subnet-[0-9a-z]+")
GROUP: Final = re.compile(r"sg-[0-9a-z]+")
IMAGE: Final = re.compile(r"ami-[0-9a-z]+")
_EXAMPLES: Final = {SUBNET: "subnet-0123456789abcdef0", GROUP: "sg-0123456789abcdef0", IMAGE: "ami-0123456789abcdef0"}
_NAMES, _OWNERS = "aws::name", "aws::owners"


def terms(selector: Part, ids: re.Pattern[str]) -> list[Object]:
    """Answer the terms for *selector*, whose ids look like *ids*."""
    by_id = _by_id(selector, ids)
    if by_id is not None:
        return by_id
    names, owners = (_split(selector, key) for key in (_NAMES, _OWNERS)) if ids is IMAGE else ([], [])
    tags = {key: _split(selector, key) for key in selector.keys() if key not in (_NAMES, _OWNERS)}  # noqa: SIM118
    _refuse_unknown(selector, tags, (*IDS, _NAMES, _OWNERS) if ids is IMAGE else IDS)
    if owners and not names and not tags:
        names = ["*"]
        selector.remarks.changed(selector.at(_OWNERS), "has a name beside it, '*', which all images have")
    for key, values in tags.items() if ids is IMAGE else ():
        for one in values:
            if IMAGE.fullmatch(one):
                selector.remarks.refuse(
                    selector.at(key), f"{one} is an image's id, and {key} a tag: write `aws::ids: {one}` in its place"
                )
    combined = product(owners or [""], names or [""], *tags.values())
    found = [_term(owner, name, dict(zip(tags, values, strict=True))) for owner, name, *values in combined]
    if len(found) > 1:
        selector.remarks.changed(
            selector.path, f"commas separate values no longer: one term each, {len(found)} in all, of which one matches"
        )
    if len(found) > MOST:
        selector.remarks.refuse(
            selector.path, f"would be {len(found)} terms, and {MOST} are taken: give what is meant a tag of its own"
        )
    for place, term in enumerate(found):
        check_name(term.get("name", ""), selector, place)
    return found


def selected(spec: Part, field: str, ids: re.Pattern[str]) -> Part | None:
    """Answer the selector under *field*, None if there is none; ids alone are refused."""
    value = spec.raw(field)
    if isinstance(value, str | list) and (found := ids.findall(str(value))):
        example = f'{field}: {{aws::ids: "{",".join(found)}"}}'
        spec.remarks.refuse(spec.at(field), f"selects by key and value: write {example}")
        return None
    return spec.part(field)


def check_name(name: str, part: Part, *keys: str | int) -> None:
    """Refuse an id where a name is asked for: nothing is called so."""
    if name.startswith("ami-"):
        part.remarks.refuse(
            part.at(*keys),
            f"{name} is an image's id, not its name, and no image is called so: write it as `id: {name}`",
        )


def _refuse_unknown(selector: Part, keys: Iterable[str], known: Sequence[str]) -> None:
    for key in keys:
        if key.startswith("aws::") and key not in known:
            close = get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]}?" if close else "write the tag's own key"
            selector.remarks.refuse(selector.at(key), f"selects nothing: {hint}")


def _by_id(selector: Part, ids: re.Pattern[str]) -> list[Object] | None:
    named = [key for key in IDS if selector.has(key)]
    if not named:
        return None
    if len(selector.keys()) > 1:
        selector.remarks.refuse(selector.at(named[0]), "stands alone: remove the other keys, or the ids")
    found = _split(selector, named[0])
    for one in found:
        if not ids.fullmatch(one):
            selector.remarks.refuse(
                selector.at(named[0]), f"{one!r} is no id: {remedy(one, f'write one like {_EXAMPLES[ids]}')}"
            )
    selector.remarks.changed(selector.at(named[0]), "is a term with `id` for each now")
    return [{"id": one} for one in found]


def _split(selector: Part, key: str) -> list[str]:
    if isinstance(some := selector.raw(key), list):
        joined = ",".join(str(one) for one in some)
        selector.remarks.refuse(selector.at(key), f'is a list: write one text with commas, "{joined}"')
        return []
    text = selector.text(key)
    if selector.holds(key) and not isinstance(selector.raw(key), str | int | float):
        return []
    values = [one.strip() for one in text.split(",")]
    if key in selector.keys() and (not key or not all(values)):  # noqa: SIM118 - no mapping
        selector.remarks.refuse(selector.at(key), "is empty: write a value, or '*' for any")
    return [one for one in values if one]


def _term(owner: str, name: str, tags: dict[str, str]) -> Object:
    some = {"tags": tags, "name": name, "owner": owner}
    return {key: value for key, value in some.items() if value}
