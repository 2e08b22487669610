"""Workloads that schedules scale: to sleep, back again, and in spite of crashes and of changes by others."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.apply.kubernetes.writes import scale_workload
from shared.decide.lifecycle.scheduled_scaling import SCALED_REASON, decide_scheduled_scaling, parse_scale_memory
from shared.errors import Conflict
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import SCHEDULE, SCHEDULED_SCALE
from shared.model.core.metadata import ObjectMeta, Problem, build_pairs
from shared.model.decisions.action import PublishEvent, ScaleWorkload
from shared.model.karpenter.node_pool import NodePool
from shared.model.karpenter.schedules.schedule_grammar import NODE_POOL_KEYS, parse_schedule
from shared.model.kubernetes.workloads import Workload
from tests.support.catalogues import make_node_pool

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
EVENING = NOON + timedelta(hours=9)
NIGHT = "night: 0 20 * * * 11h scale=Deployment/shop/web"


def make_scheduled_pool(schedule: str, name: str = "default") -> NodePool:
    meta = ObjectMeta(name=name, annotations=((SCHEDULE, schedule),))
    return replace(make_node_pool(name), meta=meta, schedule=parse_schedule(meta, NODE_POOL_KEYS))


def make_web(replicas: int, memory: str = "") -> Workload:
    annotations = build_pairs({SCHEDULED_SCALE: memory} if memory else {})
    meta = ObjectMeta(name="web", namespace="shop", resource_version="7", annotations=annotations)
    return Workload(kind="Deployment", meta=meta, replicas=replicas)


def decide(web: Workload, at: datetime, *pools: NodePool, problems: tuple[Problem, ...] = ()) -> list[ScaleWorkload]:
    cluster = ClusterSnapshot(taken_at=at, node_pools=pools, deployments=(web,), problems=problems)
    return [action for action in decide_scheduled_scaling(cluster) if isinstance(action, ScaleWorkload)]


def test_workload_is_scaled_in_the_window_and_back_after_it() -> None:
    pool = make_scheduled_pool(NIGHT)
    assert decide(make_web(3), NOON, pool) == []
    (sleep,) = decide(make_web(3), EVENING, pool)
    assert (sleep.replicas, sleep.memory, sleep.resource_version) == (0, "from=3 to=0 by=default", "7")
    asleep = make_web(0, sleep.memory or "")
    assert decide(asleep, EVENING, pool) == []
    (wake,) = decide(asleep, NOON, pool)
    assert (wake.replicas, wake.memory) == (3, None)


def test_scaling_is_an_event_on_the_workload() -> None:
    cluster = ClusterSnapshot(taken_at=EVENING, node_pools=(make_scheduled_pool(NIGHT),), deployments=(make_web(3),))
    (event,) = [action for action in decide_scheduled_scaling(cluster) if isinstance(action, PublishEvent)]
    assert (event.kind, event.namespace, event.name, event.reason) == ("Deployment", "shop", "web", SCALED_REASON)
    assert event.message == "scaled from 3 to 0 replicas by the schedule of default"


def test_workload_that_no_schedule_lists_is_not_scaled() -> None:
    pool = make_scheduled_pool(NIGHT.replace("web", "cart"))
    assert decide(make_web(3), EVENING, pool) == []
    assert decide(make_web(3), EVENING, make_node_pool()) == []


@pytest.mark.parametrize("replicas", [1, 3, 5])
def test_replicas_that_a_user_sets_in_the_window_stay_also_after_it(replicas: int) -> None:
    pool, changed = make_scheduled_pool(NIGHT), make_web(replicas, "from=3 to=0 by=default")
    assert decide(changed, EVENING, pool) == []
    (forget,) = decide(changed, NOON, pool)
    assert (forget.replicas, forget.memory) == (None, None)


def test_workload_that_already_sleeps_is_remembered_so_that_a_user_can_scale_it() -> None:
    pool = make_scheduled_pool(NIGHT)
    (sleep,) = decide(make_web(0), EVENING, pool)
    assert sleep.memory == "from=0 to=0 by=default"
    assert decide(make_web(0, sleep.memory), EVENING, pool) == []
    assert decide(make_web(2, sleep.memory), EVENING, pool) == []


def test_next_window_with_other_replicas_keeps_the_usual_number() -> None:
    later = make_scheduled_pool(f"{NIGHT}\nlate: 0 21 * * * 1h scale=Deployment/shop/web:1")
    (change,) = decide(make_web(0, "from=3 to=0 by=default"), EVENING, later)
    assert (change.replicas, change.memory) == (1, "from=3 to=1 by=default")


@pytest.mark.parametrize("replicas", [0, 3])
def test_scaling_that_was_killed_is_repeated(replicas: int) -> None:
    memory = "from=3 to=0 by=default"
    (sleep,) = decide(make_web(replicas, f"{memory} scaling"), EVENING, make_scheduled_pool(NIGHT))
    assert (sleep.replicas, sleep.memory) == (0, memory)


def test_of_two_nodepools_that_list_a_workload_the_fewest_replicas_win() -> None:
    pools = (make_scheduled_pool(f"{NIGHT}:1", "a"), make_scheduled_pool(NIGHT, "b"))
    (sleep,) = decide(make_web(3), EVENING, *pools)
    assert sleep.memory == "from=3 to=0 by=b"


def test_workload_wakes_if_its_schedule_is_deleted_but_not_if_it_cannot_be_read() -> None:
    asleep = make_web(0, "from=3 to=0 by=default")
    assert [action.replicas for action in decide(asleep, EVENING)] == [3]
    invalid = (Problem(kind="NodePool", name="default", message="invalid"),)
    unserved = (Problem(kind="CustomResourceDefinition", name="nodepools.karpenter.sh", message="not served"),)
    assert decide(asleep, NOON, problems=invalid) == []
    assert decide(asleep, NOON, problems=unserved) == []


def test_annotation_that_cannot_be_parsed_is_left_alone() -> None:
    assert parse_scale_memory("3") is None
    assert decide(make_web(3, "3"), EVENING, make_scheduled_pool(NIGHT)) == []


class Killed(Exception):
    """The function was killed."""


class OneWorkload:
    """An API server with one Deployment, which kills its client at a call."""

    def __init__(self, replicas: int) -> None:
        """Start with *replicas*, and with no limit of calls."""
        self.web, self.version, self.calls_left = make_web(replicas), 7, 99

    def patch(self, path: str, body: bytes) -> bytes:
        if self.calls_left == 0:
            raise Killed
        self.calls_left -= 1
        patch = msgspec.json.decode(body)
        if patch["metadata"].get("resourceVersion", str(self.version)) != str(self.version):
            raise Conflict("changed")
        memory = (
            patch["metadata"].get("annotations", {}).get(SCHEDULED_SCALE, self.web.meta.get_annotation(SCHEDULED_SCALE))
        )
        replicas = patch["spec"]["replicas"] if path.endswith("/scale") else self.web.replicas
        self.write(replicas, memory or "")
        return msgspec.json.encode({"metadata": {"resourceVersion": str(self.version)}})

    def write(self, replicas: int, memory: str) -> None:
        self.version += 1
        web = make_web(replicas, memory)
        self.web = replace(web, meta=replace(web.meta, resource_version=str(self.version)))


@given(
    st.integers(0, 5),
    st.lists(st.tuples(st.integers(0, 48), st.integers(0, 3), st.none() | st.integers(0, 5)), max_size=12),
)
@settings(max_examples=200, deadline=None)
def test_crashes_never_lose_the_usual_replicas_and_changes_by_users_are_respected(
    usual: int, steps: list[tuple[int, int, int | None]]
) -> None:
    pool, server, at = make_scheduled_pool(NIGHT), OneWorkload(usual), NOON
    expected, is_changed_by_user = usual, False
    for hours, calls, user_replicas in steps:
        at += timedelta(hours=hours)
        is_night = at.hour >= 20 or at.hour < 7
        _run(server, pool, at, calls)
        _run(server, pool, at, 99)
        if not is_night:
            is_changed_by_user = False
        assert server.web.replicas == (0 if is_night and not is_changed_by_user else expected)
        assert bool(server.web.meta.get_annotation(SCHEDULED_SCALE)) is is_night
        if user_replicas is not None and user_replicas != server.web.replicas and (user_replicas or not is_night):
            server.write(user_replicas, server.web.meta.get_annotation(SCHEDULED_SCALE))
            expected, is_changed_by_user = user_replicas, is_night
        _run(server, pool, at, 99)
        assert decide(server.web, at, pool) == []


def _run(server: OneWorkload, pool: NodePool, at: datetime, calls: int) -> None:
    server.calls_left = calls
    try:
        for action in decide(server.web, at, pool):
            scale_workload(action, server)  # type: ignore[arg-type]
    except Killed:
        pass
