"""Tests of stored disruption commands: rows of this version, of a newer version, and of none."""

from typing import Any

import msgspec
import pytest

from shared.ports.storage import TableRow
from shared.store.commands import decode_command
from shared.store.table_rows import encode_compressed_body
from tests.support.command_cases import make_command, make_command_state

SURGING = make_command_state(make_command("a"), "SURGING")


def make_row(*, is_compressed: bool = False, **fields: Any) -> TableRow:
    content = msgspec.to_builtins(SURGING) | fields
    body = encode_compressed_body(content) if is_compressed else msgspec.json.encode(content).decode()
    return TableRow(kind="command", name=SURGING.command.command_id, version=7, body=body)


@pytest.mark.parametrize("is_compressed", [False, True])
@pytest.mark.parametrize(("phase", "expected_phase"), [("SURGING", "SURGING"), ("TELEPORTING", "UNKNOWN")])
def test_only_the_phase_of_a_newer_version_is_unknown(phase: str, expected_phase: str, *, is_compressed: bool) -> None:
    command_state = decode_command(make_row(phase=phase, is_compressed=is_compressed))
    assert command_state == msgspec.structs.replace(SURGING, phase=expected_phase, version=7)
    assert command_state.is_open


@pytest.mark.parametrize(
    "fields", [{"phase": 5}, {"phase": "SURGING", "command": {}}, {"phase": "TELEPORTING", "command": {}}]
)
def test_row_with_another_error_cannot_be_decoded(fields: dict[str, Any]) -> None:
    assert decode_command(make_row(**fields)) is None
