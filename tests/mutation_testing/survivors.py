"""The known survivors: mutants that no test can or should kill, each with its reason, in `survivors.toml`."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.mutation_testing.mutants import Change

PATH: Final = Path(__file__).parent / "survivors.toml"


def read_survivors(path: Path = PATH) -> Mapping[Change, str]:
    """Return the reason of each known survivor.

    Raises:
        ValueError: an entry lacks a field or its reason is empty.
    """
    reasons: dict[Change, str] = {}
    for number, entry in enumerate(tomllib.loads(path.read_text(encoding="utf-8")).get("survivor", []), start=1):
        missing = [field for field in ("module", "before", "after", "reason") if not entry.get(field)]
        if missing:
            raise ValueError(f"{path.name}: survivor {number} has no {missing[0]}: add it")
        change = Change(
            module=entry["module"],
            definition=entry.get("definition", ""),
            before=entry["before"],
            after=entry["after"],
        )
        reasons[change] = entry["reason"]
    return reasons


def render_survivor(change: Change) -> str:
    """Return an entry for `survivors.toml` whose reason is still to be written."""
    fields = {"module": change.module, "definition": change.definition, "before": change.before, "after": change.after}
    lines = [f"{name} = {_quote(text)}" for name, text in fields.items()]
    return "\n".join(["[[survivor]]", *lines, 'reason = ""'])


def _quote(text: str) -> str:
    """Return *text* as a literal string of TOML; in triple quotes if it has a quote or several lines."""
    return f"'''{text}'''" if "'" in text or "\n" in text else f"'{text}'"
