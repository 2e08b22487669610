"""Expiry and upgrades in the whole world: what is old goes, busy or not, and what is there is used first."""

from datetime import timedelta

from shared.model.action import DeleteObject
from tests.scenario.worlds import World, budget, deployment, node_class, pool

OLD = {"expireAfter": "20m"}


def ages_of(world: World) -> list[str]:
    """Answer the nodes, the oldest first."""
    some = sorted((node["metadata"]["creationTimestamp"], node["metadata"]["name"]) for node in world.nodes())
    return [name for _, name in some]


def test_a_node_that_expires_goes_though_its_pods_forbid_it_and_only_a_grace_period_moves_them() -> None:
    stays = {"karpenter.sh/do-not-disrupt": "true"}
    world = World(
        node_class(),
        pool(template=OLD | {"terminationGracePeriod": "10m"}, disruption={"budgets": [{"nodes": "0"}]}),
        deployment(2, annotations=stays),
        budget(maxUnavailable=0),
    )
    world.settled(2)
    [old] = ages_of(world)
    born = world.clock.now()
    world.until(lambda: bool([one for one in world.done(DeleteObject) if one.why == "expired"]), 1400)
    assert timedelta(minutes=19) <= world.clock.now() - born <= timedelta(minutes=22)
    world.seconds(300)
    assert old in ages_of(world)
    assert len(world.running()) == 2
    world.until(lambda: old not in ages_of(world), 600)
    world.settled(2)


def test_pods_of_a_node_that_expires_use_the_room_that_there_is() -> None:
    world = World(node_class(), pool(template=OLD), deployment(4))
    world.settled(4)
    world.seconds(600)
    world.scale(6)
    world.settled(6)
    first, second = ages_of(world)
    for pod in [one for one in world.running() if one["spec"]["nodeName"] == first][:2]:
        world.live.api.patch("pods", pod["metadata"]["name"], {"metadata": {"annotations": COST}}, "default")
    world.scale(4)
    world.settled(4)
    assert {pod["spec"]["nodeName"] for pod in world.running()} == {first, second}
    launched = len(world.launched)
    world.until(lambda: ages_of(world) == [second], 1400)
    world.settled(4)
    assert {pod["spec"]["nodeName"] for pod in world.running()} == {second}
    assert len(world.launched) == launched == 2


COST = {"controller.kubernetes.io/pod-deletion-cost": "-100"}


def test_nodes_that_were_born_together_expire_at_times_of_their_own() -> None:
    own = pool(template=OLD)
    own["metadata"]["annotations"] = {"joiner.dev/expiry-jitter-percent": "50"}
    world = World(node_class(), own, deployment(12))
    world.settled(12)
    assert len(world.nodes()) == 3
    assert len({claim["spec"]["expireAfter"] for claim in world.claims()}) == 3


def test_an_upgrade_of_the_control_plane_renews_the_nodes_within_their_budget() -> None:
    world = World(node_class(), pool(disruption={"budgets": [{"nodes": "1"}]}), deployment(12))
    world.settled(12)
    world.seconds(60)
    before = set(ages_of(world))
    assert len(before) == 3
    world.cloud.upgrade("1.35")
    seen: set[int] = set()

    def renewed() -> bool:
        seen.add(sum("deletionTimestamp" in one["metadata"] for one in world.claims()))
        return not before & set(ages_of(world))

    world.until(renewed, 3600)
    world.settled(12)
    assert max(seen) == 1
