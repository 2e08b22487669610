"""The reference page of `-o json` and `-o yaml`: every field of every command.

tests/unit/docs/test_output_fields.py runs the commands and compares their output with these tables.
"""

from pathlib import Path
from typing import Final

import yaml

from cli.terminal.output_format import API_VERSION
from docs.reference.markdown import format_code, render_page, render_table

QUANTITIES: Final = (
    ("usdPerHour", "a price in USD per hour; `null` without a catalog with prices"),
    ("savingsUsdPerHour", "what a change saves, in USD per hour"),
    ("usd, idleUsd, …Usd", "a cost in USD over a period"),
    ("cpu, memory", "Kubernetes quantities, like `500m` and `2Gi`"),
    ("ageSeconds, secondsAgo, …Seconds", "a duration in seconds"),
    ("hours, nodeHours, …Hours", "a duration in hours, or the sum of the durations of several nodes"),
    ("at, since, until, …At", "an instant in UTC, like `2026-11-21T08:00:00Z`"),
    ("reason", "a name like `NoOffering`, which is stable, or a text in `explain` and `report`"),
    ("message", "a text for people, which can change"),
    ("fix", "how to fix the problem, often a command"),
    ("nodePool, nodeClaim, node, pod", "names of objects; pods as `NAMESPACE/NAME`"),
)
FIELDS: Final[dict[str, dict[str, str]]] = yaml.safe_load(
    (Path(__file__).parent / "output.yaml").read_text(encoding="utf-8")
)
"""Fields by command, with their description."""


def render_output_pages() -> dict[str, str]:
    """Render the page of all output fields, by file name."""
    introduction = (
        "Every command that lists or shows data prints JSON with `-o json` and YAML with `-o yaml`. Each document has "
        f"`apiVersion: {API_VERSION}`; if the output is a list, each item has it. The names of fields are stable within"
        " this version; later versions can add fields. Kubernetes objects (`joiner convert -o yaml`) have their own "
        "`apiVersion`."
    )
    names = render_table(("Name", "Meaning"), ((_format_names(name), meaning) for name, meaning in QUANTITIES))
    sections = (
        f"## joiner {command}\n\n{render_table(('Field', 'Content'), _list_rows(fields))}"
        for command, fields in FIELDS.items()
    )
    return {"output.md": render_page("Output of commands", introduction, "## Names and units", names, *sections)}


def _format_names(names: str) -> str:
    return ", ".join(format_code(name) for name in names.split(", "))


def _list_rows(fields: dict[str, str]) -> list[tuple[str, str]]:
    return [
        (format_code(path.removesuffix(".*") or "(document)"), description)
        for path, description in fields.items()
        if description
    ]
