"""The reference pages of Karpenter's kinds, from the CustomResourceDefinitions that the stack installs."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from docs.reference.markdown import format_code, render_page, render_table

CRD_FOLDER: Final = Path(__file__).resolve().parents[2] / "shared" / "crds" / "manifests"
TABLE_HEADS: Final = ("Field", "Type", "Default", "Description")
_SKIPPED_PARTS: Final = frozenset(("apiVersion", "kind", "metadata"))
_BOUND_TEXTS: Final = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minItems": "at least {} entries",
    "maxItems": "at most {} entries",
    "minProperties": "at least {} keys",
}
_MAX_PATTERN_CHARS: Final = 60
"""A longer regular expression does not help a reader; the API server reports a value that does not match."""

Schema = Mapping[str, Any]


def render_kind_pages() -> dict[str, str]:
    """Render the page of each kind, by file name."""
    crds = (yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(CRD_FOLDER.glob("*.yaml")))
    return {f"{crd['spec']['names']['singular']}.md": _render_page(crd["spec"]) for crd in crds}


def _render_page(spec: Schema) -> str:
    [version] = spec["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    names = [spec["names"]["plural"], *spec["names"].get("shortNames", ())]
    scope = "no namespace" if spec["scope"] == "Cluster" else "in a namespace"
    introduction = (
        f"{schema['description']} `apiVersion: {spec['group']}/{version['name']}`, {scope}; "
        f"{' or '.join(format_code(f'kubectl get {name}') for name in names)}."
    )
    return render_page(
        spec["names"]["kind"],
        introduction,
        "Fields in bold are required; `[]` is each entry of a list, `{}` each value of a map; rules are validated.",
        *(
            f"## {part}\n\n{_render_fields(schema, part)}"
            for part in schema["properties"]
            if part not in _SKIPPED_PARTS
        ),
    )


def _render_fields(schema: Schema, part: str) -> str:
    is_required = part in schema.get("required", ())
    return render_table(TABLE_HEADS, _iterate_rows(part, schema["properties"][part], required=is_required))


def _iterate_rows(path: str, schema: Schema, *, required: bool) -> Iterator[tuple[str, str, str, str]]:
    default = format_code(_format_literal(schema["default"])) if "default" in schema else ""
    name = f"**{format_code(path)}**" if required and not default else format_code(path)
    description = _describe_schema(schema)
    if description or default or required or "properties" not in schema:
        yield name, _format_type(schema), default, description
    for key, subschema in schema.get("properties", {}).items():
        yield from _iterate_rows(f"{path}.{key}", subschema, required=key in schema.get("required", ()))
    for mark, subschema in (("[]", schema.get("items")), ("{}", schema.get("additionalProperties"))):
        if isinstance(subschema, Mapping) and not _is_plain(subschema):
            yield from _iterate_rows(f"{path}{mark}", subschema, required=False)


def _is_plain(schema: Schema) -> bool:
    """Return whether the type of a list or map describes its entries completely."""
    return "properties" not in schema


def _format_type(schema: Schema) -> str:
    kind = str(schema.get("type", ""))
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if kind == "array":
        return f"list of {_format_type(schema['items'])}"
    if isinstance(schema.get("additionalProperties"), Mapping):
        return f"map of {_format_type(schema['additionalProperties'])}"
    return "time" if schema.get("format") == "date-time" else kind


def _format_literal(value: object) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=1000).removesuffix("...\n").strip()
    return str(text)


def _describe_schema(schema: Schema) -> str:
    sentences = [schema.get("description", ""), *_describe_limits(schema)]
    rules = [rule["message"] for rule in _collect_rules(schema)]
    sentences += [f"*Rule*: {'; '.join(rules)}."] if rules else []
    return " ".join(part for part in sentences if part)


def _describe_limits(schema: Schema) -> Iterator[str]:
    """Yield each limit of the values as a sentence; for a list or map with plain entries, the limits of the entries."""
    for limited_schema in (schema, *(schema.get(below) for below in ("items", "additionalProperties"))):
        if not isinstance(limited_schema, Mapping) or (limited_schema is not schema and not _is_plain(limited_schema)):
            continue
        if "enum" in limited_schema:
            yield f"One of {', '.join(format_code(str(value)) for value in limited_schema['enum'])}."
        for key, template in _BOUND_TEXTS.items():
            if key in limited_schema and limited_schema[key] != 0:
                yield f"{template.format(limited_schema[key]).capitalize()}."
        pattern = limited_schema.get("pattern", "")
        if pattern and len(pattern) <= _MAX_PATTERN_CHARS:
            yield f"Like {format_code(pattern)}."
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        yield "Any field is taken."


def _collect_rules(schema: Schema) -> list[Mapping[str, str]]:
    """Return the CEL rules of *schema* and of plain entries, which have no row of their own."""
    rules = list(schema.get("x-kubernetes-validations", ()))
    for subschema in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(subschema, Mapping) and _is_plain(subschema):
            rules += subschema.get("x-kubernetes-validations", ())
    return rules
