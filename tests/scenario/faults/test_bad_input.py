"""What cannot be read, found or understood: it is named, the rest goes on, nothing ends because it was not seen."""

import pytest

from shared.errors import NotFound
from shared.store.catalog import list_catalog_keys
from sim.fault_tap import Killed, PortCall
from tests.scenario.worlds import (
    CLAIMS,
    CLASSES,
    INTERRUPTIONS,
    POOLS,
    World,
    make_deployment,
    make_ec2_message,
    make_node_class,
    make_node_pool,
    make_pod,
)

BAD_POOLS = {
    "unknown operator": {
        "template": {"spec": {"requirements": [{"key": "kubernetes.io/arch", "operator": "Like", "values": ["arm"]}]}}
    },
    "invalid budget duration": {"disruption": {"budgets": [{"nodes": "1", "schedule": "@daily", "duration": "soon"}]}},
    "number instead of string": {"disruption": {"consolidateAfter": 30}},
    "invalid limit quantity": {"limits": {"cpu": "many"}},
    "template without spec": {"template": {"spec": None}},
}


@pytest.mark.parametrize("patch", BAD_POOLS.values(), ids=BAD_POOLS.keys())
def test_unreadable_nodepool_is_reported_and_its_nodes_are_kept(patch: dict[str, object]) -> None:
    world = World(
        make_node_class(),
        make_node_pool(),
        make_node_pool("bad", labels={"team": "bad"}, taints=[]),
        make_deployment(0),
    )
    world.apply([make_deployment(2, "theirs", nodeSelector={"team": "bad"})])
    world.wait_until_settled(2)
    world.store(POOLS, "bad", {"spec": patch})
    before = [instance.instance_id for instance in world.list_active_instances()]
    world.scale(3)
    world.wait_until_settled(5)
    world.advance_seconds(240)
    assert set(before) <= {instance.instance_id for instance in world.list_active_instances()}
    if patch != BAD_POOLS["template without spec"]:  # which no API server lets anybody write to
        assert world.get_condition(POOLS, "bad", "ValidationSucceeded")[:2] == ("False", "NodePoolValidationFailed")
        assert world.get_condition(POOLS, "bad", "Ready")[0] == "False"
    assert world.list_events("bad", "NodePoolValidationFailed")
    assert world.get_condition(POOLS, "default", "Ready")[0] == "True"
    assert [problem for problem in world.list_problems() if problem.startswith("NodePool bad: ")]
    assert "NodePool bad: " in world.log()
    assert world.list_errors() == []


def test_corrected_nodepool_becomes_ready_again() -> None:
    world = World(make_node_class(), make_node_pool("bad"), make_deployment(0))
    world.store(POOLS, "bad", {"spec": {"limits": {"cpu": "many"}}})
    world.scale(1)
    world.advance_seconds(120)
    assert world.get_condition(POOLS, "bad", "ValidationSucceeded")[0] == "False"
    world.store(POOLS, "bad", {"spec": {"limits": {"cpu": "8"}}})
    world.wait_until_settled(1)
    world.advance_seconds(61)
    assert world.get_condition(POOLS, "bad", "Ready")[0] == "True"


def test_status_of_an_invalid_nodepool_is_written_once() -> None:
    world = World(make_node_class(), make_node_pool("bad"))
    world.store(POOLS, "bad", {"spec": {"limits": {"cpu": "many"}}})
    world.advance_seconds(65)
    version = world.cluster.api.get(POOLS, "bad")["metadata"]["resourceVersion"]
    world.advance_seconds(180)
    assert world.cluster.api.get(POOLS, "bad")["metadata"]["resourceVersion"] == version


def test_unreadable_nodeclaim_keeps_its_instance() -> None:
    world = World(make_node_class(), make_node_pool(), make_deployment(2))
    world.wait_until_settled(2)
    [claim] = world.list_claims()
    world.store(CLAIMS, claim["metadata"]["name"], {"spec": {"expireAfter": "whenever"}})
    world.advance_seconds(300)
    assert len(world.list_active_instances()) == 1
    assert len(world.list_running_pods()) == 2
    assert [
        problem for problem in world.list_problems() if problem.startswith(f"NodeClaim {claim['metadata']['name']}: ")
    ]
    world.store(CLAIMS, claim["metadata"]["name"], {"spec": {"expireAfter": "720h"}})
    world.scale(0)
    world.wait_until(lambda: not world.list_active_instances())


def test_unreadable_nodeclaim_does_not_block_orphan_instance_cleanup() -> None:
    world = World(make_node_class(), make_node_pool(), make_deployment(2))
    world.wait_until_settled(2)
    world.scale(6)
    world.wait_until_settled(6)
    first_claim, second_claim = world.list_claims()
    world.store(CLAIMS, first_claim["metadata"]["name"], {"spec": {"expireAfter": "whenever"}})
    world.cluster.api._store.remove(CLAIMS, second_claim)  # noqa: SLF001 - as an old backup of etcd would
    orphan_id = second_claim["status"]["providerID"].rpartition("/")[2]
    world.forfeit.add(orphan_id)
    world.wait_until(lambda: orphan_id not in {each.instance_id for each in world.list_active_instances()}, timeout=170)
    assert len(world.list_active_instances()) >= 1


def test_unreadable_node_does_not_make_its_instance_look_missing() -> None:
    world = World(make_node_class(), make_node_pool(), make_deployment(2))
    world.wait_until_settled(2)
    [node] = world.list_nodes()
    world.store("nodes", node["metadata"]["name"], {"status": {"capacity": {"cpu": "four"}}})
    world.advance_seconds(300)
    assert [problem for problem in world.list_problems() if problem.startswith("Node ip-")]
    assert len(world.list_running_pods()) == 2
    assert len(world.list_active_instances()) == 1


def test_unreadable_pod_keeps_its_node() -> None:
    world = World(make_node_class(), make_node_pool(), make_deployment(1))
    world.wait_until_settled(1)
    [running_pod] = world.list_running_pods()
    spec = {"resourceClaims": "from the future"}
    world.cluster.api.delete("deployments.apps", "web", "default", propagation="Orphan")
    [owner] = running_pod["metadata"]["ownerReferences"]
    world.cluster.api.delete("replicasets.apps", owner["name"], "default", propagation="Orphan")
    world.store("pods", running_pod["metadata"]["name"], {"spec": spec}, "default")
    world.advance_seconds(200)
    assert [
        problem
        for problem in world.list_problems()
        if problem.startswith(f"Pod default/{running_pod['metadata']['name']}: ")
    ]
    assert len(world.list_active_instances()) == 1
    world.cluster.api.delete(CLAIMS, world.list_claims()[0]["metadata"]["name"])
    world.advance_seconds(200)
    assert len(world.list_active_instances()) == 1
    [words] = world.list_events(world.list_nodes()[0]["metadata"]["name"], "FailedDraining")[-1:]
    assert running_pod["metadata"]["name"] in words
    world.cluster.api.delete("pods", running_pod["metadata"]["name"], "default")
    world.wait_until(lambda: not world.list_active_instances())


def test_missing_node_class_makes_only_its_own_nodepool_unready() -> None:
    world = World(
        make_node_class(),
        make_node_pool(),
        make_node_pool("lost", class_name="nowhere", weight=100),
        make_deployment(2),
    )
    world.wait_until_settled(2)
    world.advance_seconds(60)
    assert world.get_condition(POOLS, "lost", "NodeClassReady") == (
        "False",
        "NodeClassNotFound",
        "EC2NodeClass nowhere does not exist",
    )
    assert world.get_condition(POOLS, "lost", "Ready")[0] == "False"
    assert world.get_condition(POOLS, "default", "Ready")[0] == "True"


def test_node_class_with_no_matching_subnets_reports_the_field_in_its_condition() -> None:
    nowhere = [{"tags": {"team": "ghosts"}}]
    world = World(make_node_class(subnetSelectorTerms=nowhere), make_node_pool(), make_deployment(1))
    world.advance_seconds(90)
    status, reason, message = world.get_condition(CLASSES, "default", "SubnetsReady")
    assert (status, reason) == ("False", "SubnetsNotFound")
    assert "spec.subnetSelectorTerms" in message
    assert world.list_claims() == []
    words = world.list_events(world.list_unbound_pods()[0]["metadata"]["name"], "FailedScheduling")
    assert "node class default is not ready" in words[-1]
    world.apply([make_node_class()])
    world.wait_until_settled(1, timeout=400)


def test_unschedulable_pod_gets_an_event_and_does_not_block_other_pods() -> None:
    world = World(
        make_node_class(),
        make_node_pool(),
        make_pod("impossible", nodeSelector={"kubernetes.io/arch": "z80"}),
        make_deployment(2),
    )
    world.wait_until(lambda: len(world.list_running_pods()) == 2)
    world.advance_seconds(120)
    assert len(world.launched) == 1
    words = world.list_events("impossible", "FailedScheduling")
    assert any("kubernetes.io/arch" in event for event in words)


MESSAGES = {
    "not json": "not even JSON",
    "a list": "[]",
    "empty": "",
    "another service": '{"version": "0", "source": "aws.s3", "detail-type": "Object Created", "detail": {}}',
    "no instance": '{"version": "0", "source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning"}',
    "numeric instance id": make_ec2_message("EC2 Spot Instance Interruption Warning", "i-1", **{"instance-id": 7}),
    "deeply nested": "[" * 5000,
}


@pytest.mark.parametrize("body", MESSAGES.values(), ids=MESSAGES.keys())
def test_malformed_interruption_message_is_reported_once_and_dropped(body: str) -> None:
    world = World(make_node_class(), make_node_pool())
    world.interrupt(body)
    world.advance_seconds(10)
    assert world.list_errors() == []
    assert (
        len([problem for problem in world.list_problems() if problem.startswith("Message interruption queue: ")]) == 1
    )
    assert not world.runtime.get_queue(INTERRUPTIONS).messages


def test_malformed_interruption_message_does_not_delay_a_valid_one() -> None:
    world = World(make_node_class(), make_node_pool(capacity=("spot",)), make_deployment(2))
    world.wait_until_settled(2)
    [node] = world.list_nodes()
    world.interrupt("nonsense")
    world.cloud.instances.interrupt(world.find_instance(node).instance_id)
    world.wait_until(lambda: node["metadata"]["name"] not in {one["metadata"]["name"] for one in world.list_nodes()})
    world.wait_until_settled(2)


def test_interruption_messages_about_foreign_instances_are_ignored() -> None:
    world = World(make_node_class(), make_node_pool(), make_deployment(2))
    world.wait_until_settled(2)
    for kind in ("EC2 Spot Instance Interruption Warning", "EC2 Instance State-change Notification"):
        world.interrupt(make_ec2_message(kind, "i-0123456789abcdef0", state="terminated"))
    world.advance_seconds(60)
    assert (len(world.list_claims()), world.list_errors()) == (1, [])


def test_truncated_catalog_is_reported_and_rebuilt() -> None:
    world = World(make_node_class(), make_node_pool(), make_deployment(0))
    world.wait_until(lambda: world.bucket.list_keys("catalogue/"))
    [key] = list_catalog_keys(world.bucket)
    body = world.bucket.get(key)
    world.bucket.put(key, body[: len(body) // 2])
    world.scale(2)
    world.wait_until_settled(2, timeout=120)
    assert [problem for problem in world.list_problems() if problem.startswith(f"Catalogue {key}: ")]
    assert world.list_errors() == []


def test_missing_catalog_leaves_pods_pending_and_terminates_no_instance() -> None:
    world = World(make_node_class(), make_node_pool(), make_deployment(2))
    world.wait_until_settled(2)
    with world.fail_ports("ec2.describe_instance_types"):
        for key in (*world.bucket.list_keys("catalogue/"), *world.bucket.list_keys("market/")):
            world.bucket.put(key, b"")
        world.scale(6)
        world.advance_seconds(200)
        assert (len(world.list_active_instances()), len(world.list_running_pods())) == (1, 4)
        assert "the catalog is missing or cannot be read" in world.log()
    world.wait_until_settled(6, timeout=400)


def test_catalog_is_rebuilt_from_cached_instance_types_while_ec2_fails() -> None:
    world = World(make_node_class(), make_node_pool(), make_deployment(2))
    world.wait_until_settled(2)
    with world.fail_ports("ec2.describe_instance_types"):
        for key in world.bucket.list_keys("catalogue/"):
            world.bucket.put(key, b"")
        world.scale(6)
        world.wait_until_settled(6, timeout=400)


def test_missing_catalog_before_the_first_node_class_is_not_reported() -> None:
    world = World(make_node_pool())
    world.advance_seconds(400)
    assert world.bucket.list_keys("catalogue/") == ()
    assert [problem for problem in world.list_problems() if problem.startswith("Catalogue")] == []


def test_unreadable_table_row_is_reported_and_launches_continue() -> None:
    world = World(make_node_class(), make_node_pool(), make_deployment(0))
    for kind in ("launch-group", "unavailable"):
        world.table.write(kind, "on-demand:m5.xlarge:us-east-1a", "{nonsense", version=0)
    world.scale(2)
    world.wait_until_settled(2)
    assert len([problem for problem in world.list_problems() if "remove the row" in problem]) == 2
    assert world.list_errors() == []


def test_corrupted_launch_row_does_not_cause_a_duplicate_launch() -> None:
    world = World(make_node_class(), make_node_pool(), make_deployment(0))

    spoilt: list[str] = []

    def spoil_row(call: PortCall) -> None:
        if (call.port, call.method, call.phase) == ("ec2", "create_fleet", "after") and not spoilt:
            [row] = world.table.list_rows("launch-group")
            spoilt.append(world.table.write("launch-group", row.name, "{nonsense", version=row.version).name)
            raise Killed

    with world.use_tap(spoil_row):
        world.scale(2)
        world.wait_until_settled(2)
    world.advance_seconds(200)
    assert (len(spoilt), len(world.launched)) == (1, 1)


def test_missing_crds_are_reported_and_no_instance_is_terminated() -> None:
    world = World(make_node_class(), make_node_pool(), make_deployment(2))
    world.wait_until_settled(2)
    with world.use_tap(_fail_karpenter_lists):
        world.advance_seconds(200)
    assert len(world.list_active_instances()) == 1
    assert "is not installed: apply the CustomResourceDefinitions" in world.log()
    assert len(world.list_running_pods()) == 2


def _fail_karpenter_lists(call: PortCall) -> None:
    if call.port == "kube" and call.method == "list" and "karpenter" in call.detail:
        raise NotFound(call.detail)


def test_unreadable_node_class_is_reported_in_its_conditions_and_its_nodes_are_kept() -> None:
    world = World(
        make_node_class(),
        make_node_pool(),
        make_node_class("bad"),
        make_node_pool("theirs", class_name="bad", labels={"team": "bad"}),
    )
    world.apply([make_deployment(2, "other", nodeSelector={"team": "bad"}), make_deployment(0)])
    world.wait_until_settled(2)
    world.store(CLASSES, "bad", {"spec": {"role": 7}})
    world.scale(2)
    world.wait_until_settled(4)
    world.advance_seconds(330)
    assert (len(world.list_active_instances()), len(world.list_running_pods())) == (1, 4)
    assert world.get_condition(CLASSES, "bad", "ValidationSucceeded")[0] == "False"
    assert world.get_condition(POOLS, "theirs", "Ready")[0] == "False"
    assert world.list_errors() == []
