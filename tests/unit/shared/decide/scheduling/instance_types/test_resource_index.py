"""Resource requests as bit sets, and which of them fit."""

from shared.decide.scheduling.instance_types.resource_index import (
    MAX_THRESHOLD_COUNT,
    ResourceIndex,
    build_bits,
    list_bits,
)


def test_request_fits_when_no_resource_exceeds_the_capacity() -> None:
    stock = ResourceIndex([(1, 8), (2, 4), (4, 2), (8, 1)])
    assert list_bits(stock.filter_fitting((4, 4), -1)) == [1, 2]
    assert list_bits(stock.filter_fitting((8, 8), -1)) == [0, 1, 2, 3]
    assert stock.filter_fitting((0, 9), -1) == 0


def test_only_queried_positions_are_returned() -> None:
    stock = ResourceIndex([(1,), (2,), (3,)])
    assert list_bits(stock.filter_fitting((3,), build_bits([0, 2]))) == [0, 2]


def test_index_never_reports_a_larger_request_as_fitting_when_amounts_are_many() -> None:
    count = 5 * MAX_THRESHOLD_COUNT + 3
    stock = ResourceIndex([(need,) for need in range(count)])
    for have in (0, 1, 7, count // 2, count - 1):
        fitting = list_bits(stock.filter_fitting((have,), -1 & ((1 << count) - 1)))
        assert all(need <= have for need in fitting)
        assert len(fitting) >= have + 1 - 6
    assert len(list_bits(stock.filter_fitting((count,), (1 << count) - 1))) == count


def test_build_bits_and_list_bits_are_inverse() -> None:
    for positions in ([], [0], [3, 7, 8, 64, 1000]):
        assert list_bits(build_bits(positions)) == positions
