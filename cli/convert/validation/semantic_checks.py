"""Checks that no CRD schema does: planner rules, schedules, ARNs and misspelled labels."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from cli.convert.fields.kubelet import find_kubelet_problems
from cli.convert.fields.label_suggestions import suggest_label
from cli.convert.reading.fixes import format_value_list, suggest_requirement
from cli.convert.reading.remarks import FieldPath
from cli.convert.validation.schema_checks import list_schema_problems
from shared.model.core.calendar.cron_schedule import expand_schedule
from shared.take.manifests.snapshot_from_manifests import build_snapshot_from_documents

JsonObject = dict[str, Any]
_API_GROUP: Final = "karpenter.k8s.aws"
_NODE_CLASS_KIND: Final = "EC2NodeClass"
_FIELDS_WITH_SECONDS: Final = 6
"""Fields of a cron schedule with seconds, as some other programs read it."""
_PARSE_TIME: Final = datetime(2024, 1, 1, tzinfo=UTC)
_ARN_PATTERN: Final = re.compile(r"arn:[\w-]+:iam::[^:]*:(?:role|instance-profile)/(?:.*/)?([^/]+)")
_FIELD_PATTERN: Final = re.compile(r"(spec[\w.\[\]/-]*(?:\[[^\]]*\])?): ")


def parse_iam_name(arn: str) -> str:
    """Return the name at the end of the ARN of an IAM role or instance profile; empty for any other text.

    >>> parse_iam_name("arn:aws:iam::123456789012:role/eks/nodes"), parse_iam_name("nodes")
    ('nodes', '')
    """
    match = _ARN_PATTERN.fullmatch(arn)
    return "" if match is None else match[1]


def find_semantic_problems(value: JsonObject) -> Iterator[tuple[FieldPath, str]]:
    """Yield the path of each mistake in the v1 object *value* that an API server accepts, with reason and fix."""
    if value["kind"] == "EC2NodeClass":
        yield from _check_iam_names(value)
        yield from _check_node_class(value)
    if value["kind"] != "NodePool":
        return
    yield from _check_node_class_ref(value)
    for index, budget in enumerate(_list_mappings(value, "spec", "disruption", "budgets")):
        yield from _check_schedule(budget, ("spec", "disruption", "budgets", index, "schedule"))
    for index, requirement in enumerate(_list_mappings(value, "spec", "template", "spec", "requirements")):
        yield from _check_requirement(requirement, ("spec", "template", "spec", "requirements", index))


def list_planner_problems(value: JsonObject) -> list[str]:
    """Return why the planner ignores *value*, a NodePool that an API server would accept, with fixes."""
    if value["kind"] != "NodePool" or list_schema_problems(value):
        return []
    return [problem.message for problem in build_snapshot_from_documents([value], _PARSE_TIME).problems]


def parse_leading_field(message: str) -> str:
    """Return the field at the start of *message*; empty if there is none.

    >>> parse_leading_field("spec.weight: 0 must be between 1 and 100; correct it")
    'spec.weight'
    """
    match = _FIELD_PATTERN.match(message)
    return "" if match is None else match[1]


def _check_iam_names(value: JsonObject) -> Iterator[tuple[FieldPath, str]]:
    spec = value.get("spec")
    for field in ("role", "instanceProfile"):
        text = spec.get(field) if isinstance(spec, Mapping) else None
        if isinstance(text, str) and (name := parse_iam_name(text)):
            yield ("spec", field), f"must be a name, not an ARN: write {name}"


def _check_node_class(value: JsonObject) -> Iterator[tuple[FieldPath, str]]:
    spec = value.get("spec")
    kubelet_config = spec.get("kubelet") if isinstance(spec, Mapping) else None
    for path, reason in find_kubelet_problems(kubelet_config) if isinstance(kubelet_config, Mapping) else ():
        yield ("spec", "kubelet", *path), reason
    for index, mapping in enumerate(_list_mappings(value, "spec", "blockDeviceMappings")):
        ebs = mapping.get("ebs")
        size = ebs.get("volumeSize") if isinstance(ebs, Mapping) else None
        if isinstance(size, int):
            path = ("spec", "blockDeviceMappings", index, "ebs", "volumeSize")
            yield path, f"is {size} bytes, less than 1Gi: did you mean {size}Gi?"


def _check_node_class_ref(value: JsonObject) -> Iterator[tuple[FieldPath, str]]:
    path = ("spec", "template", "spec", "nodeClassRef")
    node: Any = value
    for key in path:
        node = node.get(key) if isinstance(node, Mapping) else None
    if (
        isinstance(node, Mapping)
        and node.get("group") == _API_GROUP
        and node.get("kind") not in (None, "", _NODE_CLASS_KIND)
    ):
        yield (*path, "kind"), f"{_API_GROUP} has no kind {node['kind']}: write {_NODE_CLASS_KIND}"


def _check_schedule(budget: Mapping[str, Any], path: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    text = budget.get("schedule")
    try:
        expand_schedule(text if isinstance(text, str) else "@daily")
    except ValueError as error:
        yield path, f"{error}: {_suggest_schedule(str(text))}"


def _suggest_schedule(text: str) -> str:
    """Return what to write instead of *text*, which is not a valid schedule."""
    fields = text.split()
    if fields and fields[0].startswith(("TZ=", "CRON_TZ=")):
        return f'write the schedule in UTC, without a time zone: "{" ".join(fields[1:])}"'
    if len(fields) == _FIELDS_WITH_SECONDS:
        return f'write it without seconds: "{" ".join(fields[1:])}"'
    return 'write five fields, such as "0 9 * * mon-fri", or @daily'


def _check_requirement(requirement: Mapping[str, Any], path: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    key, values = str(requirement.get("key")), requirement.get("values")
    if requirement and "key" not in requirement:
        yield path, f"has no key: {suggest_requirement([str(name) for name in requirement], requirement.get)}"
    if suggestion := suggest_label(key):
        yield (*path, "key"), f"unknown node label {key}: did you mean {suggestion}?"
    for index, text in enumerate(values if isinstance(values, list) else ()):
        if isinstance(text, str) and ("," in text or " " in text.strip()):
            yield (
                (*path, "values", index),
                f"is one string with several values,  {text!r}: write values: {format_value_list(text)}",
            )


def _list_mappings(value: Any, *keys: str) -> list[Mapping[str, Any]]:  # noqa: ANN401 - JSON
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return [item if isinstance(item, Mapping) else {} for item in value] if isinstance(value, list) else []
