"""What is written where a terminal knows few characters."""

import io
import json
import sys

import pytest

from cli.terminal.ascii_fallback import ERROR_HANDLER_NAME, enable_ascii_fallback


@pytest.mark.parametrize(
    ("text", "encoded"),
    [("a … b", "a ... b"), ("x → y", "x -> y"), ("wéb", "w\\u00e9b"), ("🚀", "\\ud83d\\ude80"), ("plain", "plain")],
)
def test_signs_become_letters_and_others_what_json_reads(
    text: str, encoded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ascii_stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", ascii_stdout)
    enable_ascii_fallback()
    ascii_stdout.write(text)
    ascii_stdout.flush()
    assert ascii_stdout.buffer.getvalue() == encoded.encode()
    if not set("…→") & set(text):
        assert json.loads(f'"{encoded}"') == text


def test_who_knows_all_characters_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="UTF-8"))
    enable_ascii_fallback()
    assert sys.stdout.errors == "strict"


def test_what_cannot_be_read_is_no_matter_of_ours() -> None:
    enable_ascii_fallback()
    with pytest.raises(UnicodeDecodeError):
        b"\xff".decode("ascii", ERROR_HANDLER_NAME)
