"""Compatibility with the previous release: its documents are read without loss, and new fields are ignored.

docs/deployments.md has the rule. Do not regenerate the files when these tests fail, only at a release: the code is
wrong.
"""

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec
import pytest
from msgspec import inspect

from tests.golden.state import FOLDER, KINDS

Plain: TypeAlias = Any


def find_losses(was: Plain, now: Plain, at: str = "") -> Iterator[str]:
    """Yield the path of each value of *was* that *now* lacks or changes; new fields are no loss."""
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        if at.endswith(".values"):  # a set: unordered
            was, now = sorted(was), sorted(now)
        for place, item in enumerate(was):
            yield from find_losses(item, now[place], f"{at}[{place}]")
    elif isinstance(was, dict) and isinstance(now, dict):
        for key, value in was.items():
            yield from find_losses(value, now[key], f"{at}.{key}") if key in now else [f"{at}.{key} is gone"]
    elif was != now:
        yield f"{at} was {was!r}, is {now!r}"


def iterate_struct_types(inspected_type: object, visited_types: set[type]) -> Iterator[inspect.StructType]:
    """Yield every struct type that *inspected_type* can contain, itself included."""
    if isinstance(inspected_type, inspect.StructType):
        if inspected_type.cls in visited_types:
            return
        visited_types.add(inspected_type.cls)
        yield inspected_type
        parts: list[object] = [field.type for field in inspected_type.fields]
    else:
        inner_types = (
            getattr(inspected_type, name, None)
            for name in ("types", "item_types", "item_type", "key_type", "value_type")
        )
        parts = [
            member
            for inner_type in inner_types
            for member in (inner_type if isinstance(inner_type, tuple) else (inner_type,))
            if member is not None
        ]
    for part in parts:
        yield from iterate_struct_types(part, visited_types)


def test_every_state_kind_has_a_stored_document() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_documents_of_previous_release_are_read_without_loss(kind: str) -> None:
    body = FOLDER.joinpath(f"{kind}.json").read_bytes()
    read = msgspec.json.decode(body, type=KINDS[kind])
    assert list(find_losses(msgspec.json.decode(body), msgspec.json.decode(msgspec.json.encode(read)))) == []


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_fields_of_a_newer_release_are_ignored(kind: str) -> None:
    struct_types = list(iterate_struct_types(inspect.type_info(KINDS[kind]), set()))
    assert struct_types
    assert [struct_type.cls.__name__ for struct_type in struct_types if struct_type.forbid_unknown_fields] == []


def test_lost_and_changed_fields_are_reported() -> None:
    assert list(find_losses({"a": [{"b": 1}], "c": 1}, {"a": [{"b": 2}], "d": 1})) == [
        ".a[0].b was 1, is 2",
        ".c is gone",
    ]
    assert list(find_losses([1], [1, 2])) == [" was [1], is [1, 2]"]
