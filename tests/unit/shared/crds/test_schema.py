"""Structural schemas beyond what our own CRDs use."""

from typing import Any

import pytest

from shared.crds.definitions import list_crd_paths, load_shipped_crds
from shared.crds.schema import Schema
from shared.crds.validation_rules import Json
from shared.errors import Invalid, NotFound
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.api_server.rules.label_and_field_selectors import build_label_selector
from sim.time.virtual_clock import Clock


def build_schema(**spec: object) -> Schema:
    return Schema({"type": "object", "properties": {"spec": spec}})


def list_problems(definition: Schema, new: Json, old: Json = None) -> list[str]:
    before = None if old is None else {"spec": old}
    return definition.validate({"metadata": {}, "spec": new}, before)


@pytest.mark.parametrize(
    ("definition", "good", "bad"),
    [
        ({"type": "string"}, "a", 1),
        ({"type": "integer"}, 1, True),
        ({"type": "integer"}, -1, 1.5),
        ({"type": "number"}, 1.5, "1"),
        ({"type": "boolean"}, True, 1),
        ({"type": "array"}, [], {}),
        ({"type": "object"}, {}, []),
        ({"type": "string"}, "a", None),
        ({"type": "string", "nullable": True}, None, 1),
        ({"x-kubernetes-int-or-string": True}, "1", 1.5),
        ({"type": "string", "minLength": 1}, "a", ""),
        ({"type": "string", "maxLength": 1}, "a", "ab"),
        ({"type": "array", "maxItems": 1}, [1], [1, 2]),
        ({"type": "array", "minItems": 1}, [1], []),
        ({"type": "object", "maxProperties": 1}, {}, {"a": 1, "b": 2}),
        ({"type": "object", "minProperties": 1}, {"a": 1}, {}),
        ({"type": "integer", "minimum": 1}, 1, 0),
        ({"type": "integer", "maximum": 1}, 1, 2),
        ({"type": "integer", "format": "int32"}, 2**31 - 1, 2**31),
        ({"type": "integer", "format": "int64"}, -(2**63), 2**63),
        ({"type": "string", "format": "date-time"}, "2026-11-21T08:00:00.5+01:00", "2026-11-21"),
        ({"type": "string", "enum": ["a"]}, "a", "b"),
        ({"type": "string", "pattern": "b"}, "abc", "ac"),
        ({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}}, [1, 2], [1, 1]),
        (
            {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]},
            [{"a": 1}, {"a": 2}],
            [{"a": 1}, {"a": 1}],
        ),
        ({"type": "object", "required": ["a"]}, {"a": 1}, {}),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1}, {"a": "b"}),
        ({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]}, 2, 1),
    ],
)
def test_valid_values_pass_and_invalid_values_are_rejected(definition: dict[str, Any], good: Json, bad: Json) -> None:
    assert list_problems(build_schema(**definition), good) == []
    [problem] = list_problems(build_schema(**definition), bad)
    assert problem.startswith("spec")


def test_validation_rule_that_cannot_be_evaluated_is_violated() -> None:
    wrong = build_schema(
        type="object", **{"x-kubernetes-validations": [{"rule": "self.a == 1", "message": "a is one"}]}
    )
    [problem] = list_problems(wrong, {})
    assert "a is one" in problem


def test_validation_rule_with_invalid_cel_is_rejected() -> None:
    with pytest.raises(Invalid, match="self >"):
        build_schema(type="integer", **{"x-kubernetes-validations": [{"rule": "self >"}]})


def test_unchanged_invalid_values_are_tolerated_on_update() -> None:
    strict = build_schema(type="object", properties={"a": {"type": "string", "enum": ["new"]}, "b": {"type": "string"}})
    assert list_problems(strict, {"a": "old", "b": "2"}, {"a": "old", "b": "1"}) == []
    assert list_problems(strict, {"a": "older"}, {"a": "old"}) != []


def test_validation_rules_run_only_if_the_types_are_valid() -> None:
    schema = build_schema(
        type="object",
        properties={"a": {"type": "integer"}},
        **{"x-kubernetes-validations": [{"rule": "self.a > 1", "message": "more"}]},
    )
    assert list_problems(schema, {"a": "b"}) == ['spec.a: Invalid value: "b": must be of type integer']
    assert list_problems(schema, {"a": 1}) == ["spec: Invalid value: more"]


def test_map_list_items_are_matched_by_their_keys_in_transition_rules() -> None:
    item = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "value": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.value >= oldSelf.value", "message": "never less"}],
    }
    grown = build_schema(
        type="array", items=item, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    )
    before = [{"name": "a", "value": 1}, {"name": "b", "value": 2}]
    assert list_problems(grown, [{"name": "b", "value": 3}, {"name": "c", "value": 0}], before) == []
    assert list_problems(grown, [{"name": "b", "value": 1}], before) == ["spec[0]: Invalid value: never less"]


def test_unknown_fields_are_pruned_unless_preserved() -> None:
    closed = build_schema(type="object", properties={"a": {"type": "array", "items": {"type": "object"}}})
    pruned = closed.prune_and_default({"kind": "K", "other": 1, "spec": {"a": [{"b": 1}], "c": 2}})
    assert pruned == {"kind": "K", "spec": {"a": [{}]}}
    opened = build_schema(type="object", **{"x-kubernetes-preserve-unknown-fields": True})
    assert opened.prune_and_default({"spec": {"c": {"d": 2}}}) == {"spec": {"c": {"d": 2}}}


def test_schema_without_a_type_accepts_any_value() -> None:
    assert list_problems(build_schema(), [1, "a"]) == []


def test_null_is_replaced_by_the_default_unless_nullable() -> None:
    defaulted = build_schema(
        type="object", properties={"a": {"type": "string", "default": "b"}, "c": {"type": "string"}}
    )
    assert defaulted.prune_and_default({"spec": {"a": None}}) == {"spec": {"a": "b"}}
    nullable = build_schema(type="object", properties={"a": {"type": "string", "default": "b", "nullable": True}})
    assert nullable.prune_and_default({"spec": {"a": None}}) == {"spec": {"a": None}}


def test_long_value_is_truncated_in_the_error_message() -> None:
    [problem] = list_problems(build_schema(type="string", maxLength=1), "x" * 100)
    assert problem.count("x") < 65


def test_shipped_crds_have_the_expected_printer_columns() -> None:
    columns = {
        crd["spec"]["names"]["kind"]: [
            (column["name"], column.get("priority", 0))
            for column in crd["spec"]["versions"][0]["additionalPrinterColumns"]
        ]
        for crd in load_shipped_crds()
    }
    kinds = ("ConditionsType", "ConditionsStatus", "ConditionsReason")
    assert columns == {
        "CapacityBuffer": [(name, 0) for name in ("Strategy", "PodTemplate", "Replicas", *kinds, "Age")],
        "NodeOverlay": [("Ready", 0), ("Age", 0), ("Weight", 1)],
        "EC2NodeClass": [("Ready", 0), ("Age", 0), ("Role", 1)],
        "NodeClaim": [
            *((name, 0) for name in ("Type", "Capacity", "Zone", "Node", "Ready", "Age")),
            *((name, 1) for name in ("ImageID", "ID", "NodePool", "NodeClass", "Drifted")),
        ],
        "NodePool": [
            *((name, 0) for name in ("NodeClass", "Nodes", "Ready", "Age")),
            *((name, 1) for name in ("Weight", "CPU", "Memory")),
        ],
    }


def test_shipped_crd_files_are_named_after_group_and_plural() -> None:
    file_names = [f"{crd['spec']['group']}_{crd['spec']['names']['plural']}.yaml" for crd in load_shipped_crds()]
    assert [path.name for path in list_crd_paths()] == file_names


def find_unbounded_paths(node: dict[str, Any], path: str, *, judged: bool) -> list[str]:
    """Return the paths of values that a validation rule may iterate over without a bound."""
    judged = judged or "x-kubernetes-validations" in node
    missing = []
    if node.get("type") == "array" and "maxItems" not in node:
        missing.append(path)
    if "additionalProperties" in node and "maxProperties" not in node:
        missing.append(path)
    is_text = node.get("type") == "string" and not {"enum", "maxLength", "format"} & set(node)
    if is_text and path.count(".") > 1:
        missing.append(path)
    for key, below in (node.get("properties") or {}).items():
        missing += find_unbounded_paths(below, f"{path}.{key}", judged=judged)
    for key in ("items", "additionalProperties"):
        if key in node:
            missing += find_unbounded_paths(node[key], f"{path}.{key}", judged=judged)
    return missing


def test_shipped_crd_fields_are_bounded() -> None:
    for definition in load_shipped_crds():
        root = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        assert find_unbounded_paths(root, definition["spec"]["names"]["kind"], judged=False) == []


@pytest.mark.parametrize(
    "change", [{"group": "other.com"}, {"versions": []}, {"versions": [{"name": "v1", "storage": True}]}]
)
def test_crd_without_a_served_schema_or_matching_group_is_rejected(change: dict[str, Any]) -> None:
    api = ApiServer(Clock(), definitions=())
    good = load_shipped_crds()[0]
    with pytest.raises(Invalid):
        api.create("customresourcedefinitions.apiextensions.k8s.io", {**good, "spec": good["spec"] | change})


def test_updated_crd_is_served_immediately() -> None:
    api = ApiServer(Clock())
    definition = api.get("customresourcedefinitions.apiextensions.k8s.io", "nodepools.karpenter.sh")
    [version] = definition["spec"]["versions"]
    api.patch(
        "customresourcedefinitions.apiextensions.k8s.io",
        "nodepools.karpenter.sh",
        {"spec": {"versions": [version | {"subresources": {}, "schema": {"openAPIV3Schema": {"type": "object"}}}]}},
    )
    api.create("nodepools.karpenter.sh", {"metadata": {"name": "a"}, "spec": {}})
    with pytest.raises(NotFound):
        api.patch("nodepools.karpenter.sh", "a", {}, subresource="status")


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"a": "1"}}, True),
        ({"matchLabels": {"a": "1", "b": "1"}}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, False),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_label_selector_object_selects_matching_labels(selector: dict[str, Any] | None, *, expected: bool) -> None:
    assert build_label_selector(selector)({"a": "1"}) is expected


@pytest.mark.parametrize("operator", ["In", "Near"])
def test_incomplete_label_selector_expression_is_rejected(operator: str) -> None:
    with pytest.raises(Invalid):
        build_label_selector({"matchExpressions": [{"key": "a", "operator": operator}]})
