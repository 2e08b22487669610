"""Repair of v1 objects with fields in the places of v1beta1, as far as their meaning is unambiguous."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, Final

from cli.convert.fields.ami_families import ALIAS_BY_FAMILY
from cli.convert.fields.kubelet import convert_kubelet
from cli.convert.kinds.node_class_refs import MISTAKEN_GROUPS, NODE_CLASS_GROUP, NODE_CLASS_KIND, NODE_TEMPLATE_KIND
from cli.convert.kinds.node_pools import ConvertedPool
from cli.convert.reading.field_reader import MappingReader
from cli.convert.reading.remarks import RemarkCollector
from cli.convert.validation.schema_checks import find_unknown_fields, list_schema_problems
from shared.model.karpenter.node_claim import has_own_group

JsonObject = dict[str, Any]
_BETA_POLICY: Final = "WhenUnderutilized"
_V1_POLICY: Final = "WhenEmptyOrUnderutilized"


def repair_v1_object(value: JsonObject, remarks: RemarkCollector) -> ConvertedPool | JsonObject:
    """Return *value*, of a v1 API, in a form that an API server accepts; *value* itself if it already is."""
    if not list_schema_problems(value) and not any(find_unknown_fields(value)):
        return value
    repaired = deepcopy(value)
    spec = _get_mapping(repaired, "spec")
    if value["kind"] == "EC2NodeClass":
        _add_image_alias(spec, remarks)
        return repaired
    if value["kind"] != "NodePool":
        return repaired
    template_spec = _get_mapping(repaired, "spec", "template", "spec")
    _repair_node_class_ref(template_spec, remarks)
    _repair_disruption(spec, template_spec, remarks)
    path = ("spec", "template", "spec", "kubelet")
    kubelet_config = convert_kubelet(MappingReader(template_spec, path[:-1], remarks).read_mapping("kubelet"))
    template_spec.pop("kubelet", None)
    pool = ConvertedPool(value=repaired, kubelet=kubelet_config, kubelet_path=path)
    return pool if kubelet_config is not None and pool.class_name else repaired


def find_foreign_node_class(value: JsonObject) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield path and message if *value* is a pool or claim with a node class of another autoscaler."""
    node_spec = (
        _get_mapping(value, "spec") if value["kind"] == "NodeClaim" else _get_mapping(value, "spec", "template", "spec")
    )
    group = _get_mapping(node_spec, "nodeClassRef").get("group")
    if value["kind"] in ("NodePool", "NodeClaim") and isinstance(group, str) and group and not has_own_group(group):
        path = (
            ("spec", "nodeClassRef") if value["kind"] == "NodeClaim" else ("spec", "template", "spec", "nodeClassRef")
        )
        yield (
            path,
            (
                f"is a class of {group}, for which Joiner launches no nodes: "
                f"write that of an EC2NodeClass of {NODE_CLASS_GROUP}"
            ),
        )


def _get_mapping(value: JsonObject, *keys: str) -> JsonObject:
    """Return the mapping at *keys*; a new empty one if there is none."""
    node: Any = value
    for key in keys:
        node = node.get(key)
        if not isinstance(node, dict):
            return {}
    return node  # type: ignore[no-any-return] # it is a dict by now


def _add_image_alias(spec: JsonObject, remarks: RemarkCollector) -> None:
    family = spec.get("amiFamily")
    if isinstance(family, str) and family in ALIAS_BY_FAMILY and not spec.get("amiSelectorTerms"):
        spec["amiSelectorTerms"] = [{"alias": ALIAS_BY_FAMILY[family]}]
        path = ("spec", "amiFamily")
        remarks.add_change(
            path, f"no longer selects images: set amiSelectorTerms: [{{alias: {ALIAS_BY_FAMILY[family]}}}]"
        )


def _repair_node_class_ref(template_spec: JsonObject, remarks: RemarkCollector) -> None:
    reference, path = template_spec.get("nodeClassRef"), ("spec", "template", "spec", "nodeClassRef")
    if not isinstance(reference, Mapping) or not reference.get("name"):
        return
    repaired_reference = {key: value for key, value in reference.items() if key != "apiVersion"}
    group = str(reference.get("group") or reference.get("apiVersion") or NODE_CLASS_GROUP).partition("/")[0]
    if group in (NODE_CLASS_GROUP, *MISTAKEN_GROUPS):
        kind = reference.get("kind") or NODE_CLASS_KIND
        repaired_reference |= {
            "group": NODE_CLASS_GROUP,
            "kind": NODE_CLASS_KIND if kind == NODE_TEMPLATE_KIND else kind,
        }
    if repaired_reference != reference:
        template_spec["nodeClassRef"] = repaired_reference
        remarks.add_change(path, f"apiVersion replaced with group {NODE_CLASS_GROUP} and kind")


def _repair_disruption(spec: JsonObject, template_spec: JsonObject, remarks: RemarkCollector) -> None:
    disruption, path = _get_mapping(spec, "disruption"), ("spec", "disruption")
    if disruption.get("consolidationPolicy") == _BETA_POLICY:
        disruption["consolidationPolicy"] = _V1_POLICY
        remarks.add_change((*path, "consolidationPolicy"), f"{_BETA_POLICY} renamed to {_V1_POLICY}")
    if "expireAfter" in disruption and template_spec.get("expireAfter") in (None, disruption["expireAfter"]):
        template_spec["expireAfter"] = disruption.pop("expireAfter")
        remarks.add_change((*path, "expireAfter"), "moved to template.spec.expireAfter")
