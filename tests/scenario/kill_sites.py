"""The places at which a handler calls the outside, and plays in which it dies at one of them.

Run as a program it writes `kill_sites.txt` anew from a recorded play.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from sim.faults import Call, Killed
from sim.measure import Tally, measured
from sim.play import Moment, Played, Stage
from sim.scenario import read_scenario

FOLDER: Final = Path(__file__).parent
PLAY: Final = FOLDER.parents[1] / "examples" / "scenarios" / "classic.yaml"
SITES: Final = FOLDER / "kill_sites.txt"
FEW: Final = tuple(f"{family}5.{size}" for family in "cmr" for size in ("large", "xlarge", "2xlarge"))
READS: Final = frozenset(
    ("describe_instances", "cluster", "get", "images", "instance_types", "keys", "list", "offerings", "on_demand")
) | {"parameter", "read", "rows", "security_groups", "spot_prices", "subnets", "watch"}
"""Who dies behind one of these dies before the next call: only one of the two is a place of its own."""
PASSING: Final = ("costPerHour", "failedCalls", "problems")
"""What is not the state of the world: tallies, and the price of the minute in which EC2 chose."""
_OBJECT: Final = re.compile(r"(/(?:nodes|nodeclaims|nodepools|ec2nodeclasses|pods|events|namespaces))/[^/]+")


def site_of(call: Call) -> str:
    """Answer the place of *call*: function, port, method and what kind of thing it is about, before or after.

    >>> site_of(Call(port="kube", method="patch", detail="/api/v1/nodes/a/status", when="before", who="x-1"))
    'x kube.patch /api/v1/nodes/* before'
    """
    about = ""
    if call.method in ("list", "watch"):
        about = ""  # a snapshot is many of them in a row, and nothing happens between them
    elif call.port == "kube":
        about = _OBJECT.sub(r"\1/*", call.detail).removesuffix("/status")
    elif call.port in ("table", "mailbox"):
        about = call.detail
    elif call.port == "bucket":
        about = call.detail.partition("/")[0]
    return " ".join(
        part for part in (call.who.partition("-")[0], f"{call.port}.{call.method}", about, call.when) if part
    )


def recorded() -> tuple[str, ...]:
    """Answer every site of a play in which nobody dies, sorted."""
    met: set[str] = set()

    def meet(call: Call) -> None:
        if call.when == "before" or call.method not in READS:
            met.add(site_of(call))

    _play(meet)
    return tuple(sorted(met))


def known() -> tuple[str, ...]:
    """Answer the sites in `kill_sites.txt`."""
    return tuple(SITES.read_text().splitlines())


class Killer:
    """Kills whoever calls at *site* for the *number*th time, once."""

    def __init__(self, site: str, number: int) -> None:
        """Lie in wait."""
        self._site, self._left = site, number
        self.struck = False

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


def final_state(killer: Killer | None) -> tuple[Played, dict[str, float], list[str]]:
    """Answer the play in which *killer* lies in wait, what is measured at its end, and what was left over."""
    stage, played = _play(killer or _spare)
    world = stage.world
    claimed = {one.get("status", {}).get("providerID") for one in world.live.api.list("nodeclaims.karpenter.sh")}
    living = {one.provider_id for one in world.living()}
    left = [f"instance {one} without claim" for one in sorted(living - claimed)]
    left += [f"claim of {one}, which is no more" for one in sorted(claimed - living, key=str)]
    left += [
        f"group {row.name} without answer" for row in world.table.rows("launch-group") if '"result":null' in row.body
    ]
    left += [f"launched twice for {name}" for name in _doubled(stage)]
    ends = {name: value for name, value in measured(world, Tally()).items() if name not in PASSING}
    return played, ends, left


def _doubled(stage: Stage) -> list[str]:
    owners: dict[str, list[str]] = {}
    for one in stage.world.cloud.instances():
        owner = one.tag("karpenter.sh/nodeclaim")
        if owner:
            owners.setdefault(owner, []).append(one.instance_id)
    return sorted(name for name, ids in owners.items() if len(ids) > 1)


def _play(tap: Callable[[Call], None]) -> tuple[Stage, Played]:
    scenario = read_scenario(PLAY)
    stage = Stage(scenario, scenario.seed, _unheard)
    cloud = stage.world.cloud
    cloud.types = {name: cloud.types[name] for name in FEW}  # a small catalogue: the play is played hundreds of times
    cloud.offerings = tuple((name, zone) for name, zone in cloud.offerings if name in FEW)
    strikes = stage.world.tap

    def both(call: Call) -> None:
        tap(call)
        strikes(call)

    stage.world.tap = both
    return stage, stage.play()


def _spare(call: Call) -> None:
    del call


def _unheard(moment: Moment) -> None:
    del moment


if __name__ == "__main__":
    SITES.write_text("\n".join(recorded()) + "\n")
    sys.stdout.write(f"{len(known())} sites\n")
