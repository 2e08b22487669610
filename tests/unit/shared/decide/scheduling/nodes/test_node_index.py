"""Nodes as bit sets: which nodes are too full for a pod, independent of the order of queries."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.decide.scheduling.nodes.node_index import NodeIndex, compute_level

GI = 1 << 30


def test_node_rejected_for_one_pod_shape_is_too_full_for_larger_shapes() -> None:
    nodes = NodeIndex()
    nodes.refuse_shape(7, 3, (500, GI))
    assert nodes.find_too_full(7, (100, GI // 8)) == 1 << 3
    assert nodes.find_too_full(8, (100, GI // 8)) == 0
    assert nodes.find_too_full(8, (4000, GI // 8)) == 1 << 3
    assert nodes.find_too_full(8, (100, 4 * GI)) == 1 << 3


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_node_index_does_not_depend_on_the_order_of_queries(order: tuple[int, ...]) -> None:
    nodes = NodeIndex()
    requests = [(200, GI // 4), (1000, GI), (8000, 16 * GI)]
    for place in order:
        nodes.find_too_full(9, requests[place])
    nodes.refuse_shape(0, 0, (300, 32 * GI))
    nodes.refuse_shape(1, 1, (2000, GI // 2))
    assert [nodes.find_too_full(9, request) for request in requests] == [0b00, 0b11, 0b11]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 10**5), st.integers(1, 10**12)), max_size=12),
    st.lists(st.tuples(st.integers(1, 10**5), st.integers(1, 10**12)), min_size=1, max_size=6),
)
def test_node_is_too_full_exactly_when_a_recorded_resource_level_is_too_low(
    refused: list[tuple[int, int, int]], requests: list[tuple[int, int]]
) -> None:
    nodes = NodeIndex()
    for place, (number, cpu, memory) in enumerate(refused):
        nodes.refuse_shape(1000 + place, number, (cpu, memory))
        nodes.find_too_full(9, requests[place % len(requests)])
    for need in requests:
        lacking = (
            number
            for number, *free in refused
            if any(compute_level(a) < compute_level(b) for a, b in zip(free, need, strict=True))
        )
        assert nodes.fork().find_too_full(9, need) == sum(1 << number for number in set(lacking))
