"""Mode `plan` in a cluster that nobody worked in before: what would be done is told, and nothing is done."""

from shared import ports
from shared.model.action import CreateNodeClaim
from sim.lambdas.template import ACTIVE, synthesised
from tests.scenario.worlds import World, deployment, node_class, pool


class Planning(World):
    """Deployed to look on."""

    def _world(self, function: str, environment: dict[str, str]) -> ports.World:
        return super()._world(function, {**environment, "JOINER_MODE": "plan"})


def test_what_would_be_made_is_told_though_no_node_class_was_ever_resolved() -> None:
    world = Planning(node_class(), pool(types=("m5.large",)), deployment(2), template=synthesised(context=ACTIVE))
    world.seconds(400)
    last = [entry for entry in world.entries if entry.function == "provision"][-1]
    made = [one for one in last.done if isinstance(one.action, CreateNodeClaim)]
    assert len(made) == 1
    assert {(one.result, one.message) for one in last.done} == {("skipped", "mode is plan")}
    assert not world.claims()
    assert not world.living()
    assert world.condition("ec2nodeclasses.karpenter.k8s.aws", "default", "Ready") == ("", "", "")
