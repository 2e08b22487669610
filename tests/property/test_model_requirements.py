"""Laws of requirements: each one is a set of label values, and says so whichever way it is asked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.requirements import (
    ANYTHING,
    OPERATORS,
    Requirement,
    Requirements,
    requirement,
    requirements,
    requirements_from_labels,
    written,
)

KEY = "key"
VALUES = ("a", "b", "", *map(str, range(-3, 8)), "07", "1.5")
values = st.sampled_from(VALUES)
keys = st.sampled_from(("a", "b", "c", "beta.kubernetes.io/arch"))
bounds = st.none() | st.integers(-2, 6)
minima = st.none() | st.integers(1, 9)


def over(keys: st.SearchStrategy[str]) -> st.SearchStrategy[Requirement]:
    some, one = st.lists(values, min_size=1, max_size=4), st.integers(-2, 6).map(lambda number: [str(number)])
    return st.one_of(
        st.builds(requirement, keys, st.sampled_from(("In", "NotIn")), some, minima),
        st.builds(requirement, keys, st.sampled_from(("Exists", "DoesNotExist")), st.just([]), minima),
        st.builds(requirement, keys, st.sampled_from(("Gt", "Lt", "Gte", "Lte")), one, minima),
    )


written_ones = over(st.just(KEY))
ones = st.lists(written_ones, min_size=1, max_size=3).map(lambda some: requirements(some)[KEY])
sets = st.lists(over(keys), max_size=5).map(requirements)


@pytest.mark.parametrize(
    ("operator", "given_values", "has"),
    [
        ("In", ["a", "5"], {"a", "5"}),
        ("NotIn", ["a", "5"], set(VALUES) - {"a", "5"}),
        ("Exists", [], set(VALUES)),
        ("DoesNotExist", [], set()),
        ("Gt", ["5"], {"6", "7", "07"}),
        ("Gte", ["5"], {"5", "6", "7", "07"}),
        ("Lt", ["0"], {"-3", "-2", "-1"}),
        ("Lte", ["-2"], {"-3", "-2"}),
    ],
)
def test_what_each_operator_means(operator: str, given_values: list[str], has: set[str]) -> None:
    one = requirement(KEY, operator, given_values)
    assert {value for value in VALUES if one.has(value)} == has


def test_every_operator_is_known() -> None:
    assert set(OPERATORS) == {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"}


@pytest.mark.parametrize(
    ("operator", "given_values", "words"),
    [
        ("In", [], "needs at least one value"),
        ("NotIn", [], "needs at least one value"),
        ("Exists", ["a"], "takes no values"),
        ("DoesNotExist", ["a"], "takes no values"),
        ("Gt", [], "takes one integer"),
        ("Lt", ["1", "2"], "takes one integer"),
        ("Gte", ["1.5"], "takes one integer"),
        ("Lte", ["٣"], "takes one integer"),
        ("in", ["a"], "unknown operator 'in'"),
    ],
)
def test_what_cannot_be_meant_is_refused(operator: str, given_values: list[str], words: str) -> None:
    with pytest.raises(ValueError, match=f"kubernetes.io/arch: .*{words}"):
        requirement("beta.kubernetes.io/arch", operator, given_values)


@given(ones, ones, values)
def test_both_have_what_each_has(one: Requirement, other: Requirement, value: str) -> None:
    assert (one & other).has(value) == (one.has(value) and other.has(value))


@given(ones, ones)
def test_the_order_of_two_does_not_matter(one: Requirement, other: Requirement) -> None:
    assert one & other == other & one


@given(ones, ones, ones)
def test_the_grouping_of_three_does_not_matter(one: Requirement, other: Requirement, third: Requirement) -> None:
    assert (one & other) & third == one & (other & third)


@given(ones)
def test_the_same_again_says_nothing_new(one: Requirement) -> None:
    assert one & one == one
    assert one & requirement(KEY, "Exists") == one


@given(ones, ones)
def test_they_intersect_where_something_has_both(one: Requirement, other: Requirement) -> None:
    both = one & other
    assert one.intersects(other) == other.intersects(one) == (both.operator != "DoesNotExist")
    if any(both.has(value) for value in VALUES):
        assert one.intersects(other)


@given(ones, ones)
def test_the_stricter_minimum_stays(one: Requirement, other: Requirement) -> None:
    said = [some.min_values for some in (one, other) if some.min_values is not None]
    assert (one & other).min_values == max(said, default=None)


@given(ones)
def test_a_finite_set_has_no_bounds(one: Requirement) -> None:
    assert one.complement or (one.gte is None and one.lte is None)


@given(ones)
def test_the_value_that_is_picked_is_allowed(one: Requirement) -> None:
    picked = one.any_value()
    assert one.has(picked) or picked == ""
    within = range(-9 if one.gte is None else one.gte, 9 if one.lte is None else one.lte + 1)
    allowed = [value for value in {*map(str, within), *one.values} if one.has(value)]
    if one.complement and any(value.isdigit() for value in allowed):
        assert one.has(picked)
    if not one.complement:
        assert picked == min(one.values, default="")


@given(ones)
def test_a_requirement_that_is_written_means_the_same(one: Requirement) -> None:
    again = requirements(
        requirement(entry["key"], entry["operator"], entry.get("values", ()), entry.get("minValues"))  # type: ignore[arg-type] # JSON
        for entry in written(Requirements(items=(one,)))
    )[KEY]
    if one.gte is None and one.lte is None:
        assert again == one
    else:
        assert (again.gte, again.lte, again.min_values) == (one.gte, one.lte, one.min_values)


def test_both_bounds_are_two_entries_and_values_are_sorted() -> None:
    some = requirements(
        [requirement("b", "Gt", ["2"], 3), requirement("b", "Lt", ["9"]), requirement("a", "In", ["y", "x"])]
    )
    assert written(some) == [
        {"key": "a", "operator": "In", "values": ["x", "y"]},
        {"key": "b", "operator": "Gte", "values": ["3"], "minValues": 3},
        {"key": "b", "operator": "Lte", "values": ["8"], "minValues": 3},
    ]
    assert written(requirements([requirement("a", "DoesNotExist")])) == [{"key": "a", "operator": "DoesNotExist"}]


@given(sets)
def test_a_set_is_sorted_and_has_each_key_once(some: Requirements) -> None:
    found = [item.key for item in some]
    assert found == sorted(set(found))
    assert "beta.kubernetes.io/arch" not in found
    assert some & ANYTHING == ANYTHING & some == some & some == some


@given(sets, sets, sets)
def test_sets_join_in_any_order(one: Requirements, other: Requirements, third: Requirements) -> None:
    assert one & other == other & one
    assert (one & other) & third == one & (other & third)


@given(sets, keys)
def test_what_is_not_spoken_of_may_be_anything(some: Requirements, key: str) -> None:
    if key not in some:
        assert some[key] == Requirement(key=key, complement=True)
    without = some.without((key,))
    assert key not in without
    assert all(item in some.items for item in without)


@given(sets, sets)
def test_a_conflict_is_mutual(one: Requirements, other: Requirements) -> None:
    assert one.conflict(other) == other.conflict(one)
    key = one.conflict(other)
    if key:
        assert not one[key].intersects(other[key])
        assert not (one[key].is_tolerant() and other[key].is_tolerant())
    else:
        both = one & other
        assert all(both[item.key].operator != "DoesNotExist" or item.is_tolerant() for item in other if item.key in one)


@given(sets, sets)
def test_the_more_may_be_undefined_the_more_is_compatible(one: Requirements, other: Requirements) -> None:
    everything = frozenset(item.key for item in other)
    assert one.is_compatible(other, everything) == (one.conflict(other) == "")
    if one.is_compatible(other):
        assert one.is_compatible(other, everything)


@given(st.dictionaries(keys, values), sets)
def test_a_node_satisfies_what_its_labels_say(labels: dict[str, str], asked: Requirements) -> None:
    node = requirements_from_labels(labels)
    expected = all(
        item.has(next(iter(node[item.key].values))) if item.key in node else item.is_tolerant() for item in asked
    )
    assert node.is_compatible(asked) == expected


@pytest.mark.parametrize(
    ("operator", "given_values", "well_known", "custom"),
    [
        ("In", ["a"], True, False),
        ("Exists", [], True, False),
        ("Gt", ["1"], True, False),
        ("Lte", ["1"], True, False),
        ("NotIn", ["a"], True, True),
        ("DoesNotExist", [], True, True),
    ],
)
def test_keys_that_are_not_defined(operator: str, given_values: list[str], *, well_known: bool, custom: bool) -> None:
    asked = requirements([requirement("zone", operator, given_values)])
    assert ANYTHING.is_compatible(asked, frozenset(("zone",))) is well_known
    assert ANYTHING.is_compatible(asked) is custom
    assert ANYTHING.undefined(asked, frozenset()) == ("" if custom else "zone")


@pytest.mark.parametrize(("operator", "compatible"), [("In", False), ("NotIn", True), ("Exists", False)])
def test_what_must_not_exist_conflicts_with_what_does(operator: str, *, compatible: bool) -> None:
    ours = requirements([requirement("a", operator, [] if operator == "Exists" else ["x"])])
    assert ours.is_compatible(requirements([requirement("a", "DoesNotExist")])) is compatible


@given(sets)
def test_equal_sets_have_equal_hashes(some: Requirements) -> None:
    assert hash(requirements(reversed(some.items))) == hash(some)
