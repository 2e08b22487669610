"""Remarks on the fields of an object during its conversion."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from cli.convert.reading.missing_values import describe_missing_value

FieldPath: TypeAlias = tuple[str | int, ...]
"""Keys and list indexes, from the object's root."""
RemarkLevel: TypeAlias = Literal["changed", "warning", "missing", "refused"]
"""The effect of a remark on its object:

`refused`: the field has no equivalent in v1, so the object is not converted.
`missing`: the object is converted with a placeholder, which must be replaced before the object is applied.
`warning`: the object is converted, but needs a review.
"""


class Remark(msgspec.Struct, frozen=True, kw_only=True):
    """A message about one field."""

    level: RemarkLevel
    path: FieldPath
    message: str


def format_path(path: FieldPath) -> str:
    """Return *path* in the usual notation.

    >>> format_path(("spec", "requirements", 0, "key"))
    'spec.requirements[0].key'
    """
    formatted_items = (f"[{item}]" if isinstance(item, int) else f".{item}" for item in path)
    return "".join(formatted_items).removeprefix(".")


class RemarkCollector:
    """Collects the remarks on one object."""

    def __init__(self, literals: Mapping[FieldPath, str] | None = None) -> None:
        """Start without remarks; *literals* has the spelling of numbers and booleans in the object."""
        self.remarks: list[Remark] = []
        self.literals = literals or {}

    def add_change(self, path: FieldPath, message: str) -> None:
        """Add a remark that the field has another form now."""
        self.remarks.append(Remark(level="changed", path=path, message=message))

    def add_warning(self, path: FieldPath, message: str) -> None:
        """Add a remark that the field needs a review."""
        self.remarks.append(Remark(level="warning", path=path, message=message))

    def add_missing(self, path: FieldPath, placeholder: str) -> str:
        """Add a remark that the field is missing; return *placeholder*, its value in the converted object."""
        self.remarks.append(Remark(level="missing", path=path, message=describe_missing_value(placeholder)))
        return placeholder

    def add_refusal(self, path: FieldPath, message: str) -> None:
        """Add a remark that the field has no equivalent or makes no sense; *message* ends with a fix."""
        self.remarks.append(Remark(level="refused", path=path, message=message))

    def is_refused(self) -> bool:
        """Return whether the object cannot be converted."""
        return any(remark.level == "refused" for remark in self.remarks)
