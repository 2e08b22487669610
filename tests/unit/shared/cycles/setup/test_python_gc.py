"""The collector is kept off while a plan is made, and is as it was before when that is done or has failed."""

import gc

import pytest

from shared.cycles.provision import decide_provisioning
from shared.cycles.setup.decision_driver import run_decision
from shared.cycles.setup.python_gc import pause_garbage_collection
from shared.cycles.setup.time_limit import Deadline
from shared.model.decisions.action_outcome import Outcome
from shared.model.decisions.decision_requests import DecisionRequest
from shared.report.journal.decision_record import build_inputs
from sim.benchmarks.decision_time import build_benchmark_world
from tests.support.catalogues import make_cluster_snapshot, make_pod


@pause_garbage_collection()
def is_on(*, fails: bool = False) -> bool:
    """Whether the collector is."""
    if fails:
        raise ValueError("on purpose")
    return gc.isenabled()


def test_garbage_collection_is_paused_and_restored_even_after_an_exception() -> None:
    assert not is_on()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="on purpose"):
        is_on(fails=True)
    assert gc.isenabled()


def test_disabled_garbage_collection_stays_disabled() -> None:
    gc.disable()
    try:
        assert not is_on()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_provisioning_plan_is_computed_with_garbage_collection_paused() -> None:
    gc_states: list[bool] = []

    def is_over() -> bool:
        gc_states.append(gc.isenabled())
        return False

    def perform_request(request: DecisionRequest) -> tuple[Outcome, ...]:
        assert gc.isenabled()
        requests.append(request)
        return ()

    requests: list[DecisionRequest] = []
    inputs, cluster = build_inputs(build_benchmark_world(1).settings), make_cluster_snapshot(make_pod("web"))
    process = decide_provisioning(cluster, inputs, Deadline(is_over), has_launches=False)
    assert [note.kind for note in run_decision(process, perform_request).notes] == ["Pod"]
    assert [type(request).__name__ for request in requests] == ["PerformActions"]
    assert gc_states
    assert not any(gc_states)
