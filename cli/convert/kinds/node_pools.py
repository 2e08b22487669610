"""Conversion of Provisioner v1alpha5, NodePool v1beta1 and NodeClaim v1beta1 to NodePool and NodeClaim v1."""

from typing import Any, Final

import msgspec

from cli.convert.fields.disruption import (
    convert_beta_disruption,
    convert_expiration,
    convert_provisioner_disruption,
    read_duration,
)
from cli.convert.fields.kubelet import convert_kubelet
from cli.convert.fields.metadata import convert_annotations, convert_metadata
from cli.convert.fields.relocated_fields import (
    FIXES_AT_ROOT,
    FIXES_IN_DISRUPTION,
    FIXES_IN_NODE_POOL,
    FIXES_IN_PROVISIONER,
    FIXES_IN_TEMPLATE,
)
from cli.convert.fields.requirements import (
    TYPE_SELECTING_LABELS,
    convert_limits,
    convert_requirements,
    convert_taints,
    has_any_key,
    split_labels,
)
from cli.convert.kinds import node_class_refs
from cli.convert.kinds.node_classes import NodeClassDefaults
from cli.convert.reading.field_reader import MappingReader
from cli.convert.reading.remarks import FieldPath
from shared.model.core.labels import ARCH, CAPACITY_TYPE, HOSTNAME, ON_DEMAND, OS

JsonObject = dict[str, Any]
API_VERSION: Final = "karpenter.sh/v1"
_DEFAULT_EXPIRATION: Final = "720h"
_MAX_WEIGHT: Final = 100
_CLAIM_MANAGED_KEYS: Final = frozenset((HOSTNAME,))
"""Keys that a claim must not require either; the NodePool label is allowed, because each claim has it."""
_CATEGORY, _GENERATION = "karpenter.k8s.aws/instance-category", "karpenter.k8s.aws/instance-generation"


class ConvertedPool(msgspec.Struct, frozen=True, kw_only=True):
    """A pool or claim, and the parts that belong to its node class."""

    value: JsonObject
    kubelet: JsonObject | None = None
    kubelet_path: FieldPath = ()
    """Path of the kubelet configuration in the old manifest."""
    inline_node_class: JsonObject | None = None
    """The node class of an inline provider."""
    stack_settings: dict[str, str] = {}
    """The cluster settings of an inline provider, as stack settings."""

    @property
    def class_name(self) -> str:
        """Name of the referenced node class; "" if there is none."""
        reference = self.spec.get("nodeClassRef")
        return str(reference.get("name") or "") if isinstance(reference, dict) else ""

    @property
    def name(self) -> str:
        """Name of the pool; "" if it has none."""
        meta = self.value.get("metadata")
        return str(meta.get("name") or "") if isinstance(meta, dict) else ""

    @property
    def spec(self) -> JsonObject:
        """The node specification."""
        spec: JsonObject = self.value["spec"]
        return spec if self.value["kind"] == "NodeClaim" else spec["template"]["spec"]


def convert_provisioner(root: MappingReader, defaults: NodeClassDefaults) -> ConvertedPool:
    """Return the NodePool for a Provisioner."""
    converted_metadata, spec = (
        convert_metadata(root),
        root.read_mapping("spec") or MappingReader({}, ("spec",), root.remarks),
    )
    pool_name = str(converted_metadata.get("name", ""))
    while pool_name in defaults.node_class_names:
        pool_name += "-inline"
    labels, all_requirements = split_labels(spec, spec.read_text_map("labels"), spec.get_path("labels"))
    all_requirements += convert_requirements(spec)
    node_spec: JsonObject = {
        "nodeClassRef": node_class_refs.NODE_CLASS_REF
        | {"name": node_class_refs.convert_provider_ref(spec, pool_name)},
        "requirements": _add_default_requirements(spec, all_requirements, labels),
        **_convert_taint_fields(spec),
        "expireAfter": convert_expiration(spec),
    }
    kubelet_config = convert_kubelet(spec.read_mapping("kubeletConfiguration"))
    inline_node_class, stack_settings = node_class_refs.convert_inline_fields(spec, pool_name, defaults)
    converted: JsonObject = {
        "template": _build_template(labels, convert_annotations(spec), node_spec),
        "disruption": convert_provisioner_disruption(spec),
        **_convert_limits_and_weight(spec),
    }
    spec.refuse_unread_keys(("labels", "annotations"), FIXES_IN_PROVISIONER)
    _finish_root(root)
    path = spec.get_path("kubeletConfiguration")
    return ConvertedPool(
        value=_build_node_pool(converted_metadata, converted),
        kubelet=kubelet_config,
        kubelet_path=path,
        inline_node_class=inline_node_class,
        stack_settings=stack_settings,
    )


def convert_beta_node_pool(root: MappingReader) -> ConvertedPool:
    """Return the NodePool v1 for one of v1beta1."""
    converted_metadata, spec = (
        convert_metadata(root),
        root.read_mapping("spec") or MappingReader({}, ("spec",), root.remarks),
    )
    template = spec.read_mapping("template") or MappingReader({}, spec.get_path("template"), root.remarks)
    template_metadata = template.read_mapping("metadata") or MappingReader(
        {}, template.get_path("metadata"), root.remarks
    )
    labels, all_requirements = split_labels(
        template_metadata, template_metadata.read_text_map("labels"), template_metadata.get_path("labels")
    )
    node_reader = template.read_mapping("spec") or MappingReader({}, template.get_path("spec"), root.remarks)
    node_spec, kubelet_config = _convert_node_spec(node_reader, all_requirements + convert_requirements(node_reader))
    disruption = spec.read_mapping("disruption") or MappingReader({}, spec.get_path("disruption"), root.remarks)
    if (expire_after := read_duration(disruption, "expireAfter")) not in ("", _DEFAULT_EXPIRATION):
        node_spec["expireAfter"] = expire_after
    if expire_after:
        root.remarks.add_change(
            disruption.get_path("expireAfter"), "moved to template.spec.expireAfter; expiration ignores budgets"
        )
    converted: JsonObject = {
        "template": _build_template(labels, convert_annotations(template_metadata), node_spec),
        "disruption": convert_beta_disruption(disruption),
    }
    converted["limits"] = convert_limits(spec.read_mapping("limits"))
    converted["weight"] = _read_weight(spec)
    for key in ("name", "creationTimestamp"):
        if not template_metadata.is_set(key):
            template_metadata.read_raw(key)
    template_metadata.refuse_unread_keys()
    template.refuse_unread_keys(fixes=FIXES_IN_TEMPLATE)
    disruption.refuse_unread_keys(fixes=FIXES_IN_DISRUPTION)
    spec.refuse_unread_keys(fixes=FIXES_IN_NODE_POOL)
    _finish_root(root)
    return ConvertedPool(
        value=_build_node_pool(converted_metadata, _drop_empty_fields(converted)),
        kubelet=kubelet_config,
        kubelet_path=template.get_path("spec", "kubelet"),
    )


def convert_beta_node_claim(root: MappingReader) -> ConvertedPool:
    """Return the NodeClaim v1 for one of v1beta1."""
    converted_metadata, spec = (
        convert_metadata(root),
        root.read_mapping("spec") or MappingReader({}, ("spec",), root.remarks),
    )
    node_spec, kubelet_config = _convert_node_spec(spec, convert_requirements(spec, _CLAIM_MANAGED_KEYS))
    resources = spec.read_mapping("resources")
    if resources is not None:
        node_spec["resources"] = {"requests": convert_limits(resources.read_mapping("requests"))}
        resources.refuse_unread_keys()
    _finish_root(root)
    root.remarks.add_warning((), "applying a NodeClaim launches an instance: apply NodePools instead")
    return ConvertedPool(
        value={"apiVersion": API_VERSION, "kind": "NodeClaim", "metadata": converted_metadata, "spec": node_spec},
        kubelet=kubelet_config,
        kubelet_path=spec.get_path("kubelet"),
    )


def _build_node_pool(converted_metadata: JsonObject, spec: JsonObject) -> JsonObject:
    return {"apiVersion": API_VERSION, "kind": "NodePool", "metadata": converted_metadata, "spec": spec}


def _finish_root(root: MappingReader) -> None:
    for key in ("apiVersion", "kind", "status"):
        root.read_raw(key)
    root.refuse_unread_keys(fixes=FIXES_AT_ROOT)


def _drop_empty_fields(fields: JsonObject) -> JsonObject:
    return {key: value for key, value in fields.items() if value not in (None, {}, [], "")}


def _build_template(labels: dict[str, str], converted_annotations: dict[str, str], spec: JsonObject) -> JsonObject:
    template_metadata = _drop_empty_fields({"labels": labels, "annotations": converted_annotations})
    return _drop_empty_fields({"metadata": template_metadata, "spec": spec})


def _convert_taint_fields(spec: MappingReader) -> JsonObject:
    return _drop_empty_fields({field: convert_taints(spec, field) for field in ("taints", "startupTaints")})


def _convert_node_spec(spec: MappingReader, all_requirements: list[JsonObject]) -> tuple[JsonObject, JsonObject | None]:
    """Return the node specification of a v1beta1 pool or claim, and its kubelet configuration."""
    node_spec: JsonObject = {
        "nodeClassRef": node_class_refs.convert_beta_node_class_ref(spec),
        "requirements": all_requirements,
        **_convert_taint_fields(spec),
    }
    kubelet_config = convert_kubelet(spec.read_mapping("kubelet"))
    spec.read_raw("resources")
    spec.refuse_unread_keys(fixes=FIXES_IN_TEMPLATE)
    return node_spec, kubelet_config


def _add_default_requirements(
    spec: MappingReader, all_requirements: list[JsonObject], labels: dict[str, str]
) -> list[JsonObject]:
    """Write out the requirements that the v1alpha5 webhook added."""
    keys = {str(existing_requirement.get("key")) for existing_requirement in all_requirements} | set(labels)
    added_requirements = [
        {"key": key, "operator": "In", "values": [value]}
        for key, value in ((OS, "linux"), (ARCH, "amd64"), (CAPACITY_TYPE, ON_DEMAND))
        if key not in keys
    ]
    if not has_any_key(keys, TYPE_SELECTING_LABELS):
        added_requirements.append({"key": _CATEGORY, "operator": "In", "values": ["c", "m", "r"]})
        added_requirements.append({"key": _GENERATION, "operator": "Gt", "values": ["2"]})
    for requirement in added_requirements:
        description = f"{requirement['key']} {requirement['operator']} {', '.join(requirement['values'])}"
        spec.remarks.add_change(spec.get_path("requirements"), f"added {description}, the former default")
    return all_requirements + added_requirements


def _convert_limits_and_weight(spec: MappingReader) -> JsonObject:
    limits_reader = spec.read_mapping("limits")
    converted_limits: JsonObject = {}
    if limits_reader is not None:
        converted_limits = convert_limits(limits_reader.read_mapping("resources"))
        for name in ("cpu", "memory"):
            if limits_reader.has(name):
                message = f"had no effect outside limits.resources: write limits.resources.{name}"
                limits_reader.remarks.add_refusal(limits_reader.get_path(name), message)
        limits_reader.refuse_unread_keys()
        if converted_limits:
            spec.remarks.add_change(limits_reader.get_path("resources"), "moved to limits")
    return _drop_empty_fields({"limits": converted_limits, "weight": _read_weight(spec)})


def _read_weight(spec: MappingReader) -> int | None:
    weight = spec.read_integer("weight")
    if weight is not None and not 0 <= weight <= _MAX_WEIGHT:
        spec.remarks.add_refusal(
            spec.get_path("weight"), f"is {weight}: write 1 to 100; a higher weight has precedence"
        )
    return weight or None
