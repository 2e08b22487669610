"""The findings of `joiner doctor` as a list with fixes, and as a JSON or YAML document."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import groupby
from typing import Any, Final

from cli.doctor.checks.finding import CHECK_LEVELS, CheckLevel, CheckResult
from cli.terminal.text import Palette, wrap_text
from shared.model.core.formatting import format_count
from shared.model.core.units import format_instant

LEVEL_COLORS: Final[dict[CheckLevel, str]] = {
    "ok": "green",
    "later": "cyan",
    "unseen": "yellow",
    "warn": "yellow",
    "fail": "red",
}
LEVEL_WORDS: Final[dict[CheckLevel, str]] = {
    "ok": "ok",
    "later": "not installed yet",
    "unseen": "unseen",
    "warn": "warning",
    "fail": "failed",
}
MAX_OK_LINES_PER_CHECK: Final = 3
"""A check prints at most this many findings that are ok."""
_LEVEL_COLUMNS: Final = 7
_CHECK_COLUMNS: Final = 16

GroupedFindings = Iterable[tuple[str, CheckResult]]


def render_findings_page(
    grouped: GroupedFindings, skipped_parts: Iterable[str], palette: Palette, width: int | None, *, is_whole: bool
) -> str:
    """Return the findings by group, the *skipped_parts*, and the totals."""
    all_findings = list(grouped)
    lines: list[str] = []
    for group, group_findings in groupby(all_findings, key=lambda grouped_finding: grouped_finding[0]):
        lines.append(palette.colorize("bold", group.upper()))
        for _, check_findings in groupby((finding for _, finding in group_findings), key=lambda finding: finding.check):
            lines.extend(_render_check(list(check_findings), palette, width, is_whole=is_whole))
        lines.append("")
    lines.extend(f"skipped: {part}" for part in skipped_parts)
    return "\n".join([*lines, _format_totals(all_findings), ""])


def _render_check(findings: list[CheckResult], palette: Palette, width: int | None, *, is_whole: bool) -> Iterator[str]:
    ok_findings = [finding for finding in findings if finding.level == "ok"]
    hidden_count = 0 if is_whole else max(len(ok_findings) - MAX_OK_LINES_PER_CHECK, 0)
    listed_findings = [
        finding
        for finding in findings
        if finding.level != "ok" or finding in ok_findings[: len(ok_findings) - hidden_count]
    ]
    for finding in listed_findings:
        level = palette.colorize(LEVEL_COLORS[finding.level], f"{finding.level:{_LEVEL_COLUMNS}}")
        head = f"  {level}{finding.check:{_CHECK_COLUMNS}} "
        indent = " " * (2 + _LEVEL_COLUMNS + _CHECK_COLUMNS + 1)
        first_line, *other_lines = wrap_text(finding.message, width, indent, "")
        yield head + first_line.strip()
        yield from other_lines
        if finding.fix:
            yield from wrap_text(f"To fix: {finding.fix}", width, indent, "  ")
    if hidden_count:
        yield f"  {'ok':{_LEVEL_COLUMNS}}{'':{_CHECK_COLUMNS}} … and {hidden_count} more (--all shows them)"


def _format_totals(grouped: list[tuple[str, CheckResult]]) -> str:
    count_by_level = Counter(finding.level for _, finding in grouped)
    return (
        ", ".join(_format_count(count_by_level[level], level) for level in CHECK_LEVELS if count_by_level[level])
        or "nothing was checked"
    )


def _format_count(count: int, level: CheckLevel) -> str:
    """Format the number of findings of *level*; only warnings have a plural.

    >>> _format_count(1, "warn"), _format_count(2, "warn"), _format_count(2, "fail")
    ('1 warning', '2 warnings', '2 failed')
    """
    return format_count(count, LEVEL_WORDS[level]) if level == "warn" else f"{count} {LEVEL_WORDS[level]}"


def build_findings_document(grouped: GroupedFindings, skipped_parts: Iterable[str], at: datetime) -> dict[str, Any]:
    """Return the JSON and YAML output."""
    all_findings = list(grouped)
    count_by_level = Counter(finding.level for _, finding in all_findings)
    return {
        "at": format_instant(at),
        "counts": {level: count_by_level[level] for level in CHECK_LEVELS},
        "findings": [
            {
                "group": group,
                "check": finding.check,
                "level": finding.level,
                "message": finding.message,
                "fix": finding.fix,
            }
            for group, finding in all_findings
        ],
        "skipped": list(skipped_parts),
    }


def compute_exit_code(grouped: GroupedFindings) -> int:
    """Return the exit code: 1 if a check failed, 3 if there are warnings or unseen parts, else 0."""
    levels = {finding.level for _, finding in grouped}
    if "fail" in levels:
        return 1
    return 3 if levels & {"warn", "unseen"} else 0
