"""Runs a decision against the world: performs its requests, and records the answers that a replay needs."""

from collections.abc import Callable
from typing import TypeVar, assert_never

from msgspec.structs import replace

from shared.apply.executor import apply_actions
from shared.cycles.interactions import launch_observation, lifecycle_lookups
from shared.cycles.interactions.account_lookup import query_account
from shared.cycles.setup.python_gc import pause_garbage_collection
from shared.cycles.setup.run_cycle import CycleReport
from shared.cycles.setup.time_limit import REPORT_TIME_RESERVE, build_time_check
from shared.decide.launch.fleets.launch_retries import LaunchObservation
from shared.errors import Conflict, Invalid
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Problem
from shared.model.decisions import decision_answers as answers
from shared.model.decisions import decision_requests as requests
from shared.model.decisions.action_outcome import Outcome
from shared.model.decisions.command import CommandState
from shared.model.decisions.decision_answers import AccountAnswersRecord, AnswerT, RecordedAnswer
from shared.model.decisions.decision_requests import DecisionProcess, DecisionRequest
from shared.model.karpenter.node_class import EC2NodeClass
from shared.ports.storage import FencingToken
from shared.ports.tracing import OpenSegment, open_no_segment
from shared.ports.world import World
from shared.report.journal.decision_record import DecisionInputs
from shared.state.node_claim_state import map_nodes_to_claims
from shared.store.commands import COMMAND_KIND, write_command
from shared.store.subnet_addresses import record_free_addresses
from shared.take.feature_gated_snapshot import with_overlays
from shared.take.kubernetes.claim_lookup import find_spared_instances

ResultT = TypeVar("ResultT")
ReportT = TypeVar("ReportT", bound=CycleReport)


def run_decision(
    process: DecisionProcess[ResultT],
    perform_request: Callable[[DecisionRequest], object],
    open_segment: OpenSegment = open_no_segment,
) -> ResultT:
    """Run *process* with the answers of *perform_request*; garbage is not collected while it computes.

    Each computation between two requests is a segment `decide` of the trace.
    """
    answer: object = None
    while True:
        try:
            with pause_garbage_collection(), open_segment("decide", {}):
                request = process.send(answer)
        except StopIteration as result:
            value: ResultT = result.value
            return value
        answer = perform_request(request)


class DecisionDriver:
    """The world of a cycle as the decision reaches it, under the cycle's lease."""

    def __init__(
        self, world: World, fence: FencingToken | None, cluster: ClusterSnapshot, *, is_tick: bool = False
    ) -> None:
        """Decide about *cluster*, the snapshot of *world*; only a tick cleans up launch templates."""
        self._answers: list[RecordedAnswer] = []
        self._problems: list[Problem] = []
        self._world, self._fence, self._cluster, self._is_tick = world, fence, cluster, is_tick

    def run(self, process: DecisionProcess[ReportT], inputs: DecisionInputs) -> ReportT:
        """Run *process*; return its report with *inputs*, the recorded answers and the problems of requests.

        Raises:
            Fault: see `perform_request`; what was performed before stays performed.
        """
        report = run_decision(process, self.perform_request, self._world.open_segment)
        inputs = replace(inputs, answers=tuple(self._answers))
        return replace(report, inputs=inputs, problems=(*self._problems, *report.problems))

    def perform_request(self, request: DecisionRequest) -> object:  # noqa: PLR0911 - one case each
        """Perform *request*, record what a replay needs of the answer, and return the answer.

        Raises:
            Fault: something could not be read or written.
        """
        world = self._world
        match request:
            case requests.PerformActions():
                return self._perform_actions(request)
            case requests.WriteCommandState():
                return self._write_command_state(request.command_state)
            case requests.ObserveLaunches():
                return self._observe_launches()
            case requests.ReserveLimits():
                return self._record(launch_observation.write_limit_reservations(request, world, self._fence))
            case requests.FindSparedInstances():
                lookup = find_spared_instances(request.actions, self._cluster, world.kube)
                self._problems += lookup.problems
                return self._record(answers.SparedInstances(instance_ids=lookup.spared_ids))
            case requests.ListLaunchTemplates():
                return self._record(lifecycle_lookups.list_launch_templates(world, self._problems))
            case requests.CheckCleanupDue():
                is_due = self._is_tick and lifecycle_lookups.is_cleanup_due(world, self._cluster)
                return self._record(answers.CleanupDue(is_due=is_due))
            case requests.ApplyOverlays():
                overlaid_cluster = with_overlays(world, self._cluster)
                self._record(lifecycle_lookups.build_applied_overlays(overlaid_cluster))
                return overlaid_cluster
            case requests.QueryAccount():
                return self._query_account(request.node_classes)
            case _:
                assert_never(request)

    def _record(self, answer: AnswerT) -> AnswerT:
        """Record *answer*, unless a replay assumes it anyway."""
        if answer != type(answer)():
            self._answers.append(answer)
        return answer

    def _perform_actions(self, request: requests.PerformActions) -> tuple[Outcome, ...]:
        fence = self._fence if request.is_guarded else None
        is_over = build_time_check(self._world, REPORT_TIME_RESERVE) if request.is_last else None
        is_parallel = self._world.max_parallel_calls > 1 and len(request.actions) > 1
        claim_by_node = map_nodes_to_claims(self._cluster) if is_parallel else {}
        outcomes = apply_actions(request.actions, self._world, fence, is_over, claim_by_node)
        self._record(launch_observation.build_fleet_results(outcomes))
        return outcomes

    def _write_command_state(self, command_state: CommandState) -> CommandState | Problem | None:
        if self._fence is None:
            return None
        try:
            return write_command(command_state, self._world, self._fence)
        except Conflict:
            return None
        except Invalid as fault:
            name = command_state.command.command_id
            return Problem(kind=COMMAND_KIND, name=name, message=f"cannot be recorded: {fault}")

    def _observe_launches(self) -> LaunchObservation:
        observation = launch_observation.observe_launches(self._world, self._cluster)
        if self._answers or launch_observation.has_pending_launches(observation.cluster):
            self._answers.append(launch_observation.build_observed_changes(self._cluster, observation))
        self._cluster = observation.cluster
        return observation

    def _query_account(self, node_classes: tuple[EC2NodeClass, ...]) -> AccountAnswersRecord:
        """Query the account, and record the free addresses of its subnets for launches."""
        account = query_account(self._world, node_classes)
        self._problems += account.problems
        class_answers = account.node_class_answers
        record_free_addresses(
            (subnet for _, class_answer in class_answers for subnet in class_answer.subnets or ()), self._world
        )
        record = AccountAnswersRecord(answers=class_answers, profile=self._world.settings.instance_profile)
        self._answers.append(record)
        return record
