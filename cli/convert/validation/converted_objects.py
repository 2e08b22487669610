"""Validation of converted objects as the API server and the planner would do it.

A refusal refers to the place of the field in the old manifest.
"""

from typing import Any

from cli.convert.fields.relocated_fields import FIXES_IN_V1
from cli.convert.reading.fixes import get_value_at, suggest_fix
from cli.convert.reading.remarks import FieldPath, RemarkCollector, format_path
from cli.convert.reading.sources import SourceObject
from cli.convert.validation.schema_checks import find_unknown_fields, list_schema_problems
from cli.convert.validation.semantic_checks import find_semantic_problems, list_planner_problems, parse_leading_field

JsonObject = dict[str, Any]


def refuse_invalid(source: SourceObject, value: JsonObject, remarks: RemarkCollector) -> None:
    """Refuse what an API server would reject in *value*, which *source* became.

    A field that was already refused for a better reason is not refused again.
    """
    refused_paths = [remark.path for remark in remarks.remarks if remark.level == "refused"]
    for path, reason in find_semantic_problems(value):
        origin_path = _find_origin(source, format_path(path))[0]
        if not any(origin_path[: len(refused_path)] == refused_path for refused_path in refused_paths):
            remarks.add_refusal(origin_path, reason)
    all_refused_paths = [remark.path for remark in remarks.remarks if remark.level == "refused"]
    for schema_problem in list_schema_problems(value):
        field, _, reason = schema_problem.partition(": ")
        path, is_leaf = _find_origin(source, field)
        if path not in all_refused_paths and (
            not refused_paths
            or (is_leaf and not any(path[: len(refused_path)] == refused_path for refused_path in refused_paths))
        ):
            fix = suggest_fix(field, reason, get_value_at(source.value, path))
            remarks.add_refusal(path, f"{value['kind']} v1 rejects {field}: {reason}: {fix}")
    if not remarks.is_refused():
        for message in list_planner_problems(value):
            field = parse_leading_field(message)
            remarks.add_refusal(_find_origin(source, field)[0], message.removeprefix(f"{field}: "))
    if value.get("apiVersion") == source.value["apiVersion"]:
        for path, close in find_unknown_fields(value):
            remarks.add_refusal(path, f"unknown field of {value['kind']} v1: {get_unknown_field_hint(path, close)}")


def get_unknown_field_hint(path: FieldPath, close: str) -> str:
    """Return the fix for the unknown field at *path* of a v1 object; *close* is the closest known field."""
    if path[-1] in FIXES_IN_V1:
        return FIXES_IN_V1[str(path[-1])]
    return f"did you mean {close}? Correct or remove it" if close else "correct or remove it"


def _find_origin(source: SourceObject, field: str) -> tuple[FieldPath, bool]:
    """Return the path in *source* of *field* of v1, or of its nearest ancestor; and whether it is a leaf."""
    path_by_field = {format_path(path): path for path in source.lines}
    plain_field = field.replace("[", ".").replace("]", "") if field not in path_by_field else field
    path_by_plain_field = (
        {name.replace("[", ".").replace("]", ""): path for name, path in path_by_field.items()}
        if plain_field != field
        else {}
    )
    for name in (field, field.replace("template.spec.", ""), field.replace("template.metadata.", "")):
        path = path_by_field.get(name) or path_by_plain_field.get(name.replace("[", ".").replace("]", ""))
        if path is not None:
            return path, not any(source_path[: len(path)] == path != source_path for source_path in source.lines)
    return (
        (path_by_field.get("spec", ()), False)
        if "." not in field
        else (_find_origin(source, field.rpartition(".")[0])[0], False)
    )
