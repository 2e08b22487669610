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
def test_a_value_is_judged(definition: dict[str, Any], good: Json, bad: Json) -> None:
    assert list_problems(build_schema(**definition), good) == []
    [problem] = list_problems(build_schema(**definition), bad)
    assert problem.startswith("spec")


def test_a_rule_that_cannot_be_evaluated_is_broken() -> None:
    wrong = build_schema(
        type="object", **{"x-kubernetes-validations": [{"rule": "self.a == 1", "message": "a is one"}]}
    )
    [problem] = list_problems(wrong, {})
    assert "a is one" in problem


def test_a_rule_that_is_no_expression_is_refused() -> None:
    with pytest.raises(Invalid, match="self >"):
        build_schema(type="integer", **{"x-kubernetes-validations": [{"rule": "self >"}]})


def test_what_did_not_change_is_not_judged_again() -> None:
    strict = build_schema(type="object", properties={"a": {"type": "string", "enum": ["new"]}, "b": {"type": "string"}})
    assert list_problems(strict, {"a": "old", "b": "2"}, {"a": "old", "b": "1"}) == []
    assert list_problems(strict, {"a": "older"}, {"a": "old"}) != []


def test_rules_are_asked_once_the_shape_is_right() -> None:
    schema = build_schema(
        type="object",
        properties={"a": {"type": "integer"}},
        **{"x-kubernetes-validations": [{"rule": "self.a > 1", "message": "more"}]},
    )
    assert list_problems(schema, {"a": "b"}) == ['spec.a: Invalid value: "b": must be of type integer']
    assert list_problems(schema, {"a": 1}) == ["spec: Invalid value: more"]


def test_items_of_a_map_list_are_compared_by_their_keys() -> None:
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


def test_unknown_fields_go_unless_they_may_stay() -> None:
    closed = build_schema(type="object", properties={"a": {"type": "array", "items": {"type": "object"}}})
    pruned = closed.prune_and_default({"kind": "K", "other": 1, "spec": {"a": [{"b": 1}], "c": 2}})
    assert pruned == {"kind": "K", "spec": {"a": [{}]}}
    opened = build_schema(type="object", **{"x-kubernetes-preserve-unknown-fields": True})
    assert opened.prune_and_default({"spec": {"c": {"d": 2}}}) == {"spec": {"c": {"d": 2}}}


def test_a_value_without_a_type_is_taken() -> None:
    assert list_problems(build_schema(), [1, "a"]) == []


def test_a_null_gives_way_to_a_default() -> None:
    defaulted = build_schema(
        type="object", properties={"a": {"type": "string", "default": "b"}, "c": {"type": "string"}}
    )
    assert defaulted.prune_and_default({"spec": {"a": None}}) == {"spec": {"a": "b"}}
    nullable = build_schema(type="object", properties={"a": {"type": "string", "default": "b", "nullable": True}})
    assert nullable.prune_and_default({"spec": {"a": None}}) == {"spec": {"a": None}}


def test_a_long_value_is_cut_in_the_message() -> None:
    [problem] = list_problems(build_schema(type="string", maxLength=1), "x" * 100)
    assert problem.count("x") < 65


def test_our_definitions_say_what_kubectl_shows() -> None:
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


def test_our_definitions_are_files_named_after_them() -> None:
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


def test_everything_in_our_definitions_has_a_bound() -> None:
    for definition in load_shipped_crds():
        root = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        assert find_unbounded_paths(root, definition["spec"]["names"]["kind"], judged=False) == []


@pytest.mark.parametrize(
    "change", [{"group": "other.com"}, {"versions": []}, {"versions": [{"name": "v1", "storage": True}]}]
)
def test_a_definition_that_defines_nothing_is_refused(change: dict[str, Any]) -> None:
    api = ApiServer(Clock(), definitions=())
    good = load_shipped_crds()[0]
    with pytest.raises(Invalid):
        api.create("customresourcedefinitions.apiextensions.k8s.io", {**good, "spec": good["spec"] | change})


def test_a_changed_definition_is_served_at_once() -> None:
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
def test_a_selector_as_an_object_selects(selector: dict[str, Any] | None, *, expected: bool) -> None:
    assert build_label_selector(selector)({"a": "1"}) is expected


@pytest.mark.parametrize("operator", ["In", "Near"])
def test_a_selector_with_half_an_expression_is_refused(operator: str) -> None:
    with pytest.raises(Invalid):
        build_label_selector({"matchExpressions": [{"key": "a", "operator": operator}]})
