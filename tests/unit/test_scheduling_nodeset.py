"""Nodes as bits: which are known to be too full for a pod, whatever was asked first."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.scheduling.nodeset import NodeSet, level_of

GI = 1 << 30


def test_a_node_that_refused_one_shape_is_too_full_for_it_and_for_all_that_is_larger() -> None:
    nodes = NodeSet()
    nodes.refuse(7, 3, (500, GI))
    assert nodes.too_full(7, (100, GI // 8)) == 1 << 3
    assert nodes.too_full(8, (100, GI // 8)) == 0
    assert nodes.too_full(8, (4000, GI // 8)) == 1 << 3
    assert nodes.too_full(8, (100, 4 * GI)) == 1 << 3


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_what_is_known_does_not_depend_on_when_it_was_asked_for(order: tuple[int, ...]) -> None:
    nodes = NodeSet()
    asked = [(200, GI // 4), (1000, GI), (8000, 16 * GI)]
    for place in order:
        nodes.too_full(9, asked[place])
    nodes.refuse(0, 0, (300, 32 * GI))
    nodes.refuse(1, 1, (2000, GI // 2))
    assert [nodes.too_full(9, one) for one in asked] == [0b00, 0b11, 0b11]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 10**5), st.integers(1, 10**12)), max_size=12),
    st.lists(st.tuples(st.integers(1, 10**5), st.integers(1, 10**12)), min_size=1, max_size=6),
)
def test_nodes_are_too_full_exactly_where_they_were_seen_to_lack_a_level(
    refused: list[tuple[int, int, int]], asked: list[tuple[int, int]]
) -> None:
    nodes = NodeSet()
    for place, (number, cpu, memory) in enumerate(refused):
        nodes.refuse(1000 + place, number, (cpu, memory))
        nodes.too_full(9, asked[place % len(asked)])
    for need in asked:
        lacking = (
            number
            for number, *free in refused
            if any(level_of(a) < level_of(b) for a, b in zip(free, need, strict=True))
        )
        assert nodes.fork().too_full(9, need) == sum(1 << number for number in set(lacking))
