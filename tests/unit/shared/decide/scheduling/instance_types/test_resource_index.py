"""Resource requests as bit sets, and which of them fit."""

from shared.decide.scheduling.instance_types.resource_index import (
    MAX_THRESHOLD_COUNT,
    ResourceIndex,
    build_bits,
    list_bits,
)


def test_what_fits_is_what_needs_no_more_of_anything() -> None:
    stock = ResourceIndex([(1, 8), (2, 4), (4, 2), (8, 1)])
    assert list_bits(stock.filter_fitting((4, 4), -1)) == [1, 2]
    assert list_bits(stock.filter_fitting((8, 8), -1)) == [0, 1, 2, 3]
    assert stock.filter_fitting((0, 9), -1) == 0


def test_only_what_is_asked_about_is_answered() -> None:
    stock = ResourceIndex([(1,), (2,), (3,)])
    assert list_bits(stock.filter_fitting((3,), build_bits([0, 2]))) == [0, 2]


def test_of_very_many_amounts_none_is_said_to_fit_that_does_not() -> None:
    count = 5 * MAX_THRESHOLD_COUNT + 3
    stock = ResourceIndex([(need,) for need in range(count)])
    for have in (0, 1, 7, count // 2, count - 1):
        fitting = list_bits(stock.filter_fitting((have,), -1 & ((1 << count) - 1)))
        assert all(need <= have for need in fitting)
        assert len(fitting) >= have + 1 - 6
    assert len(list_bits(stock.filter_fitting((count,), (1 << count) - 1))) == count


def test_bits_and_their_places_are_each_others_inverse() -> None:
    for positions in ([], [0], [3, 7, 8, 64, 1000]):
        assert list_bits(build_bits(positions)) == positions
