"""Runs a decision against its record: the only source of what the cycle asked the API server, EC2 and the table."""

from collections import defaultdict
from typing import assert_never

import msgspec
from msgspec.structs import replace

from shared.decide.launch.fleets.launch_retries import LaunchObservation
from shared.model.cloud_provider.instance_type import Catalog
from shared.model.cluster import ClusterSnapshot
from shared.model.decisions import decision_answers as answers
from shared.model.decisions import decision_requests as requests
from shared.model.decisions.action import Action, CreateNodeClaim, LaunchInstances
from shared.model.decisions.action_outcome import Outcome
from shared.model.decisions.decision_answers import AnswerT, FleetResults, ObservedChanges, find_answer
from shared.model.decisions.decision_requests import DecisionRequest
from shared.model.karpenter.node_claim import NodeClaim
from shared.report.journal.decision_record import DecisionInputs
from shared.report.journal.journal import ActionResult, JournalEntry
from shared.report.journal.replay_inputs import normalize_template_names
from shared.store.commands import without_replacement_details


def normalize_action(action: Action) -> Action:
    """Return *action* as it is compared: a launch without user data and the names derived from it."""
    return (
        replace(action, group=normalize_template_names(action.group)) if isinstance(action, LaunchInstances) else action
    )


def _build_action_key(action: Action) -> bytes:
    return msgspec.json.encode(normalize_action(action), order="deterministic")


class ReplayDriver:
    """The world as it was recorded; what was not requested at the time gets the default answer."""

    def __init__(
        self, entry: JournalEntry, inputs: DecisionInputs, cluster: ClusterSnapshot, overlaid_catalog: Catalog | None
    ) -> None:
        """Replay *entry* with *cluster*; *overlaid_catalog* is the one that NodeOverlays were applied to."""
        self._results_by_action: dict[bytes, list[ActionResult]] = defaultdict(list)
        for result in entry.results:
            self._results_by_action[_build_action_key(result.action)].append(result)
        self._recorded_claims = {
            result.action.claim.name for result in entry.results if isinstance(result.action, CreateNodeClaim)
        }
        self._missing_claims, self._new_claims = self._recorded_claims.copy(), dict[str, NodeClaim]()
        self._answers = list(inputs.answers or ())
        self._cluster, self._overlaid_catalog = cluster, overlaid_catalog

    def perform_request(self, request: DecisionRequest) -> object:  # noqa: PLR0911 - one case each
        """Return the recorded answer to *request*; perform nothing."""
        match request:
            case requests.PerformActions():
                return self._find_outcomes(request.actions)
            case requests.WriteCommandState():
                stored_state = without_replacement_details(request.command_state)
                return replace(stored_state, version=stored_state.version + 1)
            case requests.ObserveLaunches():
                return self._observe_launches()
            case requests.ReserveLimits():
                return self._take_answer(answers.LimitConflicts)
            case requests.FindSparedInstances():
                return self._take_answer(answers.SparedInstances)
            case requests.ListLaunchTemplates():
                return self._take_answer(answers.ExistingTemplates)
            case requests.CheckCleanupDue():
                return self._take_answer(answers.CleanupDue)
            case requests.ApplyOverlays():
                applied = self._take_answer(answers.AppliedOverlays)
                catalog, at = self._overlaid_catalog, applied.overlaid_at or self._cluster.taken_at
                overlaid_cluster = replace(self._cluster, node_overlays=applied.overlays, catalog=catalog, taken_at=at)
                return overlaid_cluster if applied.overlays else self._cluster
            case requests.QueryAccount():
                return find_answer(self._answers, answers.AccountAnswersRecord) or answers.AccountAnswersRecord()
            case _:
                assert_never(request)

    def _take_answer(self, kind: type[AnswerT]) -> AnswerT:
        """Return the next recorded answer of *kind* before the next observation; the default if there is none."""
        for index, answer in enumerate(self._answers):
            if isinstance(answer, ObservedChanges):
                break
            if isinstance(answer, kind):
                del self._answers[index]
                return answer
        return kind()

    def _find_outcomes(self, actions: tuple[Action, ...]) -> tuple[Outcome, ...]:
        """Return the recorded outcomes; an action without a recorded result succeeds."""
        outcomes = tuple(self._find_outcome(action) for action in actions)
        for outcome in outcomes:
            if isinstance(outcome.action, CreateNodeClaim) and outcome.result == "done":
                claim = outcome.action.claim
                self._missing_claims.discard(claim.name)
                self._new_claims |= {} if claim.name in self._recorded_claims else {claim.name: claim}
        if not any(isinstance(action, LaunchInstances) for action in actions):
            return outcomes
        fleet_results = self._take_answer(FleetResults)
        return tuple(_with_fleet_result(outcome, fleet_results) for outcome in outcomes)

    def _find_outcome(self, action: Action) -> Outcome:
        recorded_results = self._results_by_action.get(_build_action_key(action))
        if not recorded_results:
            return Outcome(action=action, result="done")
        result = recorded_results.pop(0)
        return msgspec.convert({"action": action, "result": result.result, "message": result.message}, Outcome)

    def _observe_launches(self) -> LaunchObservation:
        """Return what the next recorded observation changes; claims that are new now are in the first one only."""
        while self._answers and not isinstance(self._answers[0], ObservedChanges):
            del self._answers[0]
        recorded_changes = find_answer(self._answers[:1], ObservedChanges)
        changes = recorded_changes or ObservedChanges(
            at=self._cluster.taken_at, launch_groups=self._cluster.launch_groups
        )
        del self._answers[:1]
        self._cluster = _apply_changes(self._cluster, changes)
        claims = [
            claim
            for claim in self._cluster.node_claims
            if claim.name not in self._missing_claims
            and (recorded_changes or claim.is_launched() or claim.is_deleting())
        ]
        claims = sorted((*claims, *self._new_claims.values()), key=lambda claim: claim.name)
        self._new_claims.clear()
        cluster = replace(self._cluster, node_claims=tuple(claims))
        return LaunchObservation(cluster=cluster, reservations=changes.books, addresses=changes.addresses)


def _with_fleet_result(outcome: Outcome, fleet_results: FleetResults) -> Outcome:
    """Return the *outcome* of a launch with EC2's recorded result."""
    if not isinstance(outcome.action, LaunchInstances):
        return outcome
    name = outcome.action.group.name
    fleet_result = dict(fleet_results.fleet_results).get(name)
    if fleet_result is None:
        return outcome
    sent_group = next((group for group in fleet_results.stored_groups if group.name == name), outcome.action.group)
    return replace(outcome, group=replace(sent_group, result=fleet_result))


def _apply_changes(cluster: ClusterSnapshot, changes: ObservedChanges) -> ClusterSnapshot:
    claims = {claim.name: claim for claim in cluster.node_claims if claim.name not in changes.removed_claims}
    claims |= {claim.name: claim for claim in changes.claims}
    return replace(
        cluster,
        taken_at=changes.at,
        node_claims=tuple(claim for _, claim in sorted(claims.items())),
        unavailable=cluster.unavailable if changes.unavailable is None else changes.unavailable,
        launch_groups=changes.launch_groups,
        group_usage=changes.group_usage or cluster.group_usage,
    )
