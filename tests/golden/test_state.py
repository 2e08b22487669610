"""One version back: what the last release left is read, nothing of it is lost, and what is new may be passed over.

docs/deployments.md has the rule. The files are not written anew when these fail, only at a release: the code is wrong.
"""

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec
import pytest
from msgspec import inspect

from tests.golden.state import FOLDER, KINDS

Plain: TypeAlias = Any


def lost(was: Plain, now: Plain, at: str = "") -> Iterator[str]:
    """Answer what is not *now* as it *was*, with its path; fields that are new are no loss."""
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        if at.endswith(".values"):  # a set: in no order
            was, now = sorted(was), sorted(now)
        for place, item in enumerate(was):
            yield from lost(item, now[place], f"{at}[{place}]")
    elif isinstance(was, dict) and isinstance(now, dict):
        for key, value in was.items():
            yield from lost(value, now[key], f"{at}.{key}") if key in now else [f"{at}.{key} is gone"]
    elif was != now:
        yield f"{at} was {was!r}, is {now!r}"


def documents(said: object, seen: set[type]) -> Iterator[inspect.StructType]:
    """Answer every document that there may be in one of the type *said*, itself included."""
    if isinstance(said, inspect.StructType):
        if said.cls in seen:
            return
        seen.add(said.cls)
        yield said
        parts: list[object] = [field.type for field in said.fields]
    else:
        kept = (getattr(said, name, None) for name in ("types", "item_types", "item_type", "key_type", "value_type"))
        parts = [one for some in kept for one in (some if isinstance(some, tuple) else (some,)) if one is not None]
    for part in parts:
        yield from documents(part, seen)


def test_a_document_of_every_kind_is_kept() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_last_release_left_is_read_and_nothing_of_it_is_lost(kind: str) -> None:
    body = FOLDER.joinpath(f"{kind}.json").read_bytes()
    read = msgspec.json.decode(body, type=KINDS[kind])
    assert list(lost(msgspec.json.decode(body), msgspec.json.decode(msgspec.json.encode(read)))) == []


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_next_release_adds_is_passed_over(kind: str) -> None:
    every = list(documents(inspect.type_info(KINDS[kind]), set()))
    assert every
    assert [one.cls.__name__ for one in every if one.forbid_unknown_fields] == []


def test_a_loss_is_noticed() -> None:
    assert list(lost({"a": [{"b": 1}], "c": 1}, {"a": [{"b": 2}], "d": 1})) == [".a[0].b was 1, is 2", ".c is gone"]
    assert list(lost([1], [1, 2])) == [" was [1], is [1, 2]"]
