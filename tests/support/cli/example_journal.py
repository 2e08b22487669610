"""Write `examples/journal` anew: `python -m tests.support.cli.example_journal`.

The journal, the decision records, the catalogs and the cost ledger of a simulated hour, as a deployment stores them in
its bucket. To keep the files small, EC2 offers few instance types, most cycles have no decision record, and `catalog`
has one cycle.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Final

from sim.scenarios.runner import ScenarioRunner
from sim.scenarios.scenario import read_scenario
from tests.support.cli.journal_plays import unpack_bucket
from tests.support.plays import narrow

SCENARIO: Final = Path(__file__).with_suffix(".yaml")
FOLDER: Final = Path(__file__).parents[3] / "examples" / "journal"
MAX_SIZE_BYTES: Final = 300_000


def write_example_journal(folder: Path) -> None:
    """Run the scenario and write its bucket into *folder*.

    Raises:
        ValueError: an expectation of the scenario was not met.
    """
    runner = ScenarioRunner(read_scenario(SCENARIO), 7, lambda _: None)
    narrow(runner.world)
    result = runner.run_scenario()
    if not result.passed:
        raise ValueError("; ".join(f"{act.name}: {', '.join(act.failures)}" for act in result.acts if act.failures))
    unpack_bucket(runner.world.bucket, folder)
    shutil.rmtree(folder / "market")
    catalog_paths = sorted((folder / "journal" / "catalog").rglob("*.json"))[1:]
    for path in (folder / "journal").rglob("*.json"):
        entry = json.loads(path.read_bytes())
        has_command = any(note["kind"] == "Command" for note in entry.get("notes", ()))
        if entry["function"] == "lifecycle" or (entry["function"] == "disrupt" and not has_command):
            entry.pop("snapshot", "")
            path.write_text(json.dumps(entry, separators=(",", ":")))
    for path in catalog_paths:
        path.unlink()
    entries = [json.loads(path.read_bytes()) for path in (folder / "journal").rglob("*.json")]
    record_keys = {entry.get("snapshot") for entry in entries}
    for path in (folder / "snapshot").iterdir():
        if f"snapshot/{path.name}" not in record_keys:
            path.unlink()


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    write_example_journal(FOLDER)
    sys.stdout.write(f"{sum(path.stat().st_size for path in FOLDER.rglob('*') if path.is_file()):,} bytes\n")
