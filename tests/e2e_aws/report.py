"""The result of a run: `e2e-aws.json`, and the same as a Markdown page for an issue."""

import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from cli.terminal.output_format import encode_output
from shared.model.core.units import format_instant
from tests.e2e_aws.results import StepResult

JSON_NAME: Final = "e2e-aws.json"
PAGE_NAME: Final = "e2e-aws.md"
_ACCOUNT_ID: Final = re.compile(r"(?<!\d)\d{12}(?!\d)")


class Report(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The document."""

    at: str
    """Start of the run, in UTC."""
    cluster: str
    region: str
    environment: str
    """`AWS` or `emulation`."""
    kubernetes: str
    """Version of the cluster."""
    max_cost_usd: float
    seconds: float
    counts: dict[str, int]
    """Number of steps by outcome."""
    steps: tuple[StepResult, ...]
    remains: tuple[str, ...] = ()
    """What could not be removed."""

    @property
    def is_successful(self) -> bool:
        """Whether every step was as expected or skipped, and nothing remains."""
        return not self.remains and set(self.counts) <= {"as expected", "skipped"}


def build_report(
    *,
    started_at: datetime,
    ended_at: datetime,
    cluster: str,
    region: str,
    environment: str,
    kubernetes: str,
    max_cost_usd: float,
    results: Sequence[StepResult],
    remains: Sequence[str],
) -> Report:
    """Return the report of a run."""
    return Report(
        at=format_instant(started_at),
        cluster=cluster,
        region=region,
        environment=environment,
        kubernetes=kubernetes,
        max_cost_usd=round(max_cost_usd, 2),
        seconds=round((ended_at - started_at).total_seconds(), 1),
        counts=dict(sorted(Counter[str](result.outcome for result in results).items())),
        steps=tuple(results),
        remains=tuple(remains),
    )


def write_report(report: Report, folder: Path) -> tuple[Path, Path]:
    """Write both files to *folder*; return their paths. Account ids are replaced: the files can be published."""
    texts = {JSON_NAME: encode_output(report, "json"), PAGE_NAME: render_page(report)}
    for name, text in texts.items():
        (folder / name).write_text(_ACCOUNT_ID.sub("111122223333", text), encoding="utf-8")
    return folder / JSON_NAME, folder / PAGE_NAME


def render_page(report: Report) -> str:
    """Render *report* as Markdown."""
    counts = ", ".join(f"{count} {outcome}" for outcome, count in report.counts.items())
    usage = f"{report.seconds / 60:.0f} minutes, at most ${report.max_cost_usd:.2f}"
    lines = [
        f"# Joiner on {'AWS' if report.environment == 'AWS' else 'the emulated AWS'}",
        "",
        f"{report.at}, cluster `{report.cluster}` (Kubernetes {report.kubernetes}) in {report.region}; {usage}.",
        "",
        f"Steps: {counts or 'none'}. Remaining resources: {len(report.remains) or 'none'}.",
        "",
        *(f"- REMAINS: {_escape_cell(line)}" for line in report.remains),
        *([""] if report.remains else []),
        "| Step | Question | Expectation | Observed | Outcome | Seconds |",
        "|---|---|---|---|---|---|",
        *map(_render_row, report.steps),
        "",
        "## Evidence",
        "",
        *(line for step in report.steps if step.evidence for line in _render_evidence(step)),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _render_row(step: StepResult) -> str:
    outcome = step.outcome if step.outcome == "as expected" else f"**{step.outcome}**"
    cells: list[Any] = [step.id, step.question, step.expectation, step.observed, outcome, f"{step.seconds:.1f}"]
    return f"| {' | '.join(_escape_cell(str(cell)) for cell in cells)} |"


def _escape_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _render_evidence(step: StepResult) -> list[str]:
    body = msgspec.json.format(msgspec.json.encode(step.evidence), indent=1).decode()
    return [f"### {step.id}", "", "```json", body, "```", ""]
