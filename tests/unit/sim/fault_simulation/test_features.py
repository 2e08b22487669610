"""Optional features in scripts: which seeds draw them, what their events do, and what they may wait for."""

from typing import Any, get_args

import pytest
from msgspec.structs import replace

from shared.settings import Settings
from sim.fault_simulation.checks.feature_liveness import find_waiting_requests, is_group_full, is_remnant
from sim.fault_simulation.drawing.draw_features import load_feature_sites
from sim.fault_simulation.drawing.draw_script import draw_script
from sim.fault_simulation.events.call_sites import KillCoverage, get_call_site
from sim.fault_simulation.events.event_executor import EventExecutor
from sim.fault_simulation.events.fault_world import FaultWorld
from sim.fault_simulation.events.script import Script, ScriptSetup, decode_script, encode_script
from sim.fault_simulation.events.script_events import AnyEvent, CallFailure, Kill, Recreate, Release, Scale
from sim.fault_simulation.features.feature_events import (
    BadRelease,
    DeviceJob,
    FeatureAction,
    FeatureFault,
    Gang,
    OtherCluster,
    PartialCapacity,
    RefusedEvents,
    Request,
)
from sim.fault_simulation.features.feature_manifests import GANG_NAME
from sim.fault_simulation.features.feature_setup import FEATURE_NAMES, FEATURE_SETTINGS, FeatureSetup
from sim.fault_simulation.run import run_script
from sim.fault_tap import PortCall
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from sim.lambda_runtime.stack_wiring import StackWiring

ALL_FEATURES = FeatureSetup(
    has_gangs=True,
    has_requests=True,
    has_devices=True,
    canary="nodes=1 soak=2m",
    group_limit_usd_per_hour=3.0,
    has_event_bus=True,
)


def test_few_seeds_draw_features_and_each_feature_and_event_is_drawn() -> None:
    scripts = [draw_script(seed) for seed in range(1, 401)]
    scripts_with_features = [script for script in scripts if script.setup.features.is_any_used]
    assert 0.1 < len(scripts_with_features) / len(scripts) < 0.2
    names = [name for script in scripts_with_features for name in script.setup.features.list_names()]
    assert all(names.count(name) > len(scripts_with_features) / 2 for name in FEATURE_NAMES)
    event_types = {type(event) for script in scripts_with_features for event in script.events}
    assert {*get_args(FeatureAction), *get_args(FeatureFault)} <= event_types
    sites = {event.site for script in scripts_with_features for event in script.events if isinstance(event, Kill)}
    assert set(load_feature_sites()) <= sites


def test_seed_without_features_draws_no_event_of_them() -> None:
    scripts = [script for script in map(draw_script, range(1, 200)) if not script.setup.features.is_any_used]
    events = [event for script in scripts for event in script.events]
    assert not [event for event in events if isinstance(event, FeatureAction | FeatureFault)]
    assert not [
        event for event in events if isinstance(event, CallFailure) and event.port in ("group_table", "event_bus")
    ]


def test_script_with_features_round_trips_through_its_encoded_line() -> None:
    script = next(script for script in map(draw_script, range(1, 100)) if script.setup.features.is_any_used)
    assert decode_script(encode_script(script)) == script


@pytest.mark.parametrize("features", [FeatureSetup(canary="nodes=1 soak=1m"), ALL_FEATURES])
def test_functions_have_the_settings_of_the_used_features_only(features: FeatureSetup) -> None:
    template = synthesize_template(settings=ACTIVE_SETTINGS | FEATURE_SETTINGS)
    environment = dict(StackWiring.parse(template).functions[0].environment)
    settings = Settings.from_environment(environment | features.build_environment())
    is_on = features == ALL_FEATURES
    assert settings.gangs == settings.provisioning_requests == settings.dynamic_resource_allocation
    assert settings.gangs == ("on" if is_on else "off")
    assert (bool(settings.event_bus), bool(settings.group), settings.group_limit_usd_per_hour > 0) == (is_on,) * 3


def test_all_features_together_violate_nothing() -> None:
    events: tuple[AnyEvent, ...] = (
        OtherCluster(at=5, share=0.1),
        PartialCapacity(at=25, lasts=100, zone="us-east-1a", free=1),
        Gang(at=30, name="gang-0", size=2, is_in_one_zone=True),
        Gang(at=40, name="gang-1", size=2, seconds=60),
        Request(at=50, lasts=250, name="request-0", pods=2),
        Request(at=60, lasts=30, name="request-1", pods=1, is_used_early=True),
        DeviceJob(at=70, name="devices-0", pods=2),
        BadRelease(at=80, defect="dead"),
        RefusedEvents(at=90, lasts=100, ratio=0.5),
        CallFailure(at=100, lasts=50, port="group_table", fault="lost", ratio=0.5),
        Recreate(at=300, name="gang-0"),
        Scale(at=310, name="devices-0", replicas=1),
        Release(at=320),
        BadRelease(at=330, defect="restarts"),
    )
    setup = ScriptSetup(replicas=(("web", 1),), features=ALL_FEATURES, allows_spot=False)
    result = run_script(Script(seed=5, setup=setup, length_seconds=400, events=events))
    assert not result.violations, "\n".join(result.timeline)
    assert not any("cannot:" in line for line in result.timeline), "\n".join(result.timeline)
    assert {"event_bus.put", "group_table.write"} <= {site.split(" ")[1] for site, _ in result.reached_targets}


@pytest.fixture(scope="module")
def world() -> FaultWorld:
    features = replace(ALL_FEATURES, group_limit_usd_per_hour=0.5)
    world = FaultWorld(1, features=features)
    setup = ScriptSetup(features=features)
    world.set_up(setup)
    script = Script(seed=1, setup=setup, length_seconds=0, events=())
    EventExecutor(world, script, lambda *_: None, KillCoverage())
    return world


def test_pods_may_wait_if_the_limit_of_the_group_may_refuse_their_nodes(world: FaultWorld) -> None:
    features = replace(ALL_FEATURES, group_limit_usd_per_hour=0.5)
    assert not is_group_full(world, features, 0)
    assert not is_group_full(world, features, 1)
    assert is_group_full(world, features, 2)
    assert not is_group_full(world, replace(features, group_limit_usd_per_hour=0.0), 2)


def test_request_waits_until_it_is_provisioned_or_ends(world: FaultWorld) -> None:
    requests = "provisioningrequests.autoscaling.x-k8s.io"
    world.cluster.api.create(requests, {"metadata": {"name": "train"}, "spec": {"podSets": []}}, "default")
    assert find_waiting_requests(world, ALL_FEATURES) == ["request train"]
    assert find_waiting_requests(world, FeatureSetup()) == []
    status = {"conditions": [{"type": "Failed", "status": "True"}]}
    world.cluster.api.patch(requests, "train", {"status": status}, "default", "status")
    assert find_waiting_requests(world, ALL_FEATURES) == []


def test_pods_of_a_gang_wait_for_completed_pods_of_their_job(world: FaultWorld) -> None:
    spec: dict[str, Any] = {"parallelism": 1, "completions": 1, "template": {"spec": {"containers": []}}}
    world.cluster.api.create("jobs.batch", {"metadata": {"name": "train"}, "spec": spec}, "default")
    pod = {"metadata": {"annotations": {GANG_NAME: "train"}, "labels": {"app": "train"}}}
    assert not is_remnant(world, pod)
    world.cluster.api.patch("jobs.batch", "train", {"status": {"succeeded": 1}}, "default", "status")
    assert is_remnant(world, pod)
    assert not is_remnant(world, {"metadata": {"labels": {"app": "train"}}})


def test_call_site_of_a_provisioning_request_has_no_name() -> None:
    path = "/apis/autoscaling.x-k8s.io/v1/namespaces/default/provisioningrequests/train/status"
    call = PortCall(port="kube", method="patch", detail=path, phase="before", world_name="provision-1")
    assert get_call_site(call) in load_feature_sites()
