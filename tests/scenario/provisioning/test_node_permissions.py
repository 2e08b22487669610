"""Nodes and the permissions that depend on the cluster: IPv6 addresses for pods, and KMS keys of volumes."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from shared.decide.launch.fleets.circuit_breaker import EARLY_ENDS_WINDOW, MAX_EARLY_ENDS
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from sim.world.embedded_world import EmbeddedWorld
from tests.scenario.worlds import make_deployment, make_node_class, make_node_pool

KEY = "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
OTHER_KEY = "arn:aws:kms:us-east-1:111122223333:key/00000000-12ab-34cd-56ef-1234567890ab"


def make_world(**settings: str) -> EmbeddedWorld:
    """Return a world whose stack is deployed with *settings*."""
    settings_by_name = {name.replace("_", "-"): value for name, value in settings.items()}
    return EmbeddedWorld(template=synthesize_template(settings={**ACTIVE_SETTINGS, **settings_by_name}))


def run_workload(world: EmbeddedWorld, minutes: int, **node_class_spec: Any) -> None:
    world.apply([make_node_class(**node_class_spec), make_node_pool()])
    world.run(timedelta(minutes=3))
    world.apply([make_deployment(2)])
    world.run(timedelta(minutes=minutes))


def count_ready_nodes(world: EmbeddedWorld) -> int:
    return sum(
        condition["status"] == "True"
        for node in world.cluster.api.list("nodes")
        for condition in node["status"]["conditions"]
        if condition["type"] == "Ready"
    )


@pytest.mark.parametrize(("ip_family", "has_ready_nodes"), [("ipv4", False), ("ipv6", True)])
def test_nodes_of_an_ipv6_cluster_become_ready_only_if_their_role_can_assign_addresses(
    ip_family: str, *, has_ready_nodes: bool
) -> None:
    world = make_world(ip_family=ip_family)
    world.cloud.facts = msgspec.structs.replace(world.cloud.facts, service_cidr="fd00:1::/108")
    run_workload(world, 6)
    assert world.cluster.api.list("nodes")
    assert (count_ready_nodes(world) > 0) == has_ready_nodes


def list_early_end_events(world: EmbeddedWorld, kind: str) -> list[str]:
    return [
        event["message"]
        for event in world.cluster.api.list("events")
        if (event["involvedObject"]["kind"], event["reason"]) == (kind, "InstanceEndedEarly")
    ]


def make_encrypted_device(key: str) -> dict[str, Any]:
    return {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "20Gi", "encrypted": True, "kmsKeyID": key}}


@pytest.mark.parametrize("kms_keys", ["", OTHER_KEY])
def test_an_instance_whose_key_is_not_granted_ends_early_and_the_reason_is_reported(kms_keys: str) -> None:
    world = make_world(kms_keys=kms_keys)
    run_workload(world, 3, blockDeviceMappings=[make_encrypted_device(KEY)])
    assert world.cluster.api.list("nodes") == []
    for kind in ("NodeClaim", "NodePool"):
        messages = list_early_end_events(world, kind)
        assert messages
        assert "ended before its node registered: Client.InternalError: Client error on launch" in messages[0]
        assert "kms-keys" in messages[0]


def test_the_default_key_of_the_account_needs_a_grant_too() -> None:
    world = make_world()
    world.cloud.instances.volume_keys.default_key = KEY
    run_workload(world, 3)
    assert world.cluster.api.list("nodes") == []
    assert list_early_end_events(world, "NodePool")


def test_with_the_key_in_the_settings_nodes_become_ready() -> None:
    world = make_world(kms_keys=KEY)
    world.cloud.instances.volume_keys.default_key = KEY
    run_workload(world, 4, blockDeviceMappings=[make_encrypted_device(KEY.rpartition("/")[2])])
    assert count_ready_nodes(world) > 0
    assert list_early_end_events(world, "NodePool") == []


def test_the_circuit_breaker_stops_launches_of_a_node_pool_whose_instances_end_early() -> None:
    world = make_world()
    run_workload(world, 8, blockDeviceMappings=[make_encrypted_device(KEY)])
    assert MAX_EARLY_ENDS <= len(world.cloud.instances.list_all()) <= MAX_EARLY_ENDS + 2
    open_events = [event for event in world.cluster.api.list("events") if event["reason"] == "LaunchBreakerOpen"]
    assert any("before their nodes registered" in event["message"] for event in open_events)


def test_after_the_cause_is_fixed_the_circuit_breaker_closes() -> None:
    world = make_world()
    run_workload(world, 5, blockDeviceMappings=[make_encrypted_device(KEY)])
    world.cloud.instances.volume_keys.can_use_key = lambda _: True
    world.run(EARLY_ENDS_WINDOW + timedelta(minutes=8))
    assert count_ready_nodes(world) > 0
