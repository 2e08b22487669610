"""The kinds of Karpenter's API, from the CustomResourceDefinitions that the stack installs."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from docs.reference.markdown import code, page, table

DEFINITIONS: Final = Path(__file__).resolve().parents[2] / "shared" / "kube" / "crds"
HEADS: Final = ("Field", "Type", "Default", "What it says")
_SKIPPED: Final = frozenset(("apiVersion", "kind", "metadata"))
_BOUNDS: Final = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minItems": "at least {} entries",
    "maxItems": "at most {} entries",
    "minProperties": "at least {} keys",
}
_LONG_PATTERN: Final = 60
"""A longer regular expression tells nobody anything; what is refused is told by the API server."""

Schema = Mapping[str, Any]


def pages() -> dict[str, str]:
    """Answer the text of each kind's page by its file name."""
    definitions = (yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(DEFINITIONS.glob("*.yaml")))
    return {f"{one['spec']['names']['singular']}.md": _page(one["spec"]) for one in definitions}


def _page(spec: Schema) -> str:
    [version] = spec["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    names = [spec["names"]["plural"], *spec["names"].get("shortNames", ())]
    scope = "no namespace" if spec["scope"] == "Cluster" else "in a namespace"
    about = (
        f"{schema['description']} `apiVersion: {spec['group']}/{version['name']}`, {scope}; "
        f"{' or '.join(code(f'kubectl get {name}') for name in names)}."
    )
    return page(
        spec["names"]["kind"],
        about,
        "A field in bold must be there; `[]`: each entry of a list; `{}`: each value of a map; *held*: else refused.",
        *(f"## {part}\n\n{_fields(schema, part)}" for part in schema["properties"] if part not in _SKIPPED),
    )


def _fields(schema: Schema, part: str) -> str:
    wanted = part in schema.get("required", ())
    return table(HEADS, _rows(part, schema["properties"][part], required=wanted))


def _rows(path: str, schema: Schema, *, required: bool) -> Iterator[tuple[str, str, str, str]]:
    default = code(_literal(schema["default"])) if "default" in schema else ""
    name = f"**{code(path)}**" if required and not default else code(path)
    says = _says(schema)
    if says or default or required or "properties" not in schema:
        yield name, _type(schema), default, says
    for key, below in schema.get("properties", {}).items():
        yield from _rows(f"{path}.{key}", below, required=key in schema.get("required", ()))
    for mark, below in (("[]", schema.get("items")), ("{}", schema.get("additionalProperties"))):
        if isinstance(below, Mapping) and not _is_plain(below):
            yield from _rows(f"{path}{mark}", below, required=False)


def _is_plain(schema: Schema) -> bool:
    """Whether the type of a list or map says all of it."""
    return "properties" not in schema


def _type(schema: Schema) -> str:
    kind = str(schema.get("type", ""))
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if kind == "array":
        return f"list of {_type(schema['items'])}"
    if isinstance(schema.get("additionalProperties"), Mapping):
        return f"map of {_type(schema['additionalProperties'])}"
    return "time" if schema.get("format") == "date-time" else kind


def _literal(value: object) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=1000).removesuffix("...\n").strip()
    return str(text)


def _says(schema: Schema) -> str:
    told = [schema.get("description", ""), *_limits(schema)]
    rules = [rule["message"] for rule in _rules(schema)]
    told += [f"*Held*: {'; '.join(rules)}."] if rules else []
    return " ".join(part for part in told if part)


def _limits(schema: Schema) -> Iterator[str]:
    """Answer what values there may be, each as a sentence; of a list or map with plain entries those of the entries."""
    for one in (schema, *(schema.get(below) for below in ("items", "additionalProperties"))):
        if not isinstance(one, Mapping) or (one is not schema and not _is_plain(one)):
            continue
        if "enum" in one:
            yield f"One of {', '.join(code(str(value)) for value in one['enum'])}."
        for key, words in _BOUNDS.items():
            if key in one and one[key] != 0:
                yield f"{words.format(one[key]).capitalize()}."
        pattern = one.get("pattern", "")
        if pattern and len(pattern) <= _LONG_PATTERN:
            yield f"Like {code(pattern)}."
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        yield "Any field is taken."


def _rules(schema: Schema) -> list[Mapping[str, str]]:
    """Answer the CEL rules of *schema*, and of plain entries, which have no row of their own."""
    found = list(schema.get("x-kubernetes-validations", ()))
    for below in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(below, Mapping) and _is_plain(below):
            found += below.get("x-kubernetes-validations", ())
    return found
