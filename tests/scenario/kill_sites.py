"""The places at which a handler calls the outside, and plays in which it dies at one of them.

Two plays: the classic one, in which whoever calls for the first time at a place dies there; and one in which a smaller
node replaces a larger: whoever writes something for the command dies behind that, each time anew, and so does whoever
writes at a place that the classic play does not know.

Run as a program it writes `kill_sites.txt` and `kill_sites_swap.txt` anew from recorded plays.
"""

import sys
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final

import msgspec

from shared.model.commands import Standing
from shared.model.labels import DISRUPTED_TAINT
from shared.ports import Row
from sim.chaos.sites import place_of
from sim.faults import Call, Killed
from sim.measure import Tally, measured
from sim.play import Moment, Played, Stage
from sim.scenario import read_scenario

FOLDER: Final = Path(__file__).parent
CLASSIC: Final = FOLDER.parents[1] / "examples" / "scenarios" / "classic.yaml"
SWAP: Final = FOLDER / "swap.yaml"
SITES: Final = FOLDER / "kill_sites.txt"
SWAP_SITES: Final = FOLDER / "kill_sites_swap.txt"
FEW: Final = tuple(f"{family}5.{size}" for family in "cmr" for size in ("large", "xlarge", "2xlarge"))
READS: Final = frozenset(
    (
        "describe_instances",
        "instance_statuses",
        "cluster",
        "get",
        "images",
        "instance_types",
        "keys",
        "list",
        "offerings",
        "on_demand",
    )
) | {"parameter", "read", "rows", "security_groups", "spot_prices", "subnets", "watch"}
"""Who dies behind one of these dies before the next call: only one of the two is a place of its own."""
PASSING: Final = ("costPerHour", "failedCalls", "problems")
"""What is not the state of the world: tallies, and the price of the minute in which EC2 chose."""


def site_of(call: Call) -> str:
    """Answer the place of *call*: function, port, method and what kind of thing it is about, before or after.

    >>> site_of(Call(port="kube", method="patch", detail="/api/v1/nodes/a/status", when="before", who="x-1"))
    'x kube.patch /api/v1/nodes/* before'
    """
    return f"{place_of(call)} {call.when}"


def recorded() -> tuple[str, ...]:
    """Answer every site of a play in which nobody dies, sorted."""
    met: set[str] = set()

    def meet(call: Call) -> None:
        if call.when == "before" or call.method not in READS:
            met.add(site_of(call))

    _play(CLASSIC, meet)
    return tuple(sorted(met))


def recorded_swap() -> tuple[str, ...]:
    """Answer how often there is a call behind which somebody may die in a play of the swap, as ``site #number``.

    From the moment at which the node becomes too large: all writes of disrupt, and those of others at new places.
    """
    counts: Counter[str] = Counter()
    elsewhere = set(known())

    def meet(call: Call) -> None:
        site = site_of(call)
        is_write = call.when == "after" and call.method not in READS and not _is_routine(call)
        if is_write and (call.who.startswith("disrupt") or site not in elsewhere):
            counts[site] += 1

    _play(SWAP, meet, late=True)
    return tuple(sorted(f"{site} #{number}" for site, count in counts.items() for number in range(1, count + 1)))


def known(sites: Path = SITES) -> tuple[str, ...]:
    """Answer the sites in a file."""
    return tuple(sites.read_text().splitlines())


class Killer:
    """Kills whoever calls at *site* for the *number*th time, once; *late*: from when the second act has begun."""

    def __init__(self, site: str, number: int = 1, *, late: bool = False) -> None:
        """Lie in wait."""
        self._site, self._left = site, number
        self.late, self.struck = late, False

    def __call__(self, call: Call) -> None:
        """Let *call* pass, or not.

        Raises:
            Killed: this is the one.
        """
        if site_of(call) == self._site:
            self._left -= 1
            if self._left == 0:
                self.struck = True
                raise Killed(self._site)


REST: Final = timedelta(minutes=2)
"""So long after a play what it began comes to its end: pods stay on an old machine until their new one is ready."""


def final_state(killer: Killer | None, path: Path = CLASSIC) -> tuple[Played, dict[str, float], list[str]]:
    """Answer the play in which *killer* lies in wait, what is measured at its end, and what was left over."""
    stage, played = _play(path, killer or _spare, late=killer is not None and killer.late)
    world = stage.world
    world.run(REST)
    claimed = {one.get("status", {}).get("providerID") for one in world.live.api.list("nodeclaims.karpenter.sh")}
    living = {one.provider_id for one in world.living()}
    left = [f"instance {one} without claim" for one in sorted(living - claimed)]
    left += [f"claim of {one}, which is no more" for one in sorted(claimed - living, key=str)]
    left += [
        f"group {row.name} without answer" for row in world.table.rows("launch-group") if '"result":null' in row.body
    ]
    left += [f"launched twice for {name}" for name in _doubled(stage)]
    left += [f"command {row.name} without end" for row in world.table.rows("command") if _is_open(row)]
    left += [f"taint on {name}" for name in _tainted(stage)]
    ends = {name: value for name, value in measured(world, Tally()).items() if name not in PASSING}
    return played, ends, left


def _doubled(stage: Stage) -> list[str]:
    owners: dict[str, list[str]] = {}
    for one in stage.world.cloud.instances():
        owner = one.tag("karpenter.sh/nodeclaim")
        if owner:
            owners.setdefault(owner, []).append(one.instance_id)
    return sorted(name for name, ids in owners.items() if len(ids) > 1)


def _is_open(row: Row) -> bool:
    return msgspec.json.decode(row.body, type=Standing).is_open


def _tainted(stage: Stage) -> list[str]:
    return [
        node["metadata"]["name"]
        for node in stage.world.live.api.list("nodes")
        if any(taint["key"] == DISRUPTED_TAINT for taint in node["spec"].get("taints", []))
    ]


def _is_routine(call: Call) -> bool:
    """Whether *call* is one that every cycle makes, whatever it decides."""
    return call.port == "bucket" or (call.port == "table" and call.detail == "lease")


def _play(path: Path, tap: Callable[[Call], None], *, late: bool = False) -> tuple[Stage, Played]:
    scenario = read_scenario(path)
    begun: list[Moment] = []

    def hear(moment: Moment) -> None:
        if moment.who == "act" and moment.what == scenario.acts[-1].name:
            begun.append(moment)

    stage = Stage(scenario, scenario.seed, hear)
    cloud = stage.world.cloud
    cloud.types = {name: cloud.types[name] for name in FEW}  # a small catalogue: the play is played hundreds of times
    cloud.offerings = tuple((name, zone) for name, zone in cloud.offerings if name in FEW)
    strikes = stage.world.tap

    def both(call: Call) -> None:
        if begun or not late:
            tap(call)
        strikes(call)

    stage.world.tap = both
    return stage, stage.play()


def _spare(call: Call) -> None:
    del call


if __name__ == "__main__":
    SITES.write_text("\n".join(recorded()) + "\n")
    SWAP_SITES.write_text("\n".join(recorded_swap()) + "\n")
    sys.stdout.write(f"{len(known())} sites, {len(known(SWAP_SITES))} in the swap\n")
