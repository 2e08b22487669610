"""Draw a script from a seed: the initial objects, the user actions, and the faults."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from sim.fault_simulation.drawing.draw_faults import draw_faults
from sim.fault_simulation.drawing.draw_features import draw_feature_events, draw_features
from sim.fault_simulation.drawing.draw_user_actions import draw_user_actions
from sim.fault_simulation.drawing.random_draws import RandomDraws
from sim.fault_simulation.events.script import Script, ScriptSetup
from sim.fault_simulation.events.script_events import AnyEvent, CallFailure, Pause, Scale
from sim.fault_simulation.events.script_manifests import WORKLOADS

BASE_WORKLOADS: Final = tuple(sorted(WORKLOADS.keys() - {"store"}))
"""The workloads that every script has."""

SCHEDULED_VALUES: Final = ("paused=Launches", "paused=Underutilized,Drifted", "limits.cpu=8 consolidate-after=Never")


def draw_script(seed: int) -> Script:
    """Return the script of *seed*: 15 to 22 minutes of work, six kills, and up to eight other faults.

    Few seeds use optional features, with more events.
    """
    draws = RandomDraws(seed)
    length = draws.draw_integer(15, 22, "length") * 60
    setup = _draw_full_setup(draws, _draw_base_setup(draws))
    events = [
        *draw_user_actions(draws, length, setup),
        *draw_faults(draws, length, setup),
        *draw_feature_events(draws, length, setup.features),
    ]
    return Script(seed=seed, setup=setup, length_seconds=length, events=_sort_events(events))


def draw_brief_script(seed: int) -> Script:
    """Return a script of six minutes in which many launches fail: with lost responses, and superseded planners."""
    draws = RandomDraws(seed)
    events: list[AnyEvent] = []
    for index in range(6):
        name = draws.choose(BASE_WORKLOADS, "brief", index)
        replicas = draws.draw_integer(0, WORKLOADS[name][0], "scale", index)
        events.append(Scale(at=draws.draw_integer(0, 240, "brief", index, "at"), name=name, replicas=replicas))
    for index in range(2):
        at, lasts = draws.draw_integer(0, 200, "lost", index), draws.draw_integer(10, 60, "lasts", index)
        events.append(CallFailure(at=at, lasts=lasts, port="ec2", fault="lost", ratio=0.6, method="create_fleet"))
    for index in range(2):
        at, lasts = draws.draw_integer(0, 200, "pause", index), draws.draw_integer(61, 90, "held", index)
        site = f"provision table.write {draws.choose(('launch-group', 'ledger'), 'site', index)}"
        events.append(Pause(at=at, lasts=lasts, function="provision", nth=1, when="before", site=site))
    setup = replace(_draw_base_setup(draws), limit_cpu=draws.choose((8, 64), "limit"))
    return Script(seed=seed, setup=setup, length_seconds=360, events=_sort_events(events))


def _sort_events(events: Sequence[AnyEvent]) -> tuple[AnyEvent, ...]:
    return tuple(sorted(events, key=lambda event: (event.at, type(event).__name__, repr(event))))


def _draw_base_setup(draws: RandomDraws) -> ScriptSetup:
    return ScriptSetup(
        limit_cpu=draws.choose((10, 16, 64), "limit"),
        budget=draws.choose((1, 1, 2), "budget"),
        consolidate_after=draws.choose(("0s", "30s", "1m"), "after"),
        policy=draws.choose(("WhenEmptyOrUnderutilized", "WhenEmptyOrUnderutilized", "WhenEmpty"), "policy"),
        termination_grace_period=draws.choose(("", "", "5m"), "grace"),
        expire_after=draws.choose(("Never", "Never", "Never", "14m"), "expire"),
        allows_spot=draws.choose((True, True, False), "spot"),
        replicas=tuple((name, draws.draw_integer(0, WORKLOADS[name][0], "replicas", name)) for name in BASE_WORKLOADS),
        has_open_answers=True,
    )


def _draw_full_setup(draws: RandomDraws, base_setup: ScriptSetup) -> ScriptSetup:
    """Return *plain* with a random selection of the optional features."""
    store_replicas = ("store", draws.draw_integer(1, WORKLOADS["store"][0], "replicas", "store"))
    graceful_expiration = draws.choose(("", "", "3m", "6m"), "graceful")
    has_disks, has_static = draws.choose((True, False, False), "disks"), draws.choose((True, *[False] * 5), "static?")
    return replace(
        base_setup,
        replicas=(*base_setup.replicas, store_replicas) if has_disks else base_setup.replicas,
        budget_percent=draws.choose(("", "", "34%", "50%"), "percent"),
        closed_after_minutes=draws.choose((0, 0, 0, draws.draw_integer(6, 14, "closed at")), "closed"),
        rebalance_policy=draws.choose(("", "ignore", "cordon", "drain"), "rebalance"),
        second_pool_cpu=draws.choose((0, 0, 4, 8), "second"),
        has_static=has_static,
        static_replicas=draws.draw_integer(0, 2, "static") if has_static else 0,
        reserved_count=draws.choose((0, 0, 0, 2), "reserved"),
        has_agent=draws.choose((True, False, False), "agent"),
        reaction=draws.choose((*["tick"] * 6, *["watch"] * 4, "logs", "logs"), "reaction"),
        has_neighbor=draws.choose((True, False), "neighbour"),
        has_surge_drain=draws.choose((True, False), "surge"),
        zonal_shift=draws.choose(("off", "off", "on", "drain"), "zonal shift?"),
        expire_after="6m" if graceful_expiration else base_setup.expire_after,
        graceful_expiration=graceful_expiration,
        scheduled_values=draws.choose(("", "", *SCHEDULED_VALUES), "window"),
        spot_share_percent=draws.choose(("", "", "50"), "share") if base_setup.allows_spot else "",
        features=draw_features(draws),
    )
