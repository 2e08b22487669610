"""Alarms in the embedded world: a fault is played, and the alarm for it rings."""

import json
from collections.abc import Callable
from datetime import timedelta

import msgspec
import pytest

from shared.errors import Invalid, Throttled, Unreachable
from shared.model.core.labels import CANARY, CANARY_APPROVED, CANARY_STATE, DISRUPTION_PAUSED
from shared.model.karpenter.health.canary import CanaryState, Verdict, encode_canary_state
from shared.model.karpenter.pause import CLUSTER_NAMESPACE
from shared.store.catalog import iterate_newest_catalog_keys, write_catalog
from shared.store.catalog_format import decode_catalog
from sim.fault_tap import PortCall, Tap
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from sim.world.embedded_world import EmbeddedWorld
from tests.infra.cloudwatch import CloudWatch
from tests.scenario.worlds import make_deployment, make_node_class, make_node_pool

pytestmark = pytest.mark.no_cover  # minutes of a cluster like those that tests/scenario plays
ONE_MINUTE = timedelta(minutes=1)
SILENCE_ALARMS = {"ProvisionNotSucceeding", "LifecycleNotSucceeding", "DisruptNotSucceeding"}


def play_cluster(
    minutes: int, *, tap: Tap | None = None, replicas: int = 3, settings: dict[str, str] | None = None
) -> tuple[EmbeddedWorld, CloudWatch]:
    """Return a world with *replicas* pods after *minutes* in which *tap* sees every call, and its CloudWatch."""
    template = synthesize_template(settings={**ACTIVE_SETTINGS, **(settings or {})})
    world = EmbeddedWorld(template=template)
    world.apply([make_node_class(), make_node_pool()])
    world.run(10 * ONE_MINUTE)
    world.tap = tap or world.tap
    world.apply([make_deployment(replicas)])
    world.run(minutes * ONE_MINUTE)
    return world, CloudWatch(world, template)


def make_failing_tap(port: str, method: str, error: Callable[[], Exception], world_prefix: str = "") -> Tap:
    """Return a tap that fails calls to *method* of *port* in worlds whose name starts with *world_prefix*."""

    def fail_matching_call(call: PortCall) -> None:
        if (
            (call.port, call.phase) == (port, "before")
            and call.method.startswith(method)
            and call.world_name.startswith(world_prefix)
        ):
            raise error()

    return fail_matching_call


@pytest.mark.parametrize("reaction", ["tick", "watch"])
def test_healthy_cluster_raises_no_alarm(reaction: str) -> None:
    """The checks of the watch function leave no dead letters either."""
    _, watch = play_cluster(20, settings={"reaction": reaction})
    assert watch.list_ringing_alarms() == set()
    assert len(watch.alarms) == 11


def test_alarms_ignore_missing_data_before_the_first_run_and_detect_a_stopped_function() -> None:
    template = synthesize_template(settings=ACTIVE_SETTINGS)
    world = EmbeddedWorld(template=template)
    watch = CloudWatch(world, template)
    assert watch.list_ringing_alarms() == set()
    world.run(10 * ONE_MINUTE)
    assert watch.list_ringing_alarms() == set()
    world.runtime.stop()
    world.run(6 * ONE_MINUTE)
    assert watch.list_ringing_alarms() == SILENCE_ALARMS


@pytest.mark.parametrize("function", ["provision", "lifecycle", "disrupt"])
def test_function_without_success_for_five_minutes_raises_an_alarm(function: str) -> None:
    tap = make_failing_tap("table", "", lambda: RuntimeError("a bug"), world_prefix=function)
    _, watch = play_cluster(7, tap=tap)
    assert f"{function.capitalize()}NotSucceeding" in watch.list_ringing_alarms()


def test_functions_that_are_not_invoked_raise_silence_alarms() -> None:
    world, watch = play_cluster(5)
    world.runtime.stop()  # a throttled call is no invocation, and a tick is not repeated
    world.run(11 * ONE_MINUTE)
    assert watch.list_ringing_alarms() >= SILENCE_ALARMS


def test_dead_letter_raises_an_alarm() -> None:
    world, watch = play_cluster(5)
    world.tap = make_failing_tap("kube", "", lambda: RuntimeError("a bug"), world_prefix="interrupt")
    [instance, *_] = world.list_active_instances()
    warning = "EC2 Spot Instance Interruption Warning"
    detail = {"instance-id": instance.instance_id}
    world.runtime.put_event({"source": "aws.ec2", "detail-type": warning, "detail": detail})
    world.run(4 * ONE_MINUTE)
    assert "DeadLetters" in watch.list_ringing_alarms()


def test_tripped_launch_breaker_raises_an_alarm() -> None:
    _, watch = play_cluster(4, replicas=12, settings={"launch-nodes-per-minute": "1"})
    assert "LaunchBreakerTrips" in watch.list_ringing_alarms()


def test_launches_failing_for_15_minutes_raise_an_alarm() -> None:
    tap = make_failing_tap("ec2", "create_fleet", lambda: Invalid("no such subnet", code="InvalidSubnetID.NotFound"))
    _, watch = play_cluster(16, tap=tap)
    assert watch.list_ringing_alarms() == {"LaunchFailures"}


def test_leaked_instance_raises_an_alarm() -> None:
    world, watch = play_cluster(5)
    claims = world.cluster.api
    [claim, *_] = claims.list("nodeclaims.karpenter.sh")
    name = claim["metadata"]["name"]
    claims.patch("nodeclaims.karpenter.sh", name, {"metadata": {"finalizers": None}})
    claims.delete("nodeclaims.karpenter.sh", name)
    world.run(4 * ONE_MINUTE)
    assert "OrphanedInstancesTerminated" in watch.list_ringing_alarms()


def test_throttled_aws_calls_raise_an_alarm() -> None:
    tap = make_failing_tap("ec2", "describe_instances", lambda: Throttled("RequestLimitExceeded"))
    _, watch = play_cluster(16, tap=tap)
    assert watch.list_ringing_alarms() == {"ThrottledCalls"}


def test_alarm_recovers_after_its_cause_is_gone() -> None:
    world, watch = play_cluster(5)
    quiet = world.tap
    world.tap = make_failing_tap("table", "", lambda: RuntimeError("a bug"), world_prefix="disrupt")
    world.run(11 * ONE_MINUTE)
    assert watch.list_ringing_alarms() >= {"DisruptNotSucceeding"}
    world.tap = quiet
    world.run(30 * ONE_MINUTE)
    assert watch.list_ringing_alarms() == set()


def test_intermittently_failing_cycles_raise_an_alarm() -> None:
    state: dict[str, int] = {}

    def fail_every_second_world(call: PortCall) -> None:
        state.setdefault(call.world_name, len(state))
        if call.port == "kube" and state[call.world_name] % 2:
            raise Unreachable("the API server answers every second time")

    _, watch = play_cluster(16, tap=fail_every_second_world)
    assert watch.list_ringing_alarms() == {"CycleFailures"}


def make_nodes_drift(world: EmbeddedWorld) -> None:
    """Change the NodePool's template, so that all of its nodes have drifted."""
    labels = {"template": {"metadata": {"labels": {"team": "other"}}}}
    world.cluster.api.patch("nodepools.karpenter.sh", "default", {"spec": labels})


def test_automatic_disruption_pause_raises_an_alarm() -> None:
    world, watch = play_cluster(5, settings={"drift-pause-percent": "10"})
    make_nodes_drift(world)
    world.run(5 * ONE_MINUTE)
    assert watch.list_ringing_alarms() == {"AutomaticDisruptionPauses"}


@pytest.mark.parametrize("source", ["setting", "annotation", "unreadable"])
def test_manual_disruption_pause_is_recorded_without_an_alarm(source: str) -> None:
    text = "till tomorrow" if source == "unreadable" else "true by anna because Black Friday"
    world, watch = play_cluster(3, settings={"disruption-paused": "true"} if source == "setting" else None)
    if source != "setting":
        world.cluster.api.patch(
            "namespaces", CLUSTER_NAMESPACE, {"metadata": {"annotations": {DISRUPTION_PAUSED: text}}}
        )
    world.run(3 * ONE_MINUTE)
    assert watch.list_ringing_alarms() == ({"AutomaticDisruptionPauses"} if source == "unreadable" else set())
    last = [
        line["counts"]
        for line in map(json.loads, world.log_lines)
        if line.get("function") == "disrupt" and "counts" in line
    ][-1]
    assert bool(last.get("OperatorDisruptionPauses")) == (source != "unreadable")


def test_outdated_prices_raise_an_alarm() -> None:
    world, watch = play_cluster(5)
    world.tap = make_failing_tap("bucket", "put", lambda: Unreachable("s3"), world_prefix="catalog")
    [key, *_] = iterate_newest_catalog_keys(world.bucket)
    catalog = decode_catalog(world.bucket.get(key))
    assert catalog.priced_at is not None
    write_catalog(msgspec.structs.replace(catalog, priced_at=catalog.priced_at - timedelta(hours=49)), world.bucket)
    world.run(16 * ONE_MINUTE)
    assert "PriceAgeSeconds" in watch.list_ringing_alarms()


def annotate_class(world: EmbeddedWorld, annotations: dict[str, str]) -> None:
    world.cluster.api.patch("ec2nodeclasses.karpenter.k8s.aws", "default", {"metadata": {"annotations": annotations}})


def test_rejected_image_raises_an_alarm_until_it_is_approved() -> None:
    world, watch = play_cluster(1, settings={"canary-alarm": "true"})
    node_class = world.cluster.api.get("ec2nodeclasses.karpenter.k8s.aws", "default")
    image_id = node_class["status"]["amis"][0]["id"]
    verdict = Verdict(is_rejected=True, at=world.clock.get_time(), because="node a is not Ready")
    state = encode_canary_state(CanaryState(verdicts={image_id: verdict}))
    annotate_class(world, {CANARY: "nodes=1 soak=15m", CANARY_STATE: state})
    world.run(6 * ONE_MINUTE)
    assert watch.list_ringing_alarms() == {"RejectedCanaries"}
    annotate_class(world, {CANARY_APPROVED: image_id})
    world.run(30 * ONE_MINUTE)
    assert watch.list_ringing_alarms() == set()
