"""Needs as bits, and what of them fits."""

from shared.scheduling.stock import STEPS, Stock, bits, places


def test_what_fits_is_what_needs_no_more_of_anything() -> None:
    stock = Stock([(1, 8), (2, 4), (4, 2), (8, 1)])
    assert places(stock.fitting((4, 4), -1)) == [1, 2]
    assert places(stock.fitting((8, 8), -1)) == [0, 1, 2, 3]
    assert stock.fitting((0, 9), -1) == 0


def test_only_what_is_asked_about_is_answered() -> None:
    stock = Stock([(1,), (2,), (3,)])
    assert places(stock.fitting((3,), bits([0, 2]))) == [0, 2]


def test_of_very_many_amounts_none_is_said_to_fit_that_does_not() -> None:
    count = 5 * STEPS + 3
    stock = Stock([(need,) for need in range(count)])
    for have in (0, 1, 7, count // 2, count - 1):
        found = places(stock.fitting((have,), -1 & ((1 << count) - 1)))
        assert all(need <= have for need in found)
        assert len(found) >= have + 1 - 6
    assert len(places(stock.fitting((count,), (1 << count) - 1))) == count


def test_bits_and_their_places_are_each_others_inverse() -> None:
    for some in ([], [0], [3, 7, 8, 64, 1000]):
        assert places(bits(some)) == some
