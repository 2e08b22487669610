"""`python -m tests.e2e_aws`: the steps against a real account; `make e2e-aws CLUSTER=… REGION=… CONFIRM=yes`."""

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.e2e_aws.aws_environment import AwsEnvironment
from tests.e2e_aws.budget import DEFAULT_MAX_COST_USD
from tests.e2e_aws.ledger import LEDGER_NAME, Ledger, LedgerDocument, load_ledger
from tests.e2e_aws.plan import compute_max_usd, render_plan
from tests.e2e_aws.preflight import list_refusals
from tests.e2e_aws.report import build_report, write_report
from tests.e2e_aws.results import StepResult
from tests.e2e_aws.run import clean_up, record_run, run_steps
from tests.e2e_aws.steps.registry import select_steps
from tests.e2e_aws.steps.step import Step

EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


def main(words: Sequence[str] | None = None) -> int:
    """Print the plan, and with --confirm yes run it; return the exit code."""
    parser = _build_parser()
    args = parser.parse_args(words)
    try:
        steps = select_steps(name for name in args.steps.split(",") if name)
    except ValueError as error:
        parser.error(str(error))
    if args.clean:
        return _clean_unfinished_run(args.folder)
    print_line(render_plan(steps, args.cluster, args.region, args.idle_minutes))
    if args.list:
        return 0
    if not args.cluster or not args.region:
        parser.error("CLUSTER and REGION are required: make e2e-aws CLUSTER=NAME REGION=us-east-1 CONFIRM=yes")
    total = compute_max_usd(steps)
    if total > args.max_cost:
        print_line(
            f"refused: the maximum cost ${total:.2f} is above ${args.max_cost:.2f}: raise MAX_COST, or set STEPS"
        )
        return EXIT_USAGE
    if args.confirm != "yes":
        print_line("nothing was created: add CONFIRM=yes to run it")
        return EXIT_USAGE
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return _run(args, steps)


def print_line(text: str) -> None:
    """Print *text* at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e_aws", description=__doc__)
    parser.add_argument("--cluster", default="", help="name of the EKS cluster")
    parser.add_argument("--region", default="", help="region of the cluster")
    parser.add_argument("--confirm", default="", metavar="yes", help="create what the plan lists")
    parser.add_argument("--steps", default="", help="ids of steps, separated by commas; default: all")
    parser.add_argument("--idle-minutes", type=int, default=60, help="length of the idle period; default: 60")
    parser.add_argument("--max-cost", type=float, default=DEFAULT_MAX_COST_USD, help="in USD; default: %(default)s")
    parser.add_argument("--folder", type=Path, default=Path(), help="folder of the ledger and the result")
    parser.add_argument("--list", action="store_true", help="print the steps and their cost only")
    parser.add_argument("--clean", action="store_true", help="remove what an unfinished run has created")
    return parser


def _run(args: argparse.Namespace, steps: Sequence[Step]) -> int:
    if (args.folder / LEDGER_NAME).exists() and _clean_unfinished_run(args.folder):
        return 1
    started_at = datetime.now(UTC)
    run_id = f"{started_at:%Y%m%d-%H%M%S}"
    document = LedgerDocument(cluster=args.cluster, region=args.region, run_id=run_id)
    ledger = Ledger(args.folder / LEDGER_NAME, document)
    with tempfile.TemporaryDirectory(prefix="joiner-e2e-aws-") as folder:
        environment = AwsEnvironment(args.cluster, args.region, run_id, ledger=ledger, folder=Path(folder))
        environment.idle_minutes = args.idle_minutes
        refusals = list_refusals(environment)
        for refusal in refusals:
            print_line(f"refused: {refusal}")
        if refusals:
            return EXIT_USAGE
        kubernetes = environment.get_client("eks").describe_cluster(name=args.cluster)["cluster"]["version"]
        record_run(environment)
        results: list[StepResult] = []
        is_interrupted = False
        try:
            run_steps(environment, steps, results, print_line)
        except KeyboardInterrupt:
            is_interrupted = True
            print_line("interrupted")
        finally:
            environment.stop()
            remains = clean_up(environment, print_line)
    report = build_report(
        started_at=started_at,
        ended_at=datetime.now(UTC),
        cluster=args.cluster,
        region=args.region,
        environment="AWS",
        kubernetes=kubernetes,
        max_cost_usd=compute_max_usd(steps),
        results=results,
        remains=remains,
    )
    paths = write_report(report, args.folder)
    print_line(f"written: {', '.join(map(str, paths))}")
    if is_interrupted:
        return EXIT_INTERRUPTED
    return 0 if report.is_successful else 1


def _clean_unfinished_run(folder: Path) -> int:
    """Remove what the ledger in *folder* lists; return 1 if something remains."""
    try:
        ledger = load_ledger(folder / LEDGER_NAME)
    except ValueError as error:
        print_line(f"the ledger cannot be read: {error}")
        return 1
    if ledger is None:
        print_line("no unfinished run")
        return 0
    document = ledger.document
    print_line(f"unfinished run {document.run_id} on cluster {document.cluster} in {document.region}")
    with tempfile.TemporaryDirectory(prefix="joiner-e2e-aws-") as temporary_folder:
        environment = AwsEnvironment(
            document.cluster, document.region, document.run_id, ledger=ledger, folder=Path(temporary_folder)
        )
        return 1 if clean_up(environment, print_line) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print_line("interrupted during the cleanup: make e2e-aws-clean removes the rest")
        sys.exit(EXIT_INTERRUPTED)
