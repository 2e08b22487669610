"""Mode `plan` in a cluster that is new to Joiner: the plan is reported and nothing is changed."""

from shared.model.decisions.action import CreateNodeClaim
from shared.ports import world as ports_world
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.scenario.worlds import World, make_deployment, make_node_class, make_node_pool


class Planning(World):
    """Deployed in plan mode."""

    def _build_world(self, function: str, environment: dict[str, str]) -> ports_world.World:
        return super()._build_world(function, {**environment, "JOINER_MODE": "plan"})


def test_plan_mode_reports_the_planned_nodeclaim_for_an_unresolved_node_class() -> None:
    world = Planning(
        make_node_class(),
        make_node_pool(types=("m5.large",)),
        make_deployment(2),
        template=synthesize_template(settings=ACTIVE_SETTINGS),
    )
    world.advance_seconds(400)
    last = [entry for entry in world.entries if entry.function == "provision"][-1]
    create_results = [result for result in last.results if isinstance(result.action, CreateNodeClaim)]
    assert len(create_results) == 1
    assert {(result.result, result.message) for result in last.results} == {("skipped", "mode is plan")}
    assert not world.list_claims()
    assert not world.list_active_instances()
    assert world.get_condition("ec2nodeclasses.karpenter.k8s.aws", "default", "Ready") == ("", "", "")
