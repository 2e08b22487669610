"""What disruption is given and cannot use: it is named, its own nodes stay, and the rest gets cheaper all the same."""

from typing import Any

import pytest

from shared.model.action import EvictPod
from shared.ports import World as Ports
from tests.scenario.worlds import POOLS, World, budget, deployment, node_class, pod, pool

CHEAPER = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "30s"}
SIZES = ("m5.large", "m5.xlarge", "m5.2xlarge")


def two_pools(disruption: dict[str, Any]) -> World:
    """Answer a world of two pools with a node each, one of which, `bad`, says *disruption*; both become empty."""
    world = World(node_class(), pool(), pool("bad", labels={"team": "bad"}), deployment(2))
    world.apply([deployment(2, "theirs", nodeSelector={"team": "bad"})])
    world.settled(4)
    world.store(POOLS, "bad", {"spec": {"disruption": disruption}})
    world.scale(0)
    world.scale(0, "theirs")
    return world


def pools_of(world: World) -> list[str]:
    return [node["metadata"]["labels"]["karpenter.sh/nodepool"] for node in world.nodes()]


BAD_BUDGETS = {
    "a cron that is none": (
        {"budgets": [{"nodes": "100%", "schedule": "0 25 * * *", "duration": "1h"}]},
        "spec.disruption.budgets[0]: hour '25' is not a range within 0-23",
    ),
    "an unknown reason": (
        {"budgets": [{"nodes": "0", "reasons": ["Expired"]}]},
        "spec.disruption.budgets[0]: 'Expired' is no reason: write some of Drifted, Empty, Underutilized",
    ),
    "more than everything": (
        {"budgets": [{"nodes": "101%"}]},
        "spec.disruption.budgets[0]: nodes '101%' is neither a number nor a percentage up to 100%",
    ),
}


@pytest.mark.parametrize(("disruption", "words"), BAD_BUDGETS.values(), ids=BAD_BUDGETS.keys())
def test_a_budget_that_cannot_be_read_holds_its_own_pool_only_until_it_is_mended(
    disruption: dict[str, Any], words: str
) -> None:
    world = two_pools(disruption)
    world.until(lambda: pools_of(world) == ["bad"])
    world.seconds(180)
    assert pools_of(world) == ["bad"]
    assert [one for one in world.problems() if one.startswith(f"NodePool bad: {words}")]
    assert [one for one in world.events("bad", "DisruptionBlocked") if words in one]
    assert world.errors() == []
    world.store(POOLS, "bad", {"spec": {"disruption": {"budgets": [{"nodes": "100%"}]}}})
    world.until(lambda: not world.nodes(), 180)


class Budgeted(World):
    """A world with a budget for the whole cluster."""

    said = ""

    def _world(self, function: str, environment: dict[str, str]) -> Ports:
        return super()._world(function, environment | {"JOINER_DISRUPTION_BUDGETS": self.said})


def test_a_setting_that_cannot_be_read_is_named_and_nothing_goes_until_it_is_mended() -> None:
    world = Budgeted(node_class(), pool(), deployment(2))
    world.settled(2)
    world.said = '[{"nodes": "many"}]'
    world.scale(0)
    world.seconds(180)
    assert len(world.nodes()) == 1
    words = "Setting joiner: joiner:disruption-budgets[0]: nodes 'many' is neither a number"
    assert [one for one in world.problems() if one.startswith(words)]
    assert world.errors() == []
    world.said = '[{"nodes": "1"}]'
    world.until(lambda: not world.nodes(), 180)


def test_a_budget_of_the_cluster_holds_over_pools_together() -> None:
    world = Budgeted(node_class(), pool("a", labels={"pool": "a"}), pool("b", labels={"pool": "b"}))
    world.apply(deployment(8, name, nodeSelector={"pool": name}) for name in ("a", "b"))
    world.settled(16)
    assert len(world.nodes()) == 4
    world.said = '[{"nodes": "1"}]'
    for name in ("a", "b"):
        world.scale(0, name)
    seen: set[int] = set()

    def over() -> bool:
        seen.add(sum("deletionTimestamp" in one["metadata"] for one in world.claims()))
        return not world.nodes()

    world.until(over, 900)
    assert seen == {0, 1}


def test_a_budget_over_every_pod_of_a_namespace_is_named_and_other_namespaces_go_on() -> None:
    pools = [pool(name, labels={"team": name}, types=SIZES, disruption=CHEAPER) for name in ("held", "free")]
    world = World(node_class(), *pools, deployment(8, nodeSelector={"team": "held"}))
    theirs = deployment(8, "theirs", nodeSelector={"team": "free"})
    theirs["metadata"]["namespace"] = "elsewhere"
    guard = budget("everything", maxUnavailable=0)
    guard["spec"]["selector"] = {}
    world.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}}, theirs, guard])
    world.until(lambda: len(world.nodes()) == 2 and not world.waiting())
    world.seconds(60)
    world.scale(2)
    world.live.scale("Deployment", "elsewhere", "theirs", 2)
    world.until(lambda: sorted(types_of(world)) == [("free", "m5.large"), ("held", "m5.2xlarge")], 400)
    world.seconds(180)
    assert sorted(types_of(world)) == [("free", "m5.large"), ("held", "m5.2xlarge")]
    assert {one.namespace for one in world.done(EvictPod)} == {"elsewhere"}
    words = "spec.selector is empty, so it selects every pod of namespace default: 2 pods may not be evicted"
    assert [one for one in world.problems() if one.startswith(f"PodDisruptionBudget default/everything: {words}")]
    [held] = [node["metadata"]["name"] for node in world.nodes() if node["metadata"]["labels"]["team"] == "held"]
    blocked = world.events(held, "DisruptionBlocked")
    assert any("is held by pod disruption budget default/everything (0 allowed)" in one for one in blocked)
    world.live.api.delete("poddisruptionbudgets.policy", "everything", "default")
    world.until(lambda: sorted(types_of(world)) == [("free", "m5.large"), ("held", "m5.large")], 400)


def types_of(world: World) -> list[tuple[str, str]]:
    labels = [node["metadata"]["labels"] for node in world.nodes()]
    return [(one.get("team", ""), one.get("node.kubernetes.io/instance-type", "")) for one in labels]


def test_a_pod_without_an_owner_is_told_before_its_node_goes() -> None:
    world = World(node_class(), pool(types=SIZES, disruption=CHEAPER), deployment(7), pod("alone"))
    world.settled(8)
    world.scale(1)
    world.until(lambda: bool(world.events("alone", "WillNotComeBack")))
    assert "alone" in {one["metadata"]["name"] for one in world.running()}
    world.until(lambda: "m5.large" in {one.instance_type for one in world.living()}, 300)
    world.settled(1)
    assert world.errors() == []


def test_a_node_without_a_price_is_named_stays_and_goes_when_it_is_empty() -> None:
    world = World(node_class(), pool(types=SIZES, disruption=CHEAPER), deployment(8))
    world.settled(8)
    [node] = world.nodes()
    label = {"node.kubernetes.io/instance-type": "m5.mystery"}
    world.live.api.patch("nodes", node["metadata"]["name"], {"metadata": {"labels": label}})
    world.scale(2)
    world.seconds(240)
    assert [one.instance_type for one in world.living()] == ["m5.2xlarge"]
    assert [one for one in world.problems() if one.startswith("InstanceType m5.mystery: has no price as on-demand in ")]
    world.scale(0)
    world.until(lambda: not world.nodes(), 240)
    assert world.errors() == []
