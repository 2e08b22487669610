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
def test_unsupported_characters_become_ascii_or_json_escapes(
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


def test_utf8_output_is_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="UTF-8"))
    enable_ascii_fallback()
    assert sys.stdout.errors == "strict"


def test_ascii_fallback_does_not_handle_decoding_errors() -> None:
    enable_ascii_fallback()
    with pytest.raises(UnicodeDecodeError):
        b"\xff".decode("ascii", ERROR_HANDLER_NAME)
