"""What is written where a terminal knows few characters."""

import io
import json
import sys

import pytest

from cli.characters import NAME, be_content_with_few


@pytest.mark.parametrize(
    ("said", "written"),
    [("a … b", "a ... b"), ("x → y", "x -> y"), ("wéb", "w\\u00e9b"), ("🚀", "\\ud83d\\ude80"), ("plain", "plain")],
)
def test_signs_become_letters_and_others_what_json_reads(
    said: str, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", few)
    be_content_with_few()
    few.write(said)
    few.flush()
    assert few.buffer.getvalue() == written.encode()
    if not set("…→") & set(said):
        assert json.loads(f'"{written}"') == said


def test_who_knows_all_characters_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="UTF-8"))
    be_content_with_few()
    assert sys.stdout.errors == "strict"


def test_what_cannot_be_read_is_no_matter_of_ours() -> None:
    be_content_with_few()
    with pytest.raises(UnicodeDecodeError):
        b"\xff".decode("ascii", NAME)
