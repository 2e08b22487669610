"""What is to be said of an object while it is converted, and of which field."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

Path: TypeAlias = tuple[str | int, ...]
"""Keys and places in lists, from an object's root."""
Level: TypeAlias = Literal["changed", "warning", "refused"]
"""`refused`: it has no equivalent, so the object is not converted. `warning`: it is, and somebody should look."""


class Remark(msgspec.Struct, frozen=True, kw_only=True):
    """One sentence about one field."""

    level: Level
    path: Path
    message: str


def spelled(path: Path) -> str:
    """Write *path* as people do.

    >>> spelled(("spec", "requirements", 0, "key"))
    'spec.requirements[0].key'
    """
    parts = (f"[{one}]" if isinstance(one, int) else f".{one}" for one in path)
    return "".join(parts).removeprefix(".")


class Remarks:
    """What was said of one object so far."""

    def __init__(self, plain: Mapping[Path, str] | None = None) -> None:
        """Nothing yet; *plain* is how numbers and truth values are written in the object."""
        self.said: list[Remark] = []
        self.plain = plain or {}

    def changed(self, path: Path, message: str) -> None:
        """The field has another form now."""
        self.said.append(Remark(level="changed", path=path, message=message))

    def warn(self, path: Path, message: str) -> None:
        """The field should be looked at by somebody."""
        self.said.append(Remark(level="warning", path=path, message=message))

    def refuse(self, path: Path, message: str) -> None:
        """The field has no equivalent, or makes no sense; *message* ends in a remedy."""
        self.said.append(Remark(level="refused", path=path, message=message))

    def is_refused(self) -> bool:
        """Whether the object cannot be converted."""
        return any(one.level == "refused" for one in self.said)
