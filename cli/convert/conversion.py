"""Conversion of objects of any Karpenter version to v1 objects and stack settings, with a reason for each change."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from cli.convert.fields.metadata import check_object_name
from cli.convert.kinds import global_settings, karpenter_deployment, node_pools, workloads
from cli.convert.kinds.kubelet_assignment import KubeletAssignment, assign_kubelets
from cli.convert.kinds.node_classes import (
    API_VERSION,
    NodeClassDefaults,
    convert_beta_node_class,
    convert_node_template,
)
from cli.convert.kinds.node_pools import ConvertedPool
from cli.convert.kinds.served_kinds import find_kind_problem, is_karpenter_api
from cli.convert.kinds.v1_corrections import find_foreign_node_class, repair_v1_object
from cli.convert.reading.field_reader import MappingReader
from cli.convert.reading.fixes import get_value_at
from cli.convert.reading.remarks import Remark, RemarkCollector, RemarkLevel, format_path
from cli.convert.reading.sources import SourceObject
from cli.convert.validation.converted_objects import refuse_invalid
from cli.convert.validation.schema_checks import has_schema

JsonObject = dict[str, Any]
V1ALPHA5: Final = "karpenter.sh/v1alpha5"
V1ALPHA4: Final = "karpenter.sh/v1alpha4"
"""A subset of the fields of v1alpha5."""
V1BETA1: Final = "karpenter.sh/v1beta1"
AWS_V1ALPHA1: Final = "karpenter.k8s.aws/v1alpha1"
AWS_V1BETA1: Final = "karpenter.k8s.aws/v1beta1"
_NODE_POOL_CONVERTERS: Final[Mapping[tuple[str, str], Callable[[MappingReader, NodeClassDefaults], ConvertedPool]]] = {
    (V1ALPHA5, "Provisioner"): node_pools.convert_provisioner,
    (V1ALPHA4, "Provisioner"): node_pools.convert_provisioner,
    (V1BETA1, "NodePool"): lambda root, _: node_pools.convert_beta_node_pool(root),
    (V1BETA1, "NodeClaim"): lambda root, _: node_pools.convert_beta_node_claim(root),
}
_NODE_CLASS_CONVERTERS: Final[Mapping[tuple[str, str], Callable[[MappingReader, NodeClassDefaults], JsonObject]]] = {
    (AWS_V1ALPHA1, "AWSNodeTemplate"): convert_node_template,
    (AWS_V1BETA1, "EC2NodeClass"): lambda root, _: convert_beta_node_class(root),
}
CONVERTED_KINDS: Final = frozenset((*_NODE_POOL_CONVERTERS, *_NODE_CLASS_CONVERTERS))
"""API version and kind of the objects that have another form in v1."""
_NODE_CLASS_KINDS: Final = ("AWSNodeTemplate", "EC2NodeClass")
_V1_KIND_BY_OLD_KIND: Final = {"Provisioner": "NodePool", "AWSNodeTemplate": "EC2NodeClass"}


class ConversionNote(msgspec.Struct, frozen=True, kw_only=True):
    """What was done with a field, or why it could not be converted."""

    level: RemarkLevel
    location: str
    """File, and line if that is known."""
    kind: str
    name: str
    field: str
    message: str


class ConversionResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of converting all objects."""

    objects: tuple[SourceObject, ...]
    """In the order in which they were read; the class of an inline provider precedes its pool."""
    stack_settings: Mapping[str, str]
    notes: tuple[ConversionNote, ...]


def convert_objects(sources: Iterable[SourceObject], role: str = "") -> ConversionResult:
    """Convert the old objects; pass the others unchanged. *role* is the node role if no object names a role."""
    source_objects = list(sources)
    remarked_objects: list[tuple[SourceObject, RemarkCollector]] = [
        (source_object, RemarkCollector(source_object.literals)) for source_object in source_objects
    ]
    stack_settings: dict[str, str] = {}
    defaults = NodeClassDefaults(role=role)
    _check_duplicate_names(remarked_objects)
    for source, remarks in remarked_objects:
        if _is_config_map(source.value, global_settings.GLOBAL_CONFIG_MAP):
            defaults = global_settings.read_defaults(_build_root_reader(source, remarks), role)
    defaults.node_class_names = frozenset(
        _get_name(source_object) for source_object in source_objects if source_object.value["kind"] in _NODE_CLASS_KINDS
    )
    converted_objects = [
        _convert_object(source_object, remarks, defaults, stack_settings) for source_object, remarks in remarked_objects
    ]
    accepted_objects = [
        new for (_, remarks), new in zip(remarked_objects, converted_objects, strict=True) if not remarks.is_refused()
    ]
    kubelet_assignment = assign_kubelets(
        [pool for pool in accepted_objects if isinstance(pool, ConvertedPool)], _index_node_classes(converted_objects)
    )
    objects: list[SourceObject] = []
    for (source, remarks), converted in zip(remarked_objects, converted_objects, strict=True):
        objects.extend(_list_output_objects(source, remarks, converted, kubelet_assignment))
    notes = (
        _build_note(source_object, remark)
        for source_object, remarks in remarked_objects
        for remark in _select_remarks(source_object, remarks)
    )
    return ConversionResult(objects=tuple(objects), stack_settings=stack_settings, notes=tuple(dict.fromkeys(notes)))


def _select_remarks(source: SourceObject, remarks: RemarkCollector) -> list[Remark]:
    """Return the remarks to print, by line; of an object that is left out, not what it would have become."""
    relevant = [remark for remark in remarks.remarks if not remarks.is_refused() or remark.level != "changed"]
    return sorted(
        relevant if _becomes_object(source) else remarks.remarks, key=lambda remark: source.get_line(remark.path)
    )


def _becomes_object(source: SourceObject) -> bool:
    return bool(source.value["kind"] != "ConfigMap")


def _build_root_reader(source: SourceObject, remarks: RemarkCollector) -> MappingReader:
    return MappingReader(source.value, (), remarks)


def _is_config_map(value: JsonObject, name: str) -> bool:
    meta = value.get("metadata")
    return value["kind"] == "ConfigMap" and isinstance(meta, dict) and meta.get("name") == name


def _convert_object(
    source: SourceObject, remarks: RemarkCollector, defaults: NodeClassDefaults, stack_settings: dict[str, str]
) -> ConvertedPool | JsonObject | None:
    """Return what *source* becomes; None if it becomes no object."""
    key = (str(source.value["apiVersion"]), source.value["kind"])
    if (convert_pool := _NODE_POOL_CONVERTERS.get(key)) is not None:
        converted_pool = convert_pool(_build_root_reader(source, remarks), defaults)
        stack_settings.update(converted_pool.stack_settings)
        return converted_pool
    if (convert_node_class := _NODE_CLASS_CONVERTERS.get(key)) is not None:
        return convert_node_class(_build_root_reader(source, remarks), defaults)
    if _is_config_map(source.value, global_settings.GLOBAL_CONFIG_MAP) or _is_config_map(
        source.value, global_settings.LOGGING_CONFIG_MAP
    ):
        stack_settings.update(global_settings.convert_config_map(_build_root_reader(source, remarks)))
        return None
    if has_schema(source.value):
        return _convert_v1_object(source, remarks)
    if (refusal := find_kind_problem(*key)) is not None:
        remarks.add_refusal((refusal[0],), refusal[1])
        return None
    if karpenter_deployment.is_controller(source.value):
        stack_settings.update(karpenter_deployment.convert_environment(source.value, remarks))
    return workloads.convert_workload(source.value, remarks)


def _convert_v1_object(source: SourceObject, remarks: RemarkCollector) -> ConvertedPool | JsonObject:
    if name := _get_name(source):
        check_object_name(name, ("metadata", "name"), remarks)
    elif get_value_at(source.value, ("metadata", "generateName")) is None:
        remarks.add_refusal(("metadata", "name"), "is missing: add a name")
    for path, message in find_foreign_node_class(source.value):
        remarks.add_warning(path, message)
    return repair_v1_object(source.value, remarks)


def _check_duplicate_names(remarked_objects: Iterable[tuple[SourceObject, RemarkCollector]]) -> None:
    """Add a remark for each object with the kind and name of another; refuse a former sibling of another kind."""
    first_by_name: dict[tuple[str, str], SourceObject] = {}
    for source, remarks in remarked_objects:
        kind = _V1_KIND_BY_OLD_KIND.get(source.value["kind"], source.value["kind"])
        if not is_karpenter_api(str(source.value["apiVersion"])) or not (name := _get_name(source)):
            continue
        first_source = first_by_name.setdefault((kind, name), source)
        path, location = ("metadata", "name"), first_source.get_location(("metadata", "name"))
        if first_source.value["kind"] != source.value["kind"] and first_source.file == source.file:
            remarks.add_refusal(
                path, f"{kind} {name} is already defined at {location}: rename or remove one of the two"
            )
        elif first_source.value != source.value:
            remarks.add_warning(
                path,
                f"{kind} {name} is also defined at {location}; the last applied object wins: rename one of the two",
            )


def _index_node_classes(converted_objects: Sequence[ConvertedPool | JsonObject | None]) -> dict[str, JsonObject]:
    """Return the node classes by name."""
    inline_classes = [
        converted_pool.inline_node_class
        for converted_pool in converted_objects
        if isinstance(converted_pool, ConvertedPool) and converted_pool.inline_node_class is not None
    ]
    node_classes = [
        *inline_classes,
        *(
            converted_object
            for converted_object in converted_objects
            if isinstance(converted_object, dict) and _is_node_class(converted_object)
        ),
    ]
    return {
        str(node_class["metadata"].get("name")): node_class
        for node_class in node_classes
        if isinstance(node_class.get("metadata"), dict)
    }


def _is_node_class(value: JsonObject) -> bool:
    has_v1_kind = value.get("kind") == "EC2NodeClass" and value.get("apiVersion") == API_VERSION
    return has_v1_kind and isinstance(value.get("metadata"), dict)


def _list_output_objects(
    source: SourceObject,
    remarks: RemarkCollector,
    converted: ConvertedPool | JsonObject | None,
    kubelet_assignment: KubeletAssignment,
) -> list[SourceObject]:
    """Return the objects to print for *source*."""
    if isinstance(converted, ConvertedPool):
        output_objects = [] if remarks.is_refused() else kubelet_assignment.build_pool(converted, remarks)
    elif converted is not None and _is_node_class(converted):
        output_objects = kubelet_assignment.build_node_class(converted, remarks)
    else:
        output_objects = [] if converted is None else [converted]
    if len(output_objects) == 1 and output_objects[0] is source.value:
        return [] if remarks.is_refused() else [source]
    for value in output_objects:
        refuse_invalid(source, value, remarks)
    if remarks.is_refused():
        return []
    return [SourceObject(value=value, file=source.file) for value in output_objects]


def _get_name(source: SourceObject) -> str:
    meta = source.value.get("metadata")
    return str((meta.get("name") if isinstance(meta, dict) else None) or "")


def _build_note(source: SourceObject, remark: Remark) -> ConversionNote:
    return ConversionNote(
        level=remark.level,
        location=source.get_location(remark.path),
        kind=source.value["kind"],
        name=_get_name(source) or "without a name",
        field=format_path(remark.path),
        message=remark.message,
    )
