"""Calls in threads: bounded, in order within a group, the lowest position first."""

from contextvars import ContextVar
from threading import Barrier, Event, get_ident
from time import sleep

import pytest

from shared.apply.parallel_calls import run_in_threads
from sim.fault_tap import Killed


def test_each_group_is_performed_in_order_and_the_lowest_position_first() -> None:
    performed: list[int] = []
    run_in_threads([(0, 4, 5), (1, 3), (2,)], performed.append, 1)
    assert performed == [0, 1, 2, 3, 4, 5]


def test_groups_are_performed_at_the_same_time() -> None:
    barrier = Barrier(4)

    def perform(_: int) -> None:
        barrier.wait(10)

    run_in_threads([(0,), (1,), (2,), (3,)], perform, 4)
    assert not barrier.broken


def test_no_more_threads_are_used_than_allowed() -> None:
    threads: set[int] = set()

    def perform(position: int) -> None:
        threads.add(get_ident())
        sleep(0.001 * (position % 3))

    run_in_threads([(position,) for position in range(50)], perform, 3)
    assert len(threads) <= 3
    assert get_ident() not in threads


def test_action_waits_for_the_previous_one_of_its_group_in_another_thread() -> None:
    first_is_done, performed = Event(), list[int]()

    def perform(position: int) -> None:
        if position == 0:
            sleep(0.02)
            first_is_done.set()
        if position == 2:
            assert first_is_done.is_set()
        performed.append(position)

    run_in_threads([(0, 2), (1,)], perform, 2)
    assert performed == [1, 0, 2]


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), Killed("x")])
def test_first_exception_is_raised_after_running_calls_are_complete(error: BaseException) -> None:
    performed: list[int] = []
    both_are_running = Barrier(2)

    def perform(position: int) -> None:
        if position < 2:
            both_are_running.wait(10)
        if position == 1:
            raise error
        sleep(0.02)
        performed.append(position)

    with pytest.raises(type(error)):
        run_in_threads([(position,) for position in range(10)], perform, 2)
    assert performed == [0]


def test_threads_have_the_context_of_the_caller() -> None:
    name: ContextVar[str] = ContextVar("name", default="")
    name.set("cycle")
    names: list[str] = []
    run_in_threads([(0,), (1,)], lambda _: names.append(name.get()), 2)
    assert names == ["cycle", "cycle"]


def test_nothing_to_perform_ends_at_once() -> None:
    run_in_threads([], lambda _: pytest.fail("called"), 2)
