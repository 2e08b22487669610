"""Draw the optional features of a script, the work that uses them, and the faults that only they have."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final, Literal

from sim.fault_simulation.drawing.random_draws import RandomDraws
from sim.fault_simulation.events.script_events import (
    AnyEvent,
    CallFailure,
    FailureKind,
    Kill,
    Port,
    Recreate,
    Release,
    Scale,
    When,
)
from sim.fault_simulation.events.script_manifests import ZONES
from sim.fault_simulation.features.feature_events import (
    BadRelease,
    DeviceJob,
    Gang,
    ImageDefect,
    OtherCluster,
    PartialCapacity,
    RefusedEvents,
    Request,
)
from sim.fault_simulation.features.feature_setup import FeatureSetup

FEATURE_RATIO: Final = 0.15
"""The share of the seeds with optional features: all others draw the same script as without them."""
FEATURE_SITES_FILE: Final = Path(__file__).with_name("feature_sites.txt")
"""The call sites that only scripts with optional features reach."""
IS_USED: Final = (True, True, False)
"""Each feature in two of three seeds with features."""
CANARIES_AND_AGES: Final = (
    ("nodes=1 soak=3m", ""),
    ("nodes=2 soak=5m", ""),
    ("nodes=1 soak=1m", "4m"),
    ("nodes=1 soak=10m", "2m"),
    ("", "4m"),
)
"""The annotations `joiner.dev/canary` and `joiner.dev/image-minimum-age`."""
GROUP_LIMITS: Final = (0.7, 1.5, 3.0)
"""In USD per hour: 3, 7 and 15 nodes of type m5.xlarge."""
DEFECTS: Final[tuple[ImageDefect | Literal[""], ...]] = ("dead", "dead", "restarts", "")
PHASES: Final[tuple[When, ...]] = ("before", "after")
FAILURES: Final[tuple[FailureKind, ...]] = ("throttled", "unreachable", "lost")
PROVISION_CLAIM_SITE: Final = "provision kube.create /apis/karpenter.sh/v1/nodeclaims"
"""Where the NodeClaims of a plan are created, one after the other."""


def draw_features(draws: RandomDraws) -> FeatureSetup:
    """Return the optional features of the seed: none for most seeds."""
    if draws.draw_ratio("features?") >= FEATURE_RATIO:
        return FeatureSetup()
    canary, minimum_age = draws.choose(CANARIES_AND_AGES, "images")
    has_images = draws.choose(IS_USED, "images?")
    features = FeatureSetup(
        has_gangs=draws.choose(IS_USED, "gangs?"),
        has_requests=draws.choose(IS_USED, "requests?"),
        has_devices=draws.choose(IS_USED, "devices?"),
        canary=canary if has_images else "",
        image_minimum_age=minimum_age if has_images else "",
        group_limit_usd_per_hour=draws.choose(GROUP_LIMITS, "group limit") if draws.choose(IS_USED, "group?") else 0.0,
        has_event_bus=draws.choose(IS_USED, "event bus?"),
    )
    return features if features.is_any_used else FeatureSetup(has_gangs=True)


def draw_feature_events(draws: RandomDraws, length: int, features: FeatureSetup) -> Iterator[AnyEvent]:
    """Yield the events of the optional features in the order of drawing; no other draw depends on them."""
    drawers: tuple[tuple[bool, Callable[[RandomDraws, int], Iterator[AnyEvent]]], ...] = (
        (features.has_gangs, _draw_gangs),
        (features.has_requests, _draw_requests),
        (features.has_devices, _draw_devices),
        (bool(features.canary or features.image_minimum_age), _draw_releases),
        (bool(features.group_limit_usd_per_hour), _draw_group_events),
        (features.has_event_bus, _draw_bus_faults),
        (features.is_any_used, _draw_kills),
    )
    for is_used, draw_events in drawers:
        if is_used:
            yield from draw_events(draws, length)


@cache
def load_feature_sites() -> tuple[str, ...]:
    """Return the call sites that only optional features reach."""
    return tuple(FEATURE_SITES_FILE.read_text().split("\n")[:-1]) if FEATURE_SITES_FILE.exists() else ()


def _draw_gangs(draws: RandomDraws, length: int) -> Iterator[AnyEvent]:
    """Yield one to three gangs; the first one early enough for its deadline."""
    for index in range(draws.draw_integer(1, 3, "gangs")):
        gang = Gang(
            at=draws.draw_integer(10, length - 300 if index else 120, "gang", index),
            name=f"gang-{index}",
            size=draws.draw_integer(2, 4, "gang size", index),
            seconds=draws.draw_integer(60, 400, "gang seconds", index) * draws.choose((0, 0, 1), "gang job?", index),
            is_in_one_zone=draws.choose((True, False, False), "gang zone", index),
        )
        yield gang
        yield from _draw_gang_event(draws, index, gang)


def _draw_gang_event(draws: RandomDraws, index: int, gang: Gang) -> Iterator[AnyEvent]:
    """Yield what happens to the gang: capacity for a part of it, a crash between its NodeClaims, a user, or nothing."""
    later = gang.at + draws.draw_integer(60, 280, "gang later", index)
    match draws.choose(("capacity", "capacity", "kill", "kill", "recreate", "scale", ""), "gang event", index):
        case "capacity":
            yield PartialCapacity(
                at=gang.at - 5,
                lasts=draws.choose((120, 400, 400 if index else 1080), "gang capacity", index),
                zone=draws.choose(ZONES, "gang capacity zone", index),
                free=draws.draw_integer(1, gang.size - 1, "gang free", index),
            )
        case "kill":
            nth = draws.draw_integer(1, gang.size, "gang kill", index)
            when: When = draws.choose(PHASES, "gang kill", index, "when")
            yield Kill(at=gang.at, function="provision", nth=nth, when=when, site=PROVISION_CLAIM_SITE)
        case "recreate" if not gang.seconds:
            yield Recreate(at=later, name=gang.name)
        case "scale" if not gang.seconds:
            yield Scale(at=later, name=gang.name, replicas=0)
        case _:
            pass


def _draw_requests(draws: RandomDraws, length: int) -> Iterator[AnyEvent]:
    for index in range(draws.draw_integer(1, 2, "requests")):
        at, pods = draws.draw_integer(10, length - 200, "request", index), draws.draw_integer(1, 3, "pods", index)
        lasts = draws.draw_integer(100, 600, "request lasts", index)
        is_used_early = draws.choose((True, False, False, False), "request early", index)
        yield Request(at=at, lasts=lasts, name=f"request-{index}", pods=pods, is_used_early=is_used_early)


def _draw_devices(draws: RandomDraws, length: int) -> Iterator[AnyEvent]:
    for index in range(draws.draw_integer(1, 2, "device jobs")):
        at, name = draws.draw_integer(10, length - 400, "device job", index), f"devices-{index}"
        yield DeviceJob(at=at, name=name, pods=draws.draw_integer(1, 3, "device pods", index))
        later = at + draws.draw_integer(120, 380, "devices later", index)
        if draws.choose((True, False), "devices recreate", index):
            yield Recreate(at=later, name=name)
        else:
            yield Scale(at=later, name=name, replicas=draws.draw_integer(0, 3, "devices scale", index))


def _draw_releases(draws: RandomDraws, length: int) -> Iterator[AnyEvent]:
    """Yield a release that may be defective early, and a good one later."""
    at = draws.draw_integer(10, 200, "release")
    defect = draws.choose(DEFECTS, "defect")
    yield BadRelease(at=at, defect=defect) if defect else Release(at=at)
    if draws.choose((True, False), "second release?"):
        yield Release(at=draws.draw_integer(400, length - 60, "second release"))


def _draw_group_events(draws: RandomDraws, length: int) -> Iterator[AnyEvent]:
    """Yield the use of the other cluster, and a table that fails."""
    for index in range(draws.draw_integer(2, 5, "other cluster")):
        at = draws.draw_integer(0, length - 60, "other cluster", index)
        yield OtherCluster(at=at, share=draws.choose((0.0, 0.3, 0.6, 1.0), "share", index))
    yield OtherCluster(at=length - 30, share=0.0)
    yield _draw_failure(draws, length, "group_table")


def _draw_bus_faults(draws: RandomDraws, length: int) -> Iterator[AnyEvent]:
    yield _draw_failure(draws, length, "event_bus")
    at, lasts = draws.draw_integer(0, length - 200, "refused"), draws.draw_integer(60, 400, "refused lasts")
    yield RefusedEvents(at=at, lasts=lasts, ratio=draws.choose((0.3, 1.0), "refused share"))


def _draw_failure(draws: RandomDraws, length: int, port: Port) -> AnyEvent:
    at, lasts = draws.draw_integer(0, length - 200, port, "at"), draws.draw_integer(20, 200, port, "lasts")
    ratio = draws.choose((0.3, 1.0), port, "share")
    return CallFailure(at=at, lasts=lasts, port=port, fault=draws.choose(FAILURES, port, "fault"), ratio=ratio)


def _draw_kills(draws: RandomDraws, length: int) -> Iterator[AnyEvent]:
    """Yield kills at call sites that only optional features reach."""
    sites = load_feature_sites()
    for index in range(2 if sites else 0):
        site = draws.choose(sites, "feature site", index)
        when: When = draws.choose(PHASES, "feature kill", index)
        at = int((length - 200) * draws.draw_ratio("feature kill at", index) ** 2)
        yield Kill(at=at, function=site.partition(" ")[0], nth=1, when=when, site=site)
