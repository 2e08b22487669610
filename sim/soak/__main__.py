"""Simulate weeks of clusters with several policies, and compare cost and evictions.

python -m sim.soak --world mixed --seeds 1-3 --policy default,never,price=0.001,0.01 --jobs 2 --results weeks.jsonl
python -m sim.soak --report weeks.jsonl --plot docs/weeks.svg
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from shared.errors import Invalid
from sim.soak.policies import POLICIES, SoakPolicy, parse_policies, with_options
from sim.soak.report.plot import render_plot
from sim.soak.report.results import SoakRecord, append_records, read_records
from sim.soak.report.summary import SoakSummary
from sim.soak.report.table import format_table
from sim.soak.soak_runner import SoakTask, list_tasks, run_series
from sim.soak.worlds.world_catalog import WORLDS


def main(arguments: list[str] | None = None) -> int:
    """Run the weeks that are missing in the results, print the table, and return 1 if a week failed, else 0."""
    options = parse_arguments(arguments)
    records = read_records(options.report) if options.report is not None else run_missing_tasks(options)
    if options.output == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(records)).decode() + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in format_table(records))
    if options.plot is not None:
        options.plot.write_text(render_plot(records))
    weeks = [record for record in records if isinstance(record, SoakSummary)]
    sys.stderr.writelines(
        f"{week.world} {week.seed} {week.policy}: {text}\n" for week in weeks for text in week.examples
    )
    return int(any(week.has_failed for week in weeks))


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    """Parse the command line; exit with an error if a world, policy or setting does not exist."""
    parser = argparse.ArgumentParser(
        prog="python -m sim.soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--world", default="mixed", help=f"{', '.join(WORLDS)}; several with commas; all")
    parser.add_argument("--policy", default="default", help=f"{', '.join(POLICIES)}, price=USD,USD")
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--seeds", "--seed", default="1", help="numbers and ranges: 1,3 or 1-3")
    parser.add_argument("--size", type=float, default=1.0, help="the part of the usual pods that there are")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting")
    parser.add_argument(
        "--annotate", action="append", default=[], metavar="NODEPOOL:KEY=VALUE", help="NODEPOOL can be *"
    )
    parser.add_argument("--bounds", action="store_true", help="also compute a lower bound for each day (slow)")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--results", type=Path, metavar="FILE", help="append results; weeks in it are not run again")
    parser.add_argument("--report", type=Path, metavar="FILE", help="run nothing; print the results in FILE")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="where an SVG goes")
    options = parser.parse_args(arguments)
    try:
        options.worlds = parse_worlds(options.world)
        options.seeds = parse_seeds(options.seeds)
        options.policies = parse_options(options.policy, options.set, options.annotate)
    except (ValueError, Invalid) as error:
        parser.error(str(error))
    return options


def parse_worlds(text: str) -> list[str]:
    """Parse names of worlds.

    Raises:
        ValueError: there is no such world.
    """
    names = list(WORLDS) if text == "all" else [name.strip() for name in text.split(",")]
    for name in names:
        if name not in WORLDS:
            raise ValueError(f"world {name}: write {', '.join(WORLDS)} or all")
    return names


def parse_seeds(text: str) -> list[int]:
    """Parse numbers and ranges: ``1-3,7`` are 1, 2, 3 and 7.

    Raises:
        ValueError: a part is neither.
    """
    seeds: list[int] = []
    for part in text.split(","):
        first, separator, last = part.partition("-")
        if not first.isdecimal() or (separator and not last.isdecimal()):
            raise ValueError(f"seeds {text}: write numbers and ranges like 1-3,7")
        seeds += range(int(first), int(last or first) + 1)
    return seeds


def parse_options(
    policy_text: str, setting_texts: Sequence[str], annotation_texts: Sequence[str]
) -> tuple[SoakPolicy, ...]:
    """Return the policies with the settings and annotations of the command line.

    Raises:
        ValueError: a policy, setting or annotation cannot be parsed.
        Invalid: a setting does not exist.
    """
    settings: dict[str, str] = {}
    for text in setting_texts:
        key, separator, value = text.partition("=")
        if not separator:
            raise ValueError(f"--set {text}: write KEY=VALUE")
        settings[key] = value
    annotations = [_parse_annotation(text) for text in annotation_texts]
    policies = tuple(with_options(policy, settings, annotations) for policy in parse_policies(policy_text))
    for policy in policies:
        policy.build_settings()
    return policies


def _parse_annotation(text: str) -> tuple[str, str, str]:
    key_text, separator, value = text.partition("=")
    pool, colon, key = key_text.partition(":")
    if not separator or not colon:
        raise ValueError(f"--annotate {text}: write NODEPOOL:KEY=VALUE")
    return pool, key, value


def run_missing_tasks(options: argparse.Namespace) -> list[SoakRecord]:
    """Run the tasks that have no record yet; return the records of all tasks in their order."""
    tasks = list(
        list_tasks(
            options.worlds,
            options.seeds,
            options.policies,
            days=options.days,
            size=options.size,
            has_bounds=options.bounds,
        )
    )
    stored_records = read_records(options.results) if options.results is not None else []
    record_by_key = {record.key: record for record in stored_records}
    missing_tasks: list[SoakTask] = [task for task in tasks if task.key not in record_by_key]

    def add_record(record: SoakRecord) -> None:
        record_by_key[record.key] = record
        if options.results is not None:
            append_records(options.results, (record,))
        remaining = sum(task.key not in record_by_key for task in tasks)
        sys.stderr.write(f"ended: {' '.join(map(str, record.key))} ({record.cpu_seconds:.0f}s); {remaining} left\n")

    run_series(missing_tasks, options.jobs, add_record)
    return [record_by_key[task.key] for task in tasks]


if __name__ == "__main__":
    sys.exit(main())
