"""What cannot be read, found or understood: it is named, the rest goes on, nothing ends because it was not seen."""

import pytest

from shared.errors import Gone
from shared.snapshot.catalogue import catalogue_keys
from sim.faults import Call, Killed
from tests.scenario.worlds import (
    CLAIMS,
    CLASSES,
    INTERRUPTIONS,
    POOLS,
    World,
    deployment,
    node_class,
    notice,
    pod,
    pool,
)

BAD_POOLS = {
    "an operator that nobody knows": {
        "template": {"spec": {"requirements": [{"key": "kubernetes.io/arch", "operator": "Like", "values": ["arm"]}]}}
    },
    "a budget's duration that is none": {
        "disruption": {"budgets": [{"nodes": "1", "schedule": "@daily", "duration": "soon"}]}
    },
    "a number where a text belongs": {"disruption": {"consolidateAfter": 30}},
    "a limit that is no amount": {"limits": {"cpu": "many"}},
    "a template without its spec": {"template": {"spec": None}},
}


@pytest.mark.parametrize("patch", BAD_POOLS.values(), ids=BAD_POOLS.keys())
def test_a_nodepool_that_cannot_be_read_is_named_and_its_nodes_stay(patch: dict[str, object]) -> None:
    world = World(node_class(), pool(), pool("bad", labels={"team": "bad"}, taints=[]), deployment(0))
    world.apply([deployment(2, "theirs", nodeSelector={"team": "bad"})])
    world.settled(2)
    world.store(POOLS, "bad", {"spec": patch})
    before = [one.instance_id for one in world.living()]
    world.scale(3)
    world.settled(5)
    world.seconds(240)
    assert set(before) <= {one.instance_id for one in world.living()}
    if patch != BAD_POOLS["a template without its spec"]:  # which no API server lets anybody write to
        assert world.condition(POOLS, "bad", "ValidationSucceeded")[:2] == ("False", "NodePoolValidationFailed")
        assert world.condition(POOLS, "bad", "Ready")[0] == "False"
    assert world.events("bad", "NodePoolValidationFailed")
    assert world.condition(POOLS, "default", "Ready")[0] == "True"
    assert [one for one in world.problems() if one.startswith("NodePool bad: ")]
    assert "NodePool bad: " in world.log()
    assert world.errors() == []


def test_a_nodepool_that_is_corrected_works_again() -> None:
    world = World(node_class(), pool("bad"), deployment(0))
    world.store(POOLS, "bad", {"spec": {"limits": {"cpu": "many"}}})
    world.scale(1)
    world.seconds(120)
    assert world.condition(POOLS, "bad", "ValidationSucceeded")[0] == "False"
    world.store(POOLS, "bad", {"spec": {"limits": {"cpu": "8"}}})
    world.settled(1)
    world.seconds(61)
    assert world.condition(POOLS, "bad", "Ready")[0] == "True"


def test_what_is_said_of_a_bad_nodepool_is_written_once() -> None:
    world = World(node_class(), pool("bad"))
    world.store(POOLS, "bad", {"spec": {"limits": {"cpu": "many"}}})
    world.seconds(65)
    version = world.live.api.get(POOLS, "bad")["metadata"]["resourceVersion"]
    world.seconds(180)
    assert world.live.api.get(POOLS, "bad")["metadata"]["resourceVersion"] == version


def test_a_nodeclaim_that_cannot_be_read_keeps_its_instance() -> None:
    world = World(node_class(), pool(), deployment(2))
    world.settled(2)
    [claim] = world.claims()
    world.store(CLAIMS, claim["metadata"]["name"], {"spec": {"expireAfter": "whenever"}})
    world.seconds(300)
    assert len(world.living()) == 1
    assert len(world.running()) == 2
    assert [one for one in world.problems() if one.startswith(f"NodeClaim {claim['metadata']['name']}: ")]
    world.store(CLAIMS, claim["metadata"]["name"], {"spec": {"expireAfter": "720h"}})
    world.scale(0)
    world.until(lambda: not world.living())


def test_a_nodeclaim_that_cannot_be_read_does_not_shield_an_orphan() -> None:
    world = World(node_class(), pool(), deployment(2))
    world.settled(2)
    world.scale(6)
    world.settled(6)
    one, other = world.claims()
    world.store(CLAIMS, one["metadata"]["name"], {"spec": {"expireAfter": "whenever"}})
    world.live.api._store.remove(CLAIMS, other)  # noqa: SLF001 - as an old backup of etcd would
    lost = other["status"]["providerID"].rpartition("/")[2]
    world.forfeit.add(lost)
    world.until(lambda: lost not in {each.instance_id for each in world.living()}, within=170)
    assert len(world.living()) >= 1


def test_a_node_that_cannot_be_read_is_not_missed() -> None:
    world = World(node_class(), pool(), deployment(2))
    world.settled(2)
    [node] = world.nodes()
    world.store("nodes", node["metadata"]["name"], {"status": {"capacity": {"cpu": "four"}}})
    world.seconds(300)
    assert [one for one in world.problems() if one.startswith("Node ip-")]
    assert len(world.running()) == 2
    assert len(world.living()) == 1


def test_a_pod_that_cannot_be_read_keeps_its_node() -> None:
    world = World(node_class(), pool(), deployment(1))
    world.settled(1)
    [some] = world.running()
    spec = {"resourceClaims": "from the future"}
    world.live.api.delete("deployments.apps", "web", "default", propagation="Orphan")
    [owner] = some["metadata"]["ownerReferences"]
    world.live.api.delete("replicasets.apps", owner["name"], "default", propagation="Orphan")
    world.store("pods", some["metadata"]["name"], {"spec": spec}, "default")
    world.seconds(200)
    assert [one for one in world.problems() if one.startswith(f"Pod default/{some['metadata']['name']}: ")]
    assert len(world.living()) == 1
    world.live.api.delete(CLAIMS, world.claims()[0]["metadata"]["name"])
    world.seconds(200)
    assert len(world.living()) == 1
    [words] = world.events(world.nodes()[0]["metadata"]["name"], "FailedDraining")[-1:]
    assert some["metadata"]["name"] in words
    world.live.api.delete("pods", some["metadata"]["name"], "default")
    world.until(lambda: not world.living())


def test_a_node_class_that_does_not_exist_stops_its_pool_only() -> None:
    world = World(node_class(), pool(), pool("lost", of="nowhere", weight=100), deployment(2))
    world.settled(2)
    world.seconds(60)
    assert world.condition(POOLS, "lost", "NodeClassReady") == (
        "False",
        "NodeClassNotFound",
        "there is no EC2NodeClass nowhere",
    )
    assert world.condition(POOLS, "lost", "Ready")[0] == "False"
    assert world.condition(POOLS, "default", "Ready")[0] == "True"


def test_a_node_class_that_selects_nothing_says_which_field() -> None:
    nowhere = [{"tags": {"team": "ghosts"}}]
    world = World(node_class(subnetSelectorTerms=nowhere), pool(), deployment(1))
    world.seconds(90)
    status, reason, message = world.condition(CLASSES, "default", "SubnetsReady")
    assert (status, reason) == ("False", "SubnetsNotFound")
    assert "spec.subnetSelectorTerms" in message
    assert world.claims() == []
    words = world.events(world.waiting()[0]["metadata"]["name"], "FailedScheduling")
    assert "node class default is not ready" in words[-1]
    world.apply([node_class()])
    world.settled(1, within=400)


def test_a_pod_that_no_node_can_hold_is_told_why_and_holds_nobody_up() -> None:
    world = World(node_class(), pool(), pod("impossible", nodeSelector={"kubernetes.io/arch": "z80"}), deployment(2))
    world.until(lambda: len(world.running()) == 2)
    world.seconds(120)
    assert len(world.launched) == 1
    words = world.events("impossible", "FailedScheduling")
    assert any("kubernetes.io/arch" in one for one in words)


MESSAGES = {
    "not json": "not even JSON",
    "a list": "[]",
    "nothing": "",
    "another service": '{"version": "0", "source": "aws.s3", "detail-type": "Object Created", "detail": {}}',
    "no instance": '{"version": "0", "source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning"}',
    "a number for a name": notice("EC2 Spot Instance Interruption Warning", "i-1", **{"instance-id": 7}),
    "deep": "[" * 5000,
}


@pytest.mark.parametrize("body", MESSAGES.values(), ids=MESSAGES.keys())
def test_a_message_that_nobody_understands_is_named_once_and_dropped(body: str) -> None:
    world = World(node_class(), pool())
    world.interrupt(body)
    world.seconds(10)
    assert world.errors() == []
    assert len([one for one in world.problems() if one.startswith("Message interruption queue: ")]) == 1
    assert not world.runtime.queue(INTERRUPTIONS).messages


def test_a_bad_message_does_not_hold_up_a_good_one() -> None:
    world = World(node_class(), pool(capacity=("spot",)), deployment(2))
    world.settled(2)
    [node] = world.nodes()
    world.interrupt("nonsense")
    world.cloud.interrupt_spot(world.instance_of(node).instance_id)
    world.until(lambda: node["metadata"]["name"] not in {one["metadata"]["name"] for one in world.nodes()})
    world.settled(2)


def test_messages_about_instances_of_others_touch_nothing() -> None:
    world = World(node_class(), pool(), deployment(2))
    world.settled(2)
    for kind in ("EC2 Spot Instance Interruption Warning", "EC2 Instance State-change Notification"):
        world.interrupt(notice(kind, "i-0123456789abcdef0", state="terminated"))
    world.seconds(60)
    assert (len(world.claims()), world.errors()) == (1, [])


def test_half_a_catalogue_is_named_and_made_anew() -> None:
    world = World(node_class(), pool(), deployment(0))
    world.until(lambda: world.bucket.keys("catalogue/"))
    [key] = catalogue_keys(world.bucket)
    body = world.bucket.get(key)
    world.bucket.put(key, body[: len(body) // 2])
    world.scale(2)
    world.settled(2, within=120)
    assert [one for one in world.problems() if one.startswith(f"Catalogue {key}: ")]
    assert world.errors() == []


def test_without_a_catalogue_nothing_ends_and_pods_wait_for_the_next() -> None:
    world = World(node_class(), pool(), deployment(2))
    world.settled(2)
    with world.down("ec2.instance_types"):
        for key in (*world.bucket.keys("catalogue/"), *world.bucket.keys("market/")):
            world.bucket.put(key, b"")
        world.scale(6)
        world.seconds(200)
        assert (len(world.living()), len(world.running())) == (1, 4)
        assert "there is none that can be read" in world.log()
    world.settled(6, within=400)


def test_a_catalogue_is_made_of_what_was_kept_while_ec2_does_not_say_what_it_sells() -> None:
    world = World(node_class(), pool(), deployment(2))
    world.settled(2)
    with world.down("ec2.instance_types"):
        for key in world.bucket.keys("catalogue/"):
            world.bucket.put(key, b"")
        world.scale(6)
        world.settled(6, within=400)


def test_before_the_first_node_class_there_is_no_catalogue_and_nobody_misses_it() -> None:
    world = World(pool())
    world.seconds(400)
    assert world.bucket.keys("catalogue/") == ()
    assert [one for one in world.problems() if one.startswith("Catalogue")] == []


def test_a_row_that_cannot_be_read_is_named_and_stops_nothing() -> None:
    world = World(node_class(), pool(), deployment(0))
    for kind in ("launch-group", "unavailable"):
        world.table.write(kind, "on-demand:m5.xlarge:us-east-1a", "{nonsense", version=0)
    world.scale(2)
    world.settled(2)
    assert len([one for one in world.problems() if "remove the row" in one]) == 2
    assert world.errors() == []


def test_a_row_of_a_launch_that_is_spoilt_before_its_answer_starts_nothing_twice() -> None:
    world = World(node_class(), pool(), deployment(0))

    spoilt: list[str] = []

    def tap(call: Call) -> None:
        if (call.port, call.method, call.when) == ("ec2", "create_fleet", "after") and not spoilt:
            [row] = world.table.rows("launch-group")
            spoilt.append(world.table.write("launch-group", row.name, "{nonsense", version=row.version).name)
            raise Killed

    with world.tapped(tap):
        world.scale(2)
        world.settled(2)
    world.seconds(200)
    assert (len(spoilt), len(world.launched)) == (1, 1)


def test_no_definitions_no_harm() -> None:
    world = World(node_class(), pool(), deployment(2))
    world.settled(2)
    with world.tapped(_without_definitions):
        world.seconds(200)
    assert len(world.living()) == 1
    assert "is not installed: apply the CustomResourceDefinitions" in world.log()
    assert len(world.running()) == 2


def _without_definitions(call: Call) -> None:
    if call.port == "kube" and call.method == "list" and "karpenter" in call.detail:
        raise Gone(call.detail)


def test_an_ec2nodeclass_that_cannot_be_read_is_told_so_and_its_nodes_stay() -> None:
    world = World(node_class(), pool(), node_class("bad"), pool("theirs", of="bad", labels={"team": "bad"}))
    world.apply([deployment(2, "other", nodeSelector={"team": "bad"}), deployment(0)])
    world.settled(2)
    world.store(CLASSES, "bad", {"spec": {"role": 7}})
    world.scale(2)
    world.settled(4)
    world.seconds(330)
    assert (len(world.living()), len(world.running())) == (1, 4)
    assert world.condition(CLASSES, "bad", "ValidationSucceeded")[0] == "False"
    assert world.condition(POOLS, "theirs", "Ready")[0] == "False"
    assert world.errors() == []
