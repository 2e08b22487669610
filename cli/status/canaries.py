"""The canaries of EC2NodeClasses, rendered for people and as documents."""

from collections.abc import Iterable, Iterator
from typing import Any

from cli.terminal.text import Palette, wrap_text
from shared.decide.node_class.canary_status import CanarySummary


def build_canary_document(canary: CanarySummary) -> dict[str, Any]:
    """Return the document that programs read."""
    return {
        "nodeClass": canary.node_class,
        "status": canary.status,
        "reason": canary.reason or None,
        "message": canary.message or None,
    }


def render_canaries(canaries: Iterable[CanarySummary], palette: Palette, width: int | None) -> Iterator[str]:
    """Yield the lines that people read: what is tested, and what is rejected."""
    lines = [
        palette.colorize("red" if canary.status == "False" else "", line)
        for canary in canaries
        for line in wrap_text(canary.describe(), width, "  ")
    ]
    if lines:
        yield from (palette.colorize("bold", "CANARIES"), *lines)
