"""The remaining breaches, counted by rule and file: `baseline.toml`. The counts may only fall.

`python -m tests.unit.conventions.baseline` rewrites the file after a fix, a move or a rename. It refuses if a rule has
more breaches than before; `--accept-new` is for a new rule. `--report RULE` prints the breaches of a rule by name, the
most frequent first. `--words` rewrites the list of words in the glossary.
"""

import argparse
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from textwrap import fill
from typing import Final, TypeAlias

from tests.unit.conventions.prose import PROSE_RULE_IDS, find_breaches_of_prose
from tests.unit.conventions.rules import FOLDER, REPLACED_WORDS, ROOT, Breach, RuleException, read_exceptions
from tests.unit.conventions.tree import (
    GLOSSARY,
    LAYOUT_RULE_IDS,
    NAME_RULE_IDS,
    PACKAGES,
    WORD_LIST,
    find_breaches_of_layout,
    find_breaches_of_names,
    list_python_files,
    list_words,
)

COMMAND: Final = "python -m tests.unit.conventions.baseline"
RULE_IDS: Final = (*NAME_RULE_IDS, *LAYOUT_RULE_IDS, *PROSE_RULE_IDS)
Baseline: TypeAlias = Mapping[str, Mapping[str, int]]
"""The number of breaches by rule and path."""
_LINE_LENGTH: Final = 120
_PATH: Final = FOLDER / "baseline.toml"
_HEADER: Final = f"# Breaches by rule and file. The counts may only fall. Written by `{COMMAND}`.\n"


def read_baseline() -> Baseline:
    """Return the recorded breaches."""
    return tomllib.loads(_PATH.read_text()) if _PATH.exists() else {}


def count_breaches(breaches: Iterable[Breach]) -> dict[str, Counter[str]]:
    """Return the number of breaches by rule and path, for every rule."""
    counts: dict[str, Counter[str]] = {rule: Counter() for rule in RULE_IDS}
    for breach in breaches:
        counts[breach.rule][breach.path] += breach.count
    return counts


def drop_exceptions(breaches: Iterable[Breach], exceptions: Sequence[RuleException]) -> list[Breach]:
    """Return the breaches that no exception allows."""
    return [breach for breach in breaches if not any(exception.matches(breach) for exception in exceptions)]


def find_unused_exceptions(breaches: Sequence[Breach], exceptions: Iterable[RuleException]) -> list[RuleException]:
    """Return the exceptions that allow no breach."""
    return [exception for exception in exceptions if not any(map(exception.matches, breaches))]


def find_differences(rule: str, breaches: Iterable[Breach], baseline: Baseline) -> list[str]:
    """Return a message for each file with more or fewer breaches of *rule* than recorded."""
    breaches_by_path: dict[str, list[Breach]] = {path: [] for path in baseline.get(rule, {})}
    for breach in breaches:
        if breach.rule == rule:
            breaches_by_path.setdefault(breach.path, []).append(breach)
    differences = (
        _describe_difference(path, sorted(breaches_by_path[path], key=attrgetter("line")), rule, baseline)
        for path in sorted(breaches_by_path)
    )
    return [message for message in differences if message]


def _describe_difference(path: str, breaches: Sequence[Breach], rule: str, baseline: Baseline) -> str:
    count, recorded = sum(breach.count for breach in breaches), baseline.get(rule, {}).get(path, 0)
    if count == recorded:
        return ""
    noun = "breach" if count == 1 else "breaches"
    counts = f"{path}: {count} {noun} of {rule}, {recorded} recorded in the baseline"
    if count < recorded:
        return f"{counts}; lower it: {COMMAND}"
    return "\n  ".join([f"{counts}; fix the new ones:", *map(str, breaches)])


def render_baseline(breaches: Iterable[Breach]) -> str:
    """Return the text of `baseline.toml`."""
    sections = [
        "".join([f"\n[{rule}]\n", *(f'"{path}" = {count}\n' for path, count in sorted(counts.items()))])
        for rule, counts in count_breaches(breaches).items()
        if counts
    ]
    return "".join([_HEADER, *sections])


def _write_baseline(breaches: Sequence[Breach], *, accepts_new: bool) -> str:
    totals = {rule: counts.total() for rule, counts in count_breaches(breaches).items()}
    recorded = {rule: sum(read_baseline().get(rule, {}).values()) for rule in RULE_IDS}
    lines = [f"{rule}: {recorded[rule]} -> {totals[rule]}\n" for rule in RULE_IDS]
    if _PATH.exists() and not accepts_new and any(totals[rule] > recorded[rule] for rule in RULE_IDS):
        sys.exit(
            "".join([*lines, "nothing written: a rule has more breaches than recorded; fix them (or --accept-new)"])
        )
    _PATH.write_text(render_baseline(breaches))
    return "".join(lines)


def _format_report(rule: str, breaches: Iterable[Breach]) -> str:
    breaches_by_name: dict[str, list[Breach]] = {}
    for breach in breaches:
        if breach.rule == rule:
            breaches_by_name.setdefault(breach.name, []).append(breach)
    ranked = sorted(breaches_by_name.items(), key=lambda item: (-len(item[1]), item[0]))
    return "".join(f"{len(group):5} {name}  {group[0].path}:{group[0].line}\n" for name, group in ranked)


def _write_words() -> str:
    words = sorted(list_words(list_python_files(ROOT, PACKAGES)).difference(REPLACED_WORDS))
    lines: dict[str, list[str]] = {}
    for word in words:
        lines.setdefault(word[0], []).append(word)
    glossary = ROOT / GLOSSARY
    text = "".join(f"{fill(' '.join(group), _LINE_LENGTH)}\n" for group in lines.values())
    glossary.write_text(WORD_LIST.sub(text, glossary.read_text(), count=1))
    return f"{len(words)} words\n"


def main() -> None:
    """Rewrite the baseline or the word list, or print a report."""
    parser = argparse.ArgumentParser(description="Rewrite baseline.toml.")
    parser.add_argument("--accept-new", action="store_true", help="accept more breaches than recorded")
    parser.add_argument("--report", metavar="RULE", choices=RULE_IDS, help="print the breaches of a rule by name")
    parser.add_argument("--words", action="store_true", help="rewrite the list of words in the glossary")
    options = parser.parse_args()
    if options.words:
        sys.stdout.write(_write_words())
        return
    all_breaches = [*find_breaches_of_names(ROOT), *find_breaches_of_layout(ROOT), *find_breaches_of_prose(ROOT)]
    breaches = drop_exceptions(all_breaches, read_exceptions())
    if options.report:
        sys.stdout.write(_format_report(options.report, breaches))
    else:
        sys.stdout.write(_write_baseline(breaches, accepts_new=options.accept_new))


if __name__ == "__main__":
    main()
