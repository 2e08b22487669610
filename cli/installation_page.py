"""What there is to say of an installation, for people and for programs."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from cli.installation import ABSENT, LOOKED, UNSEEN, Beat, Installation
from cli.text import Palette, age, folded
from shared.model.units import instant_text


def installation_document(one: Installation | None) -> dict[str, Any] | None:
    """Answer what a program reads; None where nobody asked."""
    if one is None:
        return None
    does = one.acting
    return {
        "stack": one.stack,
        "status": one.status,
        "why": one.why or None,
        "acting": None if does is None else does.state,
        "disruptionPaused": None if one.settings is None else one.settings.disruption_paused,
        "functions": [
            {"name": beat.function, "lastSuccess": beat.last and instant_text(beat.last), "late": beat.is_late}
            for beat in one.beats
        ],
        "dashboard": one.dashboard or None,
    }


def installation_lines(one: Installation | None, now: datetime, palette: Palette, width: int | None) -> Iterator[str]:
    """Iterate over what a person reads."""
    for colour, text in _said(one, now):
        yield from (palette.paint(colour, line) for line in folded(text, width, ""))
    if one is not None and one.dashboard:
        yield f"dashboard: {one.dashboard}"


def concerns(one: Installation | None, now: datetime, palette: Palette, width: int | None) -> Iterator[str]:
    """Iterate over what of that is not as most want it."""
    for colour, text in _said(one, now):
        if colour:
            yield from (palette.paint(colour, line) for line in folded(text, width, ""))


def _said(one: Installation | None, now: datetime) -> Iterator[tuple[str, str]]:
    """Iterate over sentences, each with its colour; "" where all is well."""
    if one is None:
        return
    if one.status == UNSEEN:
        yield "yellow", f"{one.stack}: could not be looked at: {one.why} (--no-account leaves it out)"
        return
    if one.status == ABSENT:
        deploy = f"`npx cdk deploy -c joiner:cluster={one.cluster}`"
        where = f" in {one.region}" if one.region else ""
        yield "yellow", f"Joiner is not installed: no stack {one.stack}{where}: {deploy}, or --stack NAME"
        return
    does = one.acting
    if does is not None:
        remedy = f" ({does.remedy})" if does.remedy else ""
        yield "yellow" if does.remedy else "", f"{one.stack}: {does.what}{remedy}"
    if one.why:
        yield "yellow", f"{one.stack}: its functions could not be looked at: {one.why}"
    if one.beats:
        is_late = any(beat.is_late for beat in one.beats)
        words = ", ".join(_beat(beat, now) for beat in one.beats)
        remedy = f": `joiner doctor --cluster {one.cluster}` says why" if is_late else ""
        yield "red" if is_late else "", f"last success: {words}{remedy}"


def _beat(one: Beat, now: datetime) -> str:
    when = f"none for {age(LOOKED)}" if one.last is None else f"{age(now - one.last)} ago"
    return f"{one.function} {when}{' (late)' if one.is_late else ''}"
