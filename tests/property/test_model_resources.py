"""Laws of amounts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.resources import (
    NONE,
    Resources,
    axes_of,
    largest,
    parse_resources,
    quantities_from,
    resources,
    smallest,
    total,
)

NAMES = ("cpu", "memory", "ephemeral-storage", "pods", "hugepages-2Mi", "nvidia.com/gpu")
amounts = st.dictionaries(st.sampled_from(NAMES), st.integers(-(2**40), 2**40)).map(resources)
positive = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 2**40)).map(resources)


@given(amounts, amounts, amounts)
def test_sums_come_in_any_order(one: Resources, other: Resources, third: Resources) -> None:
    assert one + other == other + one
    assert (one + other) + third == one + (other + third) == total((third, one, other))
    assert one + NONE == one
    assert hash(one + other) == hash(other + one)


@given(amounts, amounts)
def test_what_is_added_can_be_taken_away(one: Resources, other: Resources) -> None:
    assert one + other - other == one
    assert one - one == NONE


@given(amounts)
def test_zeros_do_not_show(one: Resources) -> None:
    assert all(amount for _, amount in one.amounts)
    assert one.names() == tuple(sorted(one.names()))
    assert one["there is none"] == 0


@given(positive, positive)
def test_what_fits_leaves_nothing_overdrawn(wanted: Resources, available: Resources) -> None:
    left = available - wanted
    assert wanted.fits(available) == all(amount >= 0 for _, amount in left.amounts)
    assert wanted.fits(wanted + available)


@given(positive, st.sampled_from(NAMES))
def test_nothing_fits_where_something_is_overdrawn(available: Resources, name: str) -> None:
    overdrawn = resources(dict(available.amounts) | {name: -1})
    assert not NONE.fits(overdrawn)


@given(positive, positive)
def test_a_limit_holds_for_what_it_names_only(used: Resources, limit: Resources) -> None:
    over = [name for name in limit.names() if used[name] > limit[name]]
    assert used.exceeds(limit) == min(over, default="")
    assert used.exceeds(NONE) == ""
    assert not used.exceeds(used)


def test_a_limit_of_zero_is_a_limit() -> None:
    assert resources({"cpu": 1}).exceeds(Resources(amounts=(("cpu", 0),))) == "cpu"
    assert resources({"memory": 1}).exceeds(Resources(amounts=(("cpu", 0),))) == ""


@given(st.lists(positive, max_size=4))
def test_the_largest_and_the_smallest_of_many(many: list[Resources]) -> None:
    for name in NAMES:
        all_of_it = [one[name] for one in many]
        assert largest(many)[name] == max(all_of_it, default=0)
        assert smallest(many)[name] == min(all_of_it, default=0)


@given(amounts)
def test_amounts_that_are_written_are_read_back(one: Resources) -> None:
    assert parse_resources(quantities_from(one)) == one


@pytest.mark.parametrize(
    ("name", "amount", "text"),
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 2000, "2"),
        ("memory", 2**30, "1Gi"),
        ("memory", 3 * 2**20, "3Mi"),
        ("memory", 1000, "1000"),
        ("hugepages-2Mi", 2**21, "2Mi"),
        ("pods", 1024, "1024"),
    ],
)
def test_amounts_are_written_as_people_do(name: str, amount: int, text: str) -> None:
    assert quantities_from(resources({name: amount})) == {name: text}


def test_numbers_are_quantities_and_cpu_is_counted_in_thousandths() -> None:
    assert parse_resources({"cpu": 2, "pods": 3, "memory": "1.5"}).amounts == (
        ("cpu", 2000),
        ("memory", 2),
        ("pods", 3),
    )
    assert parse_resources({"cpu": 0.25})["cpu"] == 250


def test_a_quantity_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match="memory: not a quantity: '1gi'"):
        parse_resources({"cpu": "1", "memory": "1gi"})


@given(st.lists(positive, max_size=3), positive)
def test_a_vector_stands_for_its_amounts(many: list[Resources], other: Resources) -> None:
    axes = axes_of(many)
    assert axes.names[:4] == ("cpu", "memory", "ephemeral-storage", "pods")
    assert all(axes.resources(axes.vector(one)) == one for one in many)
    assert axes.vector(NONE) == (0,) * len(axes.names)
    assert set(axes.resources(axes.vector(other)).names()) <= set(axes.names)
