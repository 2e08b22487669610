"""The call sites at which a handler calls a port, and plays in which the handler dies at one of them.

Two plays: in the classic play a handler dies at its first call at a site. In the swap play, in which a smaller node
replaces a larger one, a handler dies after each write for the command, and after each write at a site that the classic
play does not have.

Run as a program, it rewrites `kill_sites.txt` and `kill_sites_swap.txt` from recorded plays.
"""

import sys
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final, Protocol

import msgspec

from shared.model.core.labels import DISRUPTED_TAINT
from shared.model.decisions.command import CommandState
from shared.ports.storage import TableRow
from sim.fault_simulation.events.call_sites import get_call_site
from sim.fault_tap import Killed, PortCall
from sim.scenarios.runner import ScenarioResult, ScenarioRunner, TimelineEntry
from sim.scenarios.scenario import read_scenario
from sim.world.measurements import ActCounts, compute_measures

FOLDER: Final = Path(__file__).parent
CLASSIC: Final = FOLDER.parents[1] / "examples" / "scenarios" / "classic.yaml"
SWAP: Final = FOLDER / "swap.yaml"
SITES: Final = FOLDER / "kill_sites.txt"
SWAP_SITES: Final = FOLDER / "kill_sites_swap.txt"
INSTANCE_TYPES: Final = tuple(f"{family}5.{size}" for family in "cmr" for size in ("large", "xlarge", "2xlarge"))
READS: Final = frozenset(
    (
        "describe_cluster",
        "describe_images",
        "describe_instance_statuses",
        "describe_instance_types",
        "describe_instances",
        "describe_launch_group",
        "describe_offerings",
        "describe_security_groups",
        "describe_spot_prices",
        "describe_subnets",
        "get",
        "get_on_demand_prices",
        "get_parameter",
        "list",
        "list_keys",
        "list_rows",
        "read",
        "watch",
    )
)
"""Who dies behind one of these dies before the next call: only one of the two is a place of its own."""
PASSING: Final = ("usdPerHour", "failedCalls", "problems")
"""What is not the state of the world: tallies, and the price of the minute in which EC2 chose."""


def format_site(call: PortCall) -> str:
    """Return the site of *call*: function, port, method and object kind, and whether it is before or after the call.

    >>> path = "/api/v1/nodes/a/status"
    >>> format_site(PortCall(port="kube", method="patch", detail=path, phase="before", world_name="x-1"))
    'x kube.patch /api/v1/nodes/* before'
    """
    return f"{get_call_site(call)} {call.phase}"


def record_sites() -> tuple[str, ...]:
    """Return every site of a play without deaths, sorted."""
    met: set[str] = set()

    def add_site(call: PortCall) -> None:
        if call.phase == "before" or call.method not in READS:
            met.add(format_site(call))

    _play(CLASSIC, add_site)
    return tuple(sorted(met))


def record_swap_sites() -> tuple[str, ...]:
    """Return each call of a swap play after which a handler may die, as ``site #number``.

    Counted after the node becomes too large: all writes of disrupt, and writes of other functions at new sites.
    """
    counts: Counter[str] = Counter()
    elsewhere = set(read_sites())

    def count_site(call: PortCall) -> None:
        site = format_site(call)
        is_write = call.phase == "after" and call.method not in READS and not _is_routine(call)
        if is_write and (call.world_name.startswith("disrupt") or site not in elsewhere):
            counts[site] += 1

    _play(SWAP, count_site, late=True)
    return tuple(sorted(f"{site} #{number}" for site, count in counts.items() for number in range(1, count + 1)))


def read_sites(sites: Path = SITES) -> tuple[str, ...]:
    """Read the sites in a file."""
    return tuple(sites.read_text().splitlines())


class Killer:
    """Kill the handler at its *number*th call at *site*, once; *late*: count only after the second act has begun."""

    def __init__(self, site: str, number: int = 1, *, late: bool = False) -> None:
        """Lie in wait."""
        self._site, self._remaining_calls = site, number
        self.late, self.struck = late, False

    def __call__(self, call: PortCall) -> None:
        """Let *call* pass, or not.

        Raises:
            Killed: this is the one.
        """
        if format_site(call) == self._site:
            self._remaining_calls -= 1
            if self._remaining_calls == 0:
                self.struck = True
                raise Killed(self._site)


class SecondKiller(Killer):
    """Kill the handler that responds to a death at *first_site*: at its first call at *site*, once."""

    def __init__(self, first_site: str, site: str) -> None:
        """Lie in wait at both."""
        super().__init__(site)
        self._first = Killer(first_site)

    def __call__(self, call: PortCall) -> None:
        """Let *call* pass, or not.

        Raises:
            Killed: this is one of the two.
        """
        if self._first.struck:
            super().__call__(call)
        else:
            self._first(call)


SETTLE_TIME: Final = timedelta(minutes=2)
"""How long commands take to complete after a play: pods stay on an old node until its replacement is ready."""


class LateTap(Protocol):
    """A tap that may count only after the second act has begun."""

    late: bool

    def __call__(self, call: PortCall) -> None:
        """See *call*; kill the handler by an exception."""


def compute_final_state(
    killer: LateTap | None, path: Path = CLASSIC
) -> tuple[ScenarioResult, dict[str, float], list[str]]:
    """Return the play with *killer* in place, the measurements at its end, and the objects left over."""
    stage, played = _play(path, killer or _ignore_call, late=killer is not None and killer.late)
    world = stage.world
    world.run(SETTLE_TIME)
    claimed = {claim.get("status", {}).get("providerID") for claim in world.cluster.api.list("nodeclaims.karpenter.sh")}
    living = {instance.provider_id for instance in world.list_active_instances()}
    leftovers = [f"instance {provider_id} without claim" for provider_id in sorted(living - claimed)]
    leftovers += [f"claim of {provider_id}, which is no more" for provider_id in sorted(claimed - living, key=str)]
    leftovers += [
        f"group {row.name} without answer"
        for row in world.table.list_rows("launch-group")
        if '"result":null' in row.body
    ]
    leftovers += [f"launched twice for {name}" for name in _list_duplicate_launches(stage)]
    leftovers += [f"command {row.name} without end" for row in world.table.list_rows("command") if _is_open(row)]
    leftovers += [f"taint on {name}" for name in _list_tainted_nodes(stage)]
    ends = {name: value for name, value in compute_measures(world, ActCounts()).items() if name not in PASSING}
    return played, ends, leftovers


def _list_duplicate_launches(stage: ScenarioRunner) -> list[str]:
    owners: dict[str, list[str]] = {}
    for instance in stage.world.cloud.instances.describe_all():
        owner = instance.get_tag("karpenter.sh/nodeclaim")
        if owner:
            owners.setdefault(owner, []).append(instance.instance_id)
    return sorted(name for name, ids in owners.items() if len(ids) > 1)


def _is_open(row: TableRow) -> bool:
    return msgspec.json.decode(row.body, type=CommandState).is_open


def _list_tainted_nodes(stage: ScenarioRunner) -> list[str]:
    return [
        node["metadata"]["name"]
        for node in stage.world.cluster.api.list("nodes")
        if any(taint["key"] == DISRUPTED_TAINT for taint in node["spec"].get("taints", []))
    ]


def _is_routine(call: PortCall) -> bool:
    """Return whether every cycle makes *call*, independent of its decisions."""
    return call.port == "bucket" or (call.port == "table" and call.detail == "lease")


def _play(path: Path, tap: Callable[[PortCall], None], *, late: bool = False) -> tuple[ScenarioRunner, ScenarioResult]:
    scenario = read_scenario(path)
    last_act_starts: list[TimelineEntry] = []

    def record_act_start(moment: TimelineEntry) -> None:
        if moment.source == "act" and moment.message == scenario.acts[-1].name:
            last_act_starts.append(moment)

    stage = ScenarioRunner(scenario, scenario.seed, record_act_start)
    cloud = stage.world.cloud
    cloud.types = {
        name: cloud.types[name] for name in INSTANCE_TYPES
    }  # a small catalogue: the play is played hundreds of times
    cloud.offerings = tuple((name, zone) for name, zone in cloud.offerings if name in INSTANCE_TYPES)
    strikes = stage.world.tap

    def strike_and_tap(call: PortCall) -> None:
        if last_act_starts or not late:
            tap(call)
        strikes(call)

    stage.world.tap = strike_and_tap
    return stage, stage.run_scenario()


def _ignore_call(call: PortCall) -> None:
    del call


if __name__ == "__main__":
    SITES.write_text("\n".join(record_sites()) + "\n")
    SWAP_SITES.write_text("\n".join(record_swap_sites()) + "\n")
    sys.stdout.write(f"{len(read_sites())} sites, {len(read_sites(SWAP_SITES))} in the swap\n")
