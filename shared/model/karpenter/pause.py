"""Pause annotations: their format and their parsing."""

import re
from collections.abc import Collection, Iterable
from datetime import datetime
from difflib import get_close_matches
from functools import lru_cache
from typing import Final, TypeAlias

import msgspec

from shared.model.core.labels import DISRUPTION_PAUSED, LAUNCHES_PAUSED
from shared.model.core.units import format_instant, parse_instant

CLUSTER_NAMESPACE: Final = "kube-system"
"""The Namespace with the pauses of the whole cluster: every cluster has it, and no manifest of a user owns it."""
DISRUPTION_REASONS: Final = ("Drifted", "Empty", "Underutilized", "Unhealthy")
VOLUNTARY_REASONS: Final = ("Drifted", "Empty", "Underutilized")
"""All reasons except repair."""
LAUNCH_WORDS: Final = ("Launches",)
WORDS_BY_ANNOTATION: Final = {DISRUPTION_PAUSED: DISRUPTION_REASONS, LAUNCHES_PAUSED: LAUNCH_WORDS}
"""What each annotation can pause."""
SET_BY_PERSON_TEXT: Final = "is set by an operator"
"""Part of the message of every pause that a person has set, and of no pause that Joiner sets itself."""
_PAUSE_PATTERN: Final = re.compile(
    r"(?P<what>[A-Za-z]+(?:\s*,\s*[A-Za-z]+)*)(?:\s+in\s+(?P<pools>[a-z0-9.-]+(?:\s*,\s*[a-z0-9.-]+)*))?"
    r"(?:\s+until\s+(?P<until>\S+))?(?:\s+by\s+(?P<by>\S+))?(?:\s+since\s+(?P<since>\S+))?"
    r"(?:\s+because\s+(?P<because>.*))?",
    re.DOTALL,
)
_PAUSE_SYNTAX: Final = "REASON,… [in NODEPOOL,…] [until INSTANT] [by WHO] [since INSTANT] [because TEXT]"


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """One pause of an annotation."""

    reasons: tuple[str, ...]
    """Sorted; a subset of `WORDS_BY_ANNOTATION`."""
    pools: tuple[str, ...] = ()
    """The named NodePools, sorted; empty: all NodePools that the annotated object covers."""
    until: datetime | None = None
    """The pause ends at this instant; None: when it is removed."""
    author: str = ""
    since: datetime | None = None
    because: str = ""

    def is_active(self, now: datetime) -> bool:
        """Return whether the pause has not ended."""
        return self.until is None or now < self.until

    def describe(self) -> str:
        """Return who paused, since when and until when, and why.

        >>> Pause(reasons=("Empty",), author="anna", because="Black Friday").describe()
        'by anna: Black Friday'
        """
        parts = (
            f"by {self.author}" if self.author else "",
            f"since {format_instant(self.since)}" if self.since else "",
            f"until {format_instant(self.until)}" if self.until else "",
        )
        description = " ".join(filter(None, parts))
        return f"{description}{': ' if description and self.because else ''}{self.because}"


PauseScope: TypeAlias = str
"""The name of a NodePool; "" for the whole cluster."""


def parse_pauses(text: str, words: Collection[str]) -> tuple[Pause, ...]:
    """Parse an annotation that can pause *words*.

    >>> pauses = parse_pauses("Drifted by anna; true until 2026-11-22T09:00:00Z", ("Drifted", "Empty"))
    >>> [pause.reasons for pause in pauses]
    [('Drifted',), ('Drifted', 'Empty')]
    >>> parse_pauses("false", ("Empty",))
    ()

    Raises:
        ValueError: the syntax is wrong, a word is not one of *words*, or an instant is invalid.
    """
    parts = [part.strip() for part in text.split(";")]
    return tuple(_parse_pause(part, words) for part in parts if part not in ("", "false"))


def format_pauses(pauses: Iterable[Pause]) -> str:
    """Return the text that `parse_pauses` parses to *pauses*; "" for none."""
    return "; ".join(_format_pause(pause) for pause in pauses)


def normalize_text(text: str) -> str:
    """Return *text* on one line, without the separator of pauses."""
    return " ".join(text.replace(";", ",").split())


@lru_cache(maxsize=1024)
def parse_pauses_cached(text: str, words: tuple[str, ...]) -> tuple[Pause, ...]:
    """Parse as `parse_pauses`, and remember the result: most annotations are the same in each cycle."""
    return parse_pauses(text, words)


def parse_disruption_pauses(text: str) -> tuple[Pause, ...]:
    """Parse the disruption pauses of a deployment, with the grammar of the annotation joiner.dev/disruption-paused.

    >>> parse_disruption_pauses("drifted in batch until 2026-11-22T09:00:00Z")[0].pools
    ('batch',)

    Raises:
        ValueError: *text* does not follow the grammar.
    """
    return parse_pauses(text, DISRUPTION_REASONS)


def _parse_pause(text: str, words: Collection[str]) -> Pause:
    match = _PAUSE_PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not like {_PAUSE_SYNTAX}")
    words_in_text = _split_list(match["what"])
    reasons = (
        tuple(words)
        if words_in_text == ("true",)
        else tuple(sorted({parse_reason(word, words, "true, or ") for word in words_in_text}))
    )
    until, since = (parse_instant(match[name]) if match[name] else None for name in ("until", "since"))
    return Pause(
        reasons=tuple(sorted(reasons)),
        pools=_split_list(match["pools"] or ""),
        until=until,
        author=match["by"] or "",
        since=since,
        because=normalize_text(match["because"] or ""),
    )


def _split_list(text: str) -> tuple[str, ...]:
    return tuple(sorted({part.strip() for part in text.split(",") if part.strip()}))


def parse_reason(text: str, words: Collection[str], instead: str = "") -> str:
    """Return the item of *words* that equals *text*, ignoring case; *instead* is an alternative for the error message.

    >>> parse_reason("drifted", DISRUPTION_REASONS)
    'Drifted'

    Raises:
        ValueError: it is none of them; the message suggests a similar word.
    """
    word_by_lowercase = {word.lower(): word for word in words}
    if text.lower() in word_by_lowercase:
        return word_by_lowercase[text.lower()]
    close = get_close_matches(text.lower(), word_by_lowercase, n=1)
    suggestion = f"did you mean {word_by_lowercase[close[0]]}? " if close else ""
    raise ValueError(f"{text!r} is not a reason: {suggestion}write {instead}one or more of {', '.join(words)}")


def _format_pause(pause: Pause) -> str:
    parts = (
        ",".join(pause.reasons) if pause.reasons != LAUNCH_WORDS else "true",
        f"in {','.join(pause.pools)}" if pause.pools else "",
        f"until {format_instant(pause.until)}" if pause.until else "",
        f"by {pause.author}" if pause.author else "",
        f"since {format_instant(pause.since)}" if pause.since else "",
        f"because {pause.because}" if pause.because else "",
    )
    return " ".join(filter(None, parts))
