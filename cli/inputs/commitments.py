"""Read a commitments document that a user wrote, as YAML or JSON; errors name the file, the line and the field."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cli.inputs.files import read_utf8
from cli.inputs.yaml_reader import MarkedDocument, read_marked_documents
from cli.terminal.errors import InputError
from shared.store.commitments import (
    CommitmentsDocument,
    DocumentPath,
    InvalidCommitmentsError,
    parse_commitments,
)

_EXPECTED: Final = "a commitments document (docs/guide/money.md)"
_FIELD_PART_PATTERN: Final = re.compile(r"(?P<name>\w+)|\[(?P<position>\d+)\]")


def read_commitments(file: str, name: str = "") -> CommitmentsDocument:
    """Read the commitments document *file*, which messages call *name*.

    Raises:
        InputError: The file cannot be read, or has errors; the message has one line for each.
    """
    name = name or file
    errors: list[str] = []

    def report_line(line: int, reason: str) -> None:
        errors.append(f"{name}:{line}: not YAML: {reason}")

    text = read_utf8(name, Path(file), _EXPECTED).decode()
    documents = list(read_marked_documents(text, report_line))
    if errors:
        raise InputError("\n".join(errors))
    if len(documents) != 1:
        raise InputError(f"{name}: {len(documents)} documents: write one document")
    try:
        return parse_commitments(name, documents[0].value)
    except InvalidCommitmentsError as error:
        raise InputError("\n".join(_add_line(name, path, text, documents[0]) for path, text in error.errors)) from None


def _add_line(name: str, path: DocumentPath, message: str, document: MarkedDocument) -> str:
    """Return *message* with the line of the field that it names, or of what contains the field."""
    field = message.removeprefix(f"{name}: ").partition(": ")[2].partition(": ")[0]
    parts = _FIELD_PART_PATTERN.finditer(field)
    field_path = tuple(part["name"] or int(part["position"]) for part in parts) if path else ()
    return f"{name}:{_find_line(document.lines, (*path, *field_path))}:{message.removeprefix(f'{name}:')}"


def _find_line(lines: Mapping[DocumentPath, int], path: DocumentPath) -> int:
    while path and path not in lines:
        path = path[:-1]
    return lines[path]
