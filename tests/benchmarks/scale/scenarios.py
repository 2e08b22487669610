"""The scenarios by name, and their runner: each starts from a copy of the same filled world."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Final

import msgspec

from tests.benchmarks.scale import disruption_scenarios, steady_scenarios
from tests.benchmarks.scale.results import Measure, ScenarioResult, summarize_functions
from tests.benchmarks.scale.scale_world import ScaleWorld
from tests.benchmarks.scale.seeding import Fill, build_filled_world


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario."""

    purpose: str
    run: Callable[[ScaleWorld], tuple[Measure, ...]]
    """Changes the world and returns measured values; the invocations that it leaves in the world are reported."""
    fill: Fill = "full"


SCENARIOS: Final[dict[str, Scenario]] = {
    "cold-snapshot": Scenario(
        purpose="the first run of each function in a new container", run=steady_scenarios.measure_cold_snapshot
    ),
    "quiet-tick": Scenario(
        purpose="the next run of each function; nothing has changed", run=steady_scenarios.measure_quiet_tick
    ),
    "burst": Scenario(purpose="2 pending pods per node, until CreateFleet", run=steady_scenarios.measure_burst),
    "sweep": Scenario(
        purpose="disrupt evaluates all nodes; none can be consolidated", run=disruption_scenarios.measure_sweep
    ),
    "drift": Scenario(
        purpose="the EC2NodeClass changes, so that all nodes drift", run=disruption_scenarios.measure_drift
    ),
    "interruptions": Scenario(
        purpose="Spot interruptions of a fifth of the nodes within a minute, until all are tainted",
        run=disruption_scenarios.measure_interruptions,
    ),
}


def run_scenarios(
    names: Sequence[str], node_count: int, write_progress: Callable[[str], None]
) -> Iterator[ScenarioResult]:
    """Run the scenarios *names* with *node_count* nodes, in the order of `SCENARIOS`."""
    for fill in dict.fromkeys(SCENARIOS[name].fill for name in SCENARIOS if name in names):
        write_progress(f"{node_count} nodes: building a world of which the nodes are {fill}")
        world = build_filled_world(node_count, fill)
        for name in SCENARIOS:
            if name in names and SCENARIOS[name].fill == fill:
                write_progress(f"{node_count} nodes: {name}")
                yield _run_in_copy(name, world, node_count)
        world.restart_containers()


def _run_in_copy(name: str, world: ScaleWorld, node_count: int) -> ScenarioResult:
    """Run the scenario in a forked process, so that the next scenario starts from the same world.

    Raises:
        RuntimeError: the process ended without a result.
    """
    receiver, sender = Pipe(duplex=False)
    sys.stdout.flush()
    process_id = os.fork()
    if process_id == 0:
        _run_and_exit(name, world, node_count, sender)
    sender.close()
    try:
        result: ScenarioResult | str = receiver.recv()
    except EOFError:
        result = "the process ended without a result"
    os.waitpid(process_id, 0)
    if isinstance(result, str):
        raise RuntimeError(f"{name} with {node_count} nodes: {result}")  # noqa: TRY004 - the error of the process
    return result


def _run_and_exit(name: str, world: ScaleWorld, node_count: int, sender: Connection) -> None:
    """Run the scenario, send the result or the error, and end the process without its parent's exit handlers."""
    exit_code = 1
    try:
        measures = SCENARIOS[name].run(world)
        sender.send(
            ScenarioResult(
                scenario=name,
                nodes=node_count,
                pods=len(world.cluster.list_pods()),
                functions=summarize_functions(world, world.invocations),
                measures=measures,
            )
        )
        exit_code = 0
    except Exception as error:  # noqa: BLE001 - the parent reports it
        sender.send(f"{type(error).__name__}: {error}")
    finally:
        world.restart_containers()
        sender.close()
        os._exit(exit_code)
