"""The driver of decisions: it performs requests in order and records what a replay needs."""

from datetime import timedelta

import pytest

from shared.cycles.setup.decision_driver import DecisionDriver, run_decision
from shared.cycles.setup.run_cycle import CycleReport
from shared.errors import Unreachable
from shared.model.decisions import decision_answers as answers
from shared.model.decisions import decision_requests as requests
from shared.model.decisions.action import FollowUp
from shared.model.decisions.action_outcome import Outcome
from shared.model.decisions.decision_requests import DecisionProcess
from shared.report.journal.decision_record import build_inputs
from sim.fault_tap import PortCall
from tests.support.actions_world import Outside
from tests.support.command_cases import make_command, make_command_state
from tests.support.launch_cases import make_claim, make_cluster

WAKE = FollowUp(function="provision", after=timedelta(), message="")


def request_lookups() -> DecisionProcess[CycleReport]:
    yield requests.FindSparedInstances(actions=())
    existing: answers.ExistingTemplates = yield requests.ListLaunchTemplates()
    cleanup: answers.CleanupDue = yield requests.CheckCleanupDue()
    outcomes: tuple[Outcome, ...] = yield requests.PerformActions(actions=(WAKE,))
    return CycleReport(outcomes=outcomes, quiet=cleanup.is_due and existing.templates == ())


@pytest.mark.parametrize("is_tick", [True, False])
def test_answers_are_recorded_in_order_except_those_a_replay_assumes(*, is_tick: bool) -> None:
    world = Outside().build_world()
    driver = DecisionDriver(world, None, make_cluster(), is_tick=is_tick)
    report = driver.run(request_lookups(), build_inputs(world.settings))
    due_answers = (answers.CleanupDue(is_due=True),) if is_tick else ()
    assert report.inputs is not None
    assert report.inputs.answers == (answers.ExistingTemplates(templates=()), *due_answers)
    assert [outcome.result for outcome in report.outcomes] == ["done"]
    assert report.quiet is is_tick


def test_failed_lookup_is_reported_as_a_problem() -> None:
    def refuse_list(call: PortCall) -> None:
        if (call.method, call.phase) == ("describe_launch_templates", "before"):
            raise Unreachable("no answer")

    world = Outside().build_world(tap=refuse_list)
    report = DecisionDriver(world, None, make_cluster()).run(request_lookups(), build_inputs(world.settings))
    assert report.inputs is not None
    assert report.inputs.answers == ()
    assert [problem.kind for problem in report.problems] == ["EC2"]


def test_command_state_is_not_written_without_the_lease() -> None:
    outside = Outside()
    driver = DecisionDriver(outside.build_world(), None, make_cluster())
    request = requests.WriteCommandState(command_state=make_command_state(make_command("a")))
    assert driver.perform_request(request) is None
    assert outside.list_called_methods("table") == []


def test_launch_observation_is_recorded_only_if_a_nodeclaim_needs_a_launch() -> None:
    def observe() -> DecisionProcess[CycleReport]:
        yield requests.ObserveLaunches()
        return CycleReport()

    world = Outside().build_world()
    driver = DecisionDriver(world, None, make_cluster(make_claim("a")))
    inputs = driver.run(observe(), build_inputs(world.settings)).inputs
    assert inputs is not None
    assert inputs.answers == ()


def test_fault_ends_the_decision_after_the_requests_performed_so_far() -> None:
    performed: list[requests.DecisionRequest] = []

    def perform_request(request: requests.DecisionRequest) -> object:
        if isinstance(request, requests.CheckCleanupDue):
            raise Unreachable("no answer")
        performed.append(request)
        return answers.ExistingTemplates()

    with pytest.raises(Unreachable):
        run_decision(request_lookups(), perform_request)
    assert [type(request).__name__ for request in performed] == ["FindSparedInstances", "ListLaunchTemplates"]
