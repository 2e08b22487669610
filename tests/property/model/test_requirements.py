"""Laws of requirements: each one is a set of label values, and says so whichever way it is asked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.core.requirements import (
    ANYTHING,
    OPERATORS,
    Requirement,
    Requirements,
    build_label_requirements,
    build_requirements,
    list_requirement_entries,
    parse_requirement,
)

KEY = "key"
VALUES = ("a", "b", "", *map(str, range(-3, 8)), "07", "1.5")
values = st.sampled_from(VALUES)
keys = st.sampled_from(("a", "b", "c", "beta.kubernetes.io/arch"))
bounds = st.none() | st.integers(-2, 6)
minima = st.none() | st.integers(1, 9)


def build_requirement_strategy(keys: st.SearchStrategy[str]) -> st.SearchStrategy[Requirement]:
    value_lists, single_integers = (
        st.lists(values, min_size=1, max_size=4),
        st.integers(-2, 6).map(lambda number: [str(number)]),
    )
    return st.one_of(
        st.builds(parse_requirement, keys, st.sampled_from(("In", "NotIn")), value_lists, minima),
        st.builds(parse_requirement, keys, st.sampled_from(("Exists", "DoesNotExist")), st.just([]), minima),
        st.builds(parse_requirement, keys, st.sampled_from(("Gt", "Lt", "Gte", "Lte")), single_integers, minima),
    )


single_requirements = build_requirement_strategy(st.just(KEY))
merged_requirements = st.lists(single_requirements, min_size=1, max_size=3).map(
    lambda some: build_requirements(some)[KEY]
)
sets = st.lists(build_requirement_strategy(keys), max_size=5).map(build_requirements)


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
def test_requirement_operator_selects_the_expected_values(
    operator: str, given_values: list[str], has: set[str]
) -> None:
    requirement = parse_requirement(KEY, operator, given_values)
    assert {value for value in VALUES if requirement.has(value)} == has


def test_all_operators_are_supported() -> None:
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
def test_invalid_requirement_is_rejected(operator: str, given_values: list[str], words: str) -> None:
    with pytest.raises(ValueError, match=f"kubernetes.io/arch: .*{words}"):
        parse_requirement("beta.kubernetes.io/arch", operator, given_values)


@given(merged_requirements, merged_requirements, values)
def test_intersection_contains_exactly_the_common_values(first: Requirement, second: Requirement, value: str) -> None:
    assert (first & second).has(value) == (first.has(value) and second.has(value))


@given(merged_requirements, merged_requirements)
def test_intersection_is_commutative(first: Requirement, second: Requirement) -> None:
    assert first & second == second & first


@given(merged_requirements, merged_requirements, merged_requirements)
def test_intersection_is_associative(first: Requirement, second: Requirement, third: Requirement) -> None:
    assert (first & second) & third == first & (second & third)


@given(merged_requirements)
def test_intersection_is_idempotent(requirement: Requirement) -> None:
    assert requirement & requirement == requirement
    assert requirement & parse_requirement(KEY, "Exists") == requirement


@given(merged_requirements, merged_requirements)
def test_intersecting_requirements_share_a_value(first: Requirement, second: Requirement) -> None:
    intersection = first & second
    assert first.has_intersection(second) == second.has_intersection(first) == (intersection.operator != "DoesNotExist")
    if any(intersection.has(value) for value in VALUES):
        assert first.has_intersection(second)


@given(merged_requirements, merged_requirements)
def test_intersection_keeps_the_larger_min_values(first: Requirement, second: Requirement) -> None:
    minimums = [requirement.min_values for requirement in (first, second) if requirement.min_values is not None]
    assert (first & second).min_values == max(minimums, default=None)


@given(merged_requirements)
def test_requirement_with_a_finite_set_has_no_bounds(requirement: Requirement) -> None:
    assert requirement.complement or (requirement.gte is None and requirement.lte is None)


@given(merged_requirements)
def test_chosen_value_is_allowed_by_the_requirement(requirement: Requirement) -> None:
    picked = requirement.choose_value()
    assert requirement.has(picked) or picked == ""
    numbers = range(
        -9 if requirement.gte is None else requirement.gte, 9 if requirement.lte is None else requirement.lte + 1
    )
    allowed = [value for value in {*map(str, numbers), *requirement.values} if requirement.has(value)]
    if requirement.complement and any(value.isdigit() for value in allowed):
        assert requirement.has(picked)
    if not requirement.complement:
        assert picked == min(requirement.values, default="")


@given(merged_requirements)
def test_written_requirement_parses_back_to_the_same_requirement(requirement: Requirement) -> None:
    parsed_requirement = build_requirements(
        parse_requirement(entry["key"], entry["operator"], entry.get("values", ()), entry.get("minValues"))  # type: ignore[arg-type] # JSON
        for entry in list_requirement_entries(Requirements(items=(requirement,)))
    )[KEY]
    if requirement.gte is None and requirement.lte is None:
        assert parsed_requirement == requirement
    else:
        assert (parsed_requirement.gte, parsed_requirement.lte, parsed_requirement.min_values) == (
            requirement.gte,
            requirement.lte,
            requirement.min_values,
        )


def test_bounds_are_written_as_two_entries_and_values_are_sorted() -> None:
    requirements = build_requirements(
        [
            parse_requirement("b", "Gt", ["2"], 3),
            parse_requirement("b", "Lt", ["9"]),
            parse_requirement("a", "In", ["y", "x"]),
        ]
    )
    assert list_requirement_entries(requirements) == [
        {"key": "a", "operator": "In", "values": ["x", "y"]},
        {"key": "b", "operator": "Gte", "values": ["3"], "minValues": 3},
        {"key": "b", "operator": "Lte", "values": ["8"], "minValues": 3},
    ]
    assert list_requirement_entries(build_requirements([parse_requirement("a", "DoesNotExist")])) == [
        {"key": "a", "operator": "DoesNotExist"}
    ]


@given(sets)
def test_requirements_are_sorted_with_unique_normalized_keys(requirements: Requirements) -> None:
    listed_keys = [item.key for item in requirements]
    assert listed_keys == sorted(set(listed_keys))
    assert "beta.kubernetes.io/arch" not in listed_keys
    assert requirements & ANYTHING == ANYTHING & requirements == requirements & requirements == requirements


@given(sets, sets, sets)
def test_requirements_intersection_is_commutative_and_associative(
    first: Requirements, second: Requirements, third: Requirements
) -> None:
    assert first & second == second & first
    assert (first & second) & third == first & (second & third)


@given(sets, keys)
def test_undefined_key_allows_any_value(requirements: Requirements, key: str) -> None:
    if key not in requirements:
        assert requirements[key] == Requirement(key=key, complement=True)
    remaining_requirements = requirements.without((key,))
    assert key not in remaining_requirements
    assert all(item in requirements.items for item in remaining_requirements)


@given(sets, sets)
def test_requirements_conflict_is_symmetric(first: Requirements, second: Requirements) -> None:
    assert first.find_conflict(second) == second.find_conflict(first)
    key = first.find_conflict(second)
    if key:
        assert not first[key].has_intersection(second[key])
        assert not (first[key].is_tolerant() and second[key].is_tolerant())
    else:
        intersection = first & second
        assert all(
            intersection[item.key].operator != "DoesNotExist" or item.is_tolerant()
            for item in second
            if item.key in first
        )


@given(sets, sets)
def test_allowing_undefined_keys_never_reduces_compatibility(first: Requirements, second: Requirements) -> None:
    undefined_keys = frozenset(item.key for item in second)
    assert first.is_compatible(second, undefined_keys) == (first.find_conflict(second) == "")
    if first.is_compatible(second):
        assert first.is_compatible(second, undefined_keys)


@given(st.dictionaries(keys, values), sets)
def test_node_labels_satisfy_exactly_the_requirements_they_match(
    labels: dict[str, str], required: Requirements
) -> None:
    node = build_label_requirements(labels)
    expected = all(
        item.has(next(iter(node[item.key].values))) if item.key in node else item.is_tolerant() for item in required
    )
    assert node.is_compatible(required) == expected


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
def test_undefined_key_is_compatible_only_if_well_known_or_negated(
    operator: str, given_values: list[str], *, well_known: bool, custom: bool
) -> None:
    required = build_requirements([parse_requirement("zone", operator, given_values)])
    assert ANYTHING.is_compatible(required, frozenset(("zone",))) is well_known
    assert ANYTHING.is_compatible(required) is custom
    assert ANYTHING.find_undefined_key(required, frozenset()) == ("" if custom else "zone")


@pytest.mark.parametrize(("operator", "compatible"), [("In", False), ("NotIn", True), ("Exists", False)])
def test_does_not_exist_conflicts_with_in_and_exists(operator: str, *, compatible: bool) -> None:
    requirements = build_requirements([parse_requirement("a", operator, [] if operator == "Exists" else ["x"])])
    assert requirements.is_compatible(build_requirements([parse_requirement("a", "DoesNotExist")])) is compatible


@given(sets)
def test_equal_requirements_have_equal_hashes(requirements: Requirements) -> None:
    assert hash(build_requirements(reversed(requirements.items))) == hash(requirements)
