"""Alarms, in the embedded world: the fault is played, and the alarm rings that is for it."""

import json
from collections.abc import Callable
from datetime import timedelta

import msgspec
import pytest

from shared.errors import Invalid, Throttled, Unreachable
from shared.model.holds import HOME
from shared.model.labels import DISRUPTION_PAUSED
from shared.snapshot.catalogue import decode_catalogue, keep, newest_keys
from sim.embedded import Embedded
from sim.faults import Call, Tap
from sim.lambdas.template import ACTIVE, synthesised
from tests.infra.cloudwatch import CloudWatch
from tests.scenario.worlds import deployment, node_class, pool

pytestmark = pytest.mark.no_cover  # minutes of a cluster like those that tests/scenario plays
MINUTE = timedelta(minutes=1)
SILENT = {"ProvisionSilent", "LifecycleSilent", "DisruptSilent"}


def played(
    minutes: int, *, tap: Tap | None = None, replicas: int = 3, context: dict[str, str] | None = None
) -> tuple[Embedded, CloudWatch]:
    """Answer a world of three pods after so many *minutes* in which *tap* sees every call."""
    template = synthesised(context={**ACTIVE, **(context or {})})
    world = Embedded(template=template)
    world.apply([node_class(), pool()])
    world.run(10 * MINUTE)
    world.tap = tap or world.tap
    world.apply([deployment(replicas)])
    world.run(minutes * MINUTE)
    return world, CloudWatch(world, template)


def failing(port: str, method: str, error: Callable[[], Exception], who: str = "") -> Tap:
    """Answer a tap that lets calls fail."""

    def tap(call: Call) -> None:
        if (call.port, call.when) == (port, "before") and call.method.startswith(method) and call.who.startswith(who):
            raise error()

    return tap


@pytest.mark.parametrize("reaction", ["tick", "watch"])
def test_while_all_is_well_nothing_rings(reaction: str) -> None:
    """Nor does what calls itself all the time leave letters that are dead."""
    _, watch = played(20, context={"joiner:reaction": reaction})
    assert watch.ringing() == set()
    assert len(watch.alarms) == 11


@pytest.mark.parametrize("function", ["provision", "lifecycle", "disrupt"])
def test_a_function_that_does_not_succeed_for_five_minutes_is_noticed(function: str) -> None:
    tap = failing("table", "", lambda: RuntimeError("a bug"), who=function)
    _, watch = played(7, tap=tap)
    assert f"{function.capitalize()}Silent" in watch.ringing()


def test_functions_that_lambda_throttles_or_nobody_calls_are_silent() -> None:
    world, watch = played(5)
    world.runtime.stop()  # a call that is throttled is no invocation, and a tick is not repeated
    world.run(11 * MINUTE)
    assert watch.ringing() >= SILENT


def test_a_letter_that_nobody_can_deal_with_is_noticed() -> None:
    world, watch = played(5)
    world.tap = failing("kube", "", lambda: RuntimeError("a bug"), who="interrupt")
    [instance, *_] = world.living()
    warning = "EC2 Spot Instance Interruption Warning"
    detail = {"instance-id": instance.instance_id}
    world.runtime.put_event({"source": "aws.ec2", "detail-type": warning, "detail": detail})
    world.run(4 * MINUTE)
    assert "DeadLetters" in watch.ringing()


def test_the_breaker_is_noticed() -> None:
    _, watch = played(4, replicas=12, context={"joiner:launch-nodes-per-minute": "1"})
    assert "LaunchBreakerTrips" in watch.ringing()


def test_launches_that_fail_for_a_quarter_of_an_hour_are_noticed() -> None:
    tap = failing("ec2", "create_fleet", lambda: Invalid("no such subnet", code="InvalidSubnetID.NotFound"))
    _, watch = played(16, tap=tap)
    assert watch.ringing() == {"LaunchFailures"}


def test_a_leak_is_noticed() -> None:
    world, watch = played(5)
    claims = world.live.api
    [claim, *_] = claims.list("nodeclaims.karpenter.sh")
    name = claim["metadata"]["name"]
    claims.patch("nodeclaims.karpenter.sh", name, {"metadata": {"finalizers": None}})
    claims.delete("nodeclaims.karpenter.sh", name)
    world.run(4 * MINUTE)
    assert "LeaksEnded" in watch.ringing()


def test_that_aws_throttles_our_calls_is_noticed() -> None:
    tap = failing("ec2", "describe_instances", lambda: Throttled("RequestLimitExceeded"))
    _, watch = played(16, tap=tap)
    assert watch.ringing() == {"Throttles"}


def test_an_alarm_is_over_once_its_cause_is_so_that_whoever_heard_it_hears_that_too() -> None:
    world, watch = played(5)
    quiet = world.tap
    world.tap = failing("table", "", lambda: RuntimeError("a bug"), who="disrupt")
    world.run(11 * MINUTE)
    assert watch.ringing() >= {"DisruptSilent"}
    world.tap = quiet
    world.run(30 * MINUTE)
    assert watch.ringing() == set()


def test_cycles_that_fail_again_and_again_are_noticed_though_others_succeed() -> None:
    state: dict[str, int] = {}

    def tap(call: Call) -> None:
        state.setdefault(call.who, len(state))
        if call.port == "kube" and state[call.who] % 2:
            raise Unreachable("the API server answers every second time")

    _, watch = played(16, tap=tap)
    assert watch.ringing() == {"Faults"}


def drifted(world: Embedded) -> None:
    """Change the NodePool's template, so that every node of it has drifted."""
    labels = {"template": {"metadata": {"labels": {"team": "other"}}}}
    world.live.api.patch("nodepools.karpenter.sh", "default", {"spec": labels})


def test_that_disruption_paused_itself_is_noticed() -> None:
    world, watch = played(5, context={"joiner:drift-pause-percent": "10"})
    drifted(world)
    world.run(5 * MINUTE)
    assert watch.ringing() == {"DisruptionPauses"}


@pytest.mark.parametrize("where", ["setting", "annotation", "unreadable"])
def test_a_pause_that_people_meant_is_drawn_and_wakes_nobody(where: str) -> None:
    text = "till tomorrow" if where == "unreadable" else "true by anna because Black Friday"
    world, watch = played(3, context={"joiner:disruption-paused": "true"} if where == "setting" else None)
    if where != "setting":
        world.live.api.patch("namespaces", HOME, {"metadata": {"annotations": {DISRUPTION_PAUSED: text}}})
    world.run(3 * MINUTE)
    assert watch.ringing() == ({"DisruptionPauses"} if where == "unreadable" else set())
    last = [line["counts"] for line in map(json.loads, world.lines) if line.get("function") == "disrupt"][-1]
    assert bool(last.get("IntendedPauses")) == (where != "unreadable")


def test_prices_that_grow_old_are_noticed() -> None:
    world, watch = played(5)
    world.tap = failing("bucket", "put", lambda: Unreachable("s3"), who="catalog")
    [key, *_] = newest_keys(world.bucket)
    known = decode_catalogue(world.bucket.get(key))
    assert known.priced_at is not None
    keep(msgspec.structs.replace(known, priced_at=known.priced_at - timedelta(hours=49)), world.bucket)
    world.run(16 * MINUTE)
    assert "PriceAgeSeconds" in watch.ringing()
