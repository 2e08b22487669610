"""User data laws: what is written is read back, for any user data."""

import tomllib
from datetime import UTC, date, datetime
from email import message_from_string
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shared.decide.launch.ami_families.mime import SHELL_SCRIPT_TYPE, build_part, format_archive, parse_user_parts
from shared.decide.launch.ami_families.toml import format_toml

TEXT = st.text(alphabet=st.characters(codec="utf-8"), max_size=12)
SCALARS = st.one_of(
    TEXT,
    st.integers(-(2**62), 2**62),
    st.booleans(),
    st.floats(allow_nan=False),
    st.dates(min_value=date(1000, 1, 1)),
    st.datetimes(min_value=datetime(1000, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - hypothesis adds the zone
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=8
)
LINES = st.lists(st.text(alphabet="ab-/ #\"'$=", max_size=10), min_size=1, max_size=5)


@given(st.dictionaries(TEXT, VALUES, max_size=4))
def test_toml_output_parses_back_to_the_same_document(document: dict[str, Any]) -> None:
    assert tomllib.loads(format_toml(document)) == document


@given(st.dictionaries(TEXT, VALUES, max_size=4))
def test_toml_output_does_not_depend_on_key_order(document: dict[str, Any]) -> None:
    assert format_toml(dict(reversed(document.items()))) == format_toml(document)


@given(st.lists(LINES, min_size=1, max_size=3))
def test_mime_archive_keeps_its_parts_in_order(scripts: list[list[str]]) -> None:
    texts = ["#!/bin/sh\n" + "\n".join(lines) for lines in scripts]
    message = message_from_string(format_archive(build_part(SHELL_SCRIPT_TYPE, text) for text in texts))
    parts = [str(part.get_payload()).rstrip() for part in message.walk() if not part.is_multipart()]
    assert parts == [text.rstrip() for text in texts]


@given(st.lists(LINES, min_size=1, max_size=3))
def test_parsed_mime_archive_formats_back_to_the_same_archive(scripts: list[list[str]]) -> None:
    once = format_archive(
        build_part(SHELL_SCRIPT_TYPE, ("#!/bin/sh\n" + "\n".join(lines)).rstrip()) for lines in scripts
    )
    assert format_archive(parse_user_parts(once, reads_node_config=False)) == once
    assert format_archive(parse_user_parts(once, reads_node_config=True)) == once
