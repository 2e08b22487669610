"""The lint rules: errors and likely mistakes in manifests, as findings with location and fix."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Final

from cli.convert.conversion import CONVERTED_KINDS, convert_objects
from cli.convert.fields.metadata import V1_ANNOTATION_BY_OLD_ANNOTATION, convert_annotation_key
from cli.convert.kinds.v1_corrections import find_foreign_node_class
from cli.convert.kinds.workloads import POD_PATH_BY_KIND
from cli.convert.reading.fixes import get_value_at, suggest_fix
from cli.convert.reading.remarks import FieldPath, RemarkCollector, format_path
from cli.convert.reading.sources import SourceObject
from cli.convert.validation.converted_objects import get_unknown_field_hint
from cli.convert.validation.schema_checks import find_unknown_fields, has_schema, list_schema_problems
from cli.convert.validation.semantic_checks import find_semantic_problems, list_planner_problems, parse_leading_field
from cli.lint.finding import LintFinding, LintLevel, build_finding, get_object_name
from cli.lint.gang_rules import lint_gang
from cli.lint.label_values import lint_label_values
from cli.lint.node_class_rules import lint_node_class_annotations
from cli.lint.node_pool_rules import lint_node_pools
from cli.lint.other_annotations import HonorSetting, lint_other_annotations
from cli.lint.pod_resources import lint_pod_resources
from cli.lint.schedule_rules import SCHEDULE_PROBLEM_PREFIX, lint_schedule
from cli.lint.spot_share_rules import lint_workload_share
from shared.model.cloud_provider.instance_type import Catalog
from shared.model.core.labels import DO_NOT_DISRUPT
from shared.model.core.units import parse_duration

JsonObject = dict[str, Any]
_RECOGNIZED_ANNOTATIONS: Final = frozenset((*V1_ANNOTATION_BY_OLD_ANNOTATION, DO_NOT_DISRUPT))


def lint_objects(
    source_objects: Sequence[SourceObject], catalog: Catalog | None = None, honor: HonorSetting = ""
) -> list[LintFinding]:
    """Return the findings about *source_objects*, in the order in which the objects were read.

    *honor*: the deployment's setting honor-cluster-autoscaler-annotations.
    """
    lint_findings = [
        lint_finding for source_object in source_objects for lint_finding in _lint_object(source_object, honor)
    ]
    reported_keys = {(lint_finding.kind, lint_finding.name, lint_finding.field) for lint_finding in lint_findings}
    lint_findings += [
        lint_finding
        for lint_finding in _lint_old_objects(source_objects)
        if (lint_finding.kind, lint_finding.name, lint_finding.field) not in reported_keys
    ]
    value_findings = list(lint_label_values(source_objects, catalog))
    lists_with_findings = {(finding.kind, finding.name, finding.field.rpartition("[")[0]) for finding in value_findings}
    lint_findings = [
        finding
        for finding in (*lint_findings, *lint_node_pools(source_objects, catalog))
        if (finding.kind, finding.name, finding.field) not in lists_with_findings
    ]
    lint_findings += value_findings
    position_by_id = {id(source_object): place for place, source_object in enumerate(source_objects)}
    position_by_object = {
        (source_object.value["kind"], get_object_name(source_object.value)): position_by_id[id(source_object)]
        for source_object in reversed(source_objects)
    }
    return sorted(
        dict.fromkeys(lint_findings),
        key=lambda lint_finding: (
            position_by_object.get((lint_finding.kind, lint_finding.name), 0),
            _parse_line_number(lint_finding.location),
            lint_finding.field,
        ),
    )


def _parse_line_number(location: str) -> int:
    line = location.rpartition(":")[2]
    return int(line) if line.isdecimal() else 0


def _lint_object(source_object: SourceObject, honor: HonorSetting) -> Iterator[LintFinding]:
    """Check *source_object* alone: its fields, annotations and images."""
    if has_schema(source_object.value):
        for path, close in find_unknown_fields(source_object.value):
            message = f"unknown field, which the API server drops: {get_unknown_field_hint(path, close)}"
            yield build_finding(source_object, "error", path, message)
        fault_paths = {path for path, _ in find_semantic_problems(source_object.value)}
        for complaint in list_schema_problems(source_object.value):
            field, _, reason = complaint.partition(": ")
            path = _parse_path(field, source_object)
            if path in fault_paths:
                continue
            message = f"{reason}: {suggest_fix(field, reason, get_value_at(source_object.value, path))}"
            yield build_finding(source_object, "error", path, message)
        if not fault_paths:
            yield from _lint_planner_problems(source_object)
        for path, reason in find_semantic_problems(source_object.value):
            yield build_finding(source_object, "error", path, reason)
        for path, reason in find_foreign_node_class(source_object.value):
            yield build_finding(source_object, "warning", path, reason)
        yield from _lint_images(source_object)
    elif source_object.value["kind"] in POD_PATH_BY_KIND:
        yield from _lint_text_fields(source_object)
        yield from _lint_misplaced_annotations(source_object)
        yield from lint_pod_resources(source_object)
        yield from lint_workload_share(source_object)
        yield from lint_gang(source_object)
    yield from lint_schedule(source_object)
    yield from lint_node_class_annotations(source_object)
    for path, notes in _find_in_metadata("annotations", source_object.value, ()):
        yield from _lint_annotations(source_object, path, notes)
        yield from lint_other_annotations(source_object, path, notes, honor)


def _lint_planner_problems(source_object: SourceObject) -> Iterator[LintFinding]:
    """Report what the planner rejects; `lint_schedule` reports invalid schedules."""
    for problem in list_planner_problems(source_object.value):
        message = f" | {problem}".partition(f" | {SCHEDULE_PROBLEM_PREFIX}")[0].removeprefix(" | ")
        if message:
            field = parse_leading_field(message)
            yield build_finding(
                source_object, "error", _parse_path(field, source_object), message.removeprefix(f"{field}: ")
            )


def _parse_path(field: str, source_object: SourceObject) -> FieldPath:
    """Parse what `spelled` writes: a path of *source_object*, else a path in which no key contains a dot."""
    if (known_path := next((path for path in source_object.lines if format_path(path) == field), None)) is not None:
        return known_path
    parts: list[str | int] = []
    for part in field.split("."):
        key, *places = part.replace("]", "").split("[")
        parts += [key, *(int(place) for place in places if place.isdecimal())]
    return tuple(parts)


def _lint_images(source_object: SourceObject) -> Iterator[LintFinding]:
    spec = source_object.value.get("spec")
    terms = spec.get("amiSelectorTerms") if isinstance(spec, dict) else None
    for position, term in enumerate(terms if isinstance(terms, list) else ()):
        tags = term.get("tags") if isinstance(term, dict) else None
        values_by_path: dict[FieldPath, Any] = {("name",): term.get("name")} if isinstance(term, dict) else {}
        values_by_path |= {("tags", key): text for key, text in (tags if isinstance(tags, dict) else {}).items()}
        for subpath, text in values_by_path.items():
            if isinstance(text, str) and (name := text.strip()).startswith("ami-"):
                path = ("spec", "amiSelectorTerms", position, *subpath)
                message = f"{name} is an image ID, not a name: write `id: {name}`"
                yield build_finding(source_object, "error" if subpath == ("name",) else "warning", path, message)


def _find_in_metadata(field: str, value: Any, path: FieldPath) -> Iterator[tuple[FieldPath, JsonObject]]:  # noqa: ANN401 - JSON
    """Yield every *field* of a metadata object in *value*: of the object, and of its templates."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == field and path[-1:] == ("metadata",) and isinstance(inner, dict):
                yield (*path, key), inner
            else:
                yield from _find_in_metadata(field, inner, (*path, key))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _find_in_metadata(field, inner, (*path, position))


def _lint_annotations(source_object: SourceObject, path: FieldPath, annotations: JsonObject) -> Iterator[LintFinding]:
    for key, value in annotations.items():
        annotation_path, remarks = (*path, key), RemarkCollector()
        current_key = convert_annotation_key(str(key), annotation_path, remarks)
        if key in V1_ANNOTATION_BY_OLD_ANNOTATION:
            fix = (
                "`joiner convert` changes it"
                if source_object.value["kind"] in POD_PATH_BY_KIND
                else f"write {current_key}"
            )
            yield build_finding(source_object, "warning", annotation_path, f"old name of {current_key}: {fix}")
        yield from (
            build_finding(source_object, "warning", annotation_path, remark.message)
            for remark in remarks.remarks
            if remark.level == "warning"
        )
        if current_key in _RECOGNIZED_ANNOTATIONS and not isinstance(value, str):
            text = str(value).lower()
            yield build_finding(
                source_object, "error", annotation_path, f'must be a string: write it in quotes: "{text}"'
            )
        elif current_key in _RECOGNIZED_ANNOTATIONS and value != "true" and not _is_positive_duration(str(value)):
            fix = "remove it" if str(value).lower() == "false" else 'write "true", or a duration'
            yield build_finding(source_object, "warning", annotation_path, f"{value!r} does not protect the pod: {fix}")


def _is_positive_duration(text: str) -> bool:
    try:
        return parse_duration(text) > timedelta()
    except ValueError:
        return False


def _lint_misplaced_annotations(source_object: SourceObject) -> Iterator[LintFinding]:
    """Check for annotations that would protect pods if they were on the pod template."""
    meta, path = (
        source_object.value.get("metadata"),
        format_path((*POD_PATH_BY_KIND[source_object.value["kind"]], "metadata", "annotations")),
    )
    annotations = meta.get("annotations") if isinstance(meta, dict) else None
    for key in (
        sorted(_RECOGNIZED_ANNOTATIONS & annotations.keys())
        if isinstance(annotations, dict) and POD_PATH_BY_KIND[source_object.value["kind"]]
        else ()
    ):
        message = f"has no effect here, only on pods: move it to {path}"
        yield build_finding(source_object, "warning", ("metadata", "annotations", key), message)
    for label_path, labels in _find_in_metadata("labels", source_object.value, ()):
        for key in sorted(_RECOGNIZED_ANNOTATIONS & labels.keys()):
            yield build_finding(
                source_object, "warning", (*label_path, key), f"has no effect as a label: move it to {path}"
            )


def _lint_text_fields(source_object: SourceObject) -> Iterator[LintFinding]:
    """Check for values in pod templates that must be strings and are not."""
    for path, value in _find_non_text_values(source_object.value, ()):
        text = source_object.literals.get(path, str(value).lower() if isinstance(value, bool) else str(value))
        yield build_finding(source_object, "error", path, f'must be a string: write it in quotes: "{text}"')


def _find_non_text_values(value: Any, path: FieldPath) -> Iterator[tuple[FieldPath, Any]]:  # noqa: ANN401 - JSON
    if isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _find_non_text_values(inner, (*path, position))
    elif isinstance(value, dict):
        for key, inner in value.items():
            is_text = path[-1:] == ("nodeSelector",) or path[-2:] == ("metadata", "labels")
            is_text |= len(path) > 1 and path[-2] == "tolerations" and key in ("key", "value", "operator", "effect")
            if is_text and isinstance(inner, bool | int | float):
                yield (*path, key), inner
            else:
                yield from _find_non_text_values(inner, (*path, key))


def _lint_old_objects(source_objects: Sequence[SourceObject]) -> Iterator[LintFinding]:
    """Yield findings about objects of an older API, and about what `joiner convert` would refuse in them."""
    conversion = convert_objects(source_objects)
    current = {
        (source.value["kind"], get_object_name(source.value)) for source in source_objects if has_schema(source.value)
    }
    for note in conversion.notes:
        is_known = (note.kind, note.name) in current and note.field != "metadata.name"
        if note.level != "changed" and note.kind not in POD_PATH_BY_KIND and not is_known:
            level: LintLevel = "error" if note.level in ("missing", "refused") else "warning"
            yield LintFinding(
                level=level,
                location=note.location,
                kind=note.kind,
                name=note.name,
                field=note.field,
                message=note.message,
            )
    for source_object in source_objects:
        api = str(source_object.value["apiVersion"])
        if (api, source_object.value["kind"]) in CONVERTED_KINDS:
            yield build_finding(
                source_object, "error", ("apiVersion",), f"{api} is no longer served: run `joiner convert`"
            )
