"""Laws of amounts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.core.resources import (
    NONE,
    Resources,
    build_axes,
    build_resources,
    compute_max_resources,
    compute_min_resources,
    format_quantities,
    parse_resources,
    sum_resources,
)

NAMES = ("cpu", "memory", "ephemeral-storage", "pods", "hugepages-2Mi", "nvidia.com/gpu")
amounts = st.dictionaries(st.sampled_from(NAMES), st.integers(-(2**40), 2**40)).map(build_resources)
positive = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 2**40)).map(build_resources)


@given(amounts, amounts, amounts)
def test_addition_is_commutative_and_associative(first: Resources, second: Resources, third: Resources) -> None:
    assert first + second == second + first
    assert (first + second) + third == first + (second + third) == sum_resources((third, first, second))
    assert first + NONE == first
    assert hash(first + second) == hash(second + first)


@given(amounts, amounts)
def test_subtraction_reverses_addition(first: Resources, second: Resources) -> None:
    assert first + second - second == first
    assert first - first == NONE


@given(amounts)
def test_zero_amounts_are_omitted(resources: Resources) -> None:
    assert all(amount for _, amount in resources.amounts)
    assert resources.list_names() == tuple(sorted(resources.list_names()))
    assert resources["there is none"] == 0


@given(positive, positive)
def test_resources_fit_exactly_when_no_remainder_is_negative(requested: Resources, available: Resources) -> None:
    remaining = available - requested
    assert requested.can_fit(available) == all(amount >= 0 for _, amount in remaining.amounts)
    assert requested.can_fit(requested + available)


@given(positive, st.sampled_from(NAMES))
def test_nothing_fits_into_a_negative_amount(available: Resources, name: str) -> None:
    overdrawn = build_resources(dict(available.amounts) | {name: -1})
    assert not NONE.can_fit(overdrawn)


@given(st.lists(positive, max_size=4))
def test_maximum_and_minimum_are_computed_per_resource(resource_sets: list[Resources]) -> None:
    for name in NAMES:
        all_of_it = [resources[name] for resources in resource_sets]
        assert compute_max_resources(resource_sets)[name] == max(all_of_it, default=0)
        assert compute_min_resources(resource_sets)[name] == min(all_of_it, default=0)


@given(amounts)
def test_formatted_quantities_parse_back_to_the_same_resources(resources: Resources) -> None:
    assert parse_resources(format_quantities(resources)) == resources


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
def test_quantities_are_formatted_in_kubernetes_notation(name: str, amount: int, text: str) -> None:
    assert format_quantities(build_resources({name: amount})) == {name: text}


def test_numeric_quantities_are_parsed_and_cpu_is_stored_in_millicores() -> None:
    assert parse_resources({"cpu": 2, "pods": 3, "memory": "1.5"}).amounts == (
        ("cpu", 2000),
        ("memory", 2),
        ("pods", 3),
    )
    assert parse_resources({"cpu": 0.25})["cpu"] == 250


def test_invalid_quantity_is_rejected_with_its_resource_name() -> None:
    with pytest.raises(ValueError, match="memory: not a quantity: '1gi'"):
        parse_resources({"cpu": "1", "memory": "1gi"})


@given(st.lists(positive, max_size=3), positive)
def test_vector_decodes_to_the_same_resources(resource_sets: list[Resources], unrelated: Resources) -> None:
    axes = build_axes(resource_sets)
    assert axes.names[:4] == ("cpu", "memory", "ephemeral-storage", "pods")
    assert all(axes.decode_vector(axes.build_vector(resources)) == resources for resources in resource_sets)
    assert axes.build_vector(NONE) == (0,) * len(axes.names)
    assert set(axes.decode_vector(axes.build_vector(unrelated)).list_names()) <= set(axes.names)
