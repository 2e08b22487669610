"""The reference page of the fleet document, from the structs that encode it and their docstrings."""

import ast
import inspect
import re
from collections.abc import Iterator
from textwrap import dedent
from typing import Final

import msgspec

from cli.fleet.document import fleet_decisions, fleet_document, node_columns, pod_columns
from docs.reference.markdown import format_code, render_page, render_table

_PAGE: Final = "fleet-document.md"
_PARTS: Final[tuple[tuple[str, type[msgspec.Struct]], ...]] = (
    ("The document", fleet_document.FleetDocument),
    ("source", fleet_document.FleetSource),
    ("nodePools[]", node_columns.FleetNodePool),
    ("nodes", node_columns.FleetNodeColumns),
    ("nodeStates", node_columns.NodeStateColumns),
    ("pods", pod_columns.FleetPodColumns),
    ("podPlaces", pod_columns.PodPlaceColumns),
    ("decisions[]", fleet_decisions.FleetDecision),
    ("markers[]", fleet_decisions.FleetMarker),
    ("why[]", fleet_decisions.NodeWhy),
    ("why[].alternatives[]", fleet_decisions.OfferingAlternative),
    ("series[]", fleet_document.FleetSeries),
    ("totals", fleet_document.FleetTotals),
)
_INTRODUCTION: Final = f"""The interactive page of `joiner demo`, `joiner report` and `joiner ui` reads one JSON object.
The file `demo.html` or `report.html` has it in the element `fleet-document`; the server of `joiner ui` returns it at
`/api/fleet`. `format` is `{fleet_document.FLEET_FORMAT}`, `version` is {fleet_document.FLEET_VERSION}. Later versions
of Joiner can add fields, which readers ignore; a reader refuses a version that it does not know."""
_RULES: Final = """- Times are integers: milliseconds since the Unix epoch, in UTC.
- Prices are in USD per hour, CPU in thousandths of a CPU, memory in MiB.
- Parts with columns have one array for each field, all of the same length. A *string index* is a position in `strings`,
  where position 0 is the empty string: unknown.
- null is unknown. What could not be read is not gone.
- All texts come from a cluster and are not markup: a page must show them as text."""


def render_fleet_pages() -> dict[str, str]:
    """Render the page, by file name."""
    return {_PAGE: render_fleet_reference()}


def render_fleet_reference() -> str:
    """Render the page of the fleet document."""
    sections = (f"## {title}\n\n{_get_summary(struct)}\n\n{_render_fields(struct)}" for title, struct in _PARTS)
    introduction = " ".join(_INTRODUCTION.split("\n"))
    return render_page("Fleet document", introduction, _RULES, *sections)


def _get_summary(struct: type[msgspec.Struct]) -> str:
    return " ".join((inspect.getdoc(struct) or "").split())


def _render_fields(struct: type[msgspec.Struct]) -> str:
    descriptions, types = read_descriptions(struct)
    names = zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True)
    rows = ((format_code(json_name), format_code(types[name]), descriptions.get(name, "")) for name, json_name in names)
    return render_table(("Field", "Type", "Content"), rows)


def read_descriptions(struct: type[msgspec.Struct]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the docstring and the JSON type of each field."""
    [class_definition] = ast.parse(dedent(inspect.getsource(struct))).body
    assert isinstance(class_definition, ast.ClassDef)  # noqa: S101 - the source of a class
    descriptions: dict[str, str] = {}
    types: dict[str, str] = {}
    field = ""
    for statement in class_definition.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                field, types[name] = name, _format_type(ast.unparse(annotation))
            case ast.Expr(value=ast.Constant(value=str(text))) if field:
                descriptions[field] = " ".join(text.split())
            case _:
                field = ""
    return descriptions, types


def _format_type(annotation: str) -> str:
    """Return *annotation* as a type of JSON.

    >>> _format_type("tuple[int | None, ...]"), _format_type("dict[str, int]"), _format_type("NodeWhy")
    ('[integer | null]', '{integer}', 'object')
    """
    text = annotation
    for pattern, replacement in _iterate_replacements():
        text = re.sub(pattern, replacement, text)
    return text


def _iterate_replacements() -> Iterator[tuple[str, str]]:
    yield r"tuple\[(.*), \.\.\.\]", r"[\1]"
    yield r"dict\[str, (\w+)\]", r"{\1}"
    yield r"Literal\[(.*)\]", "string"
    yield r"\b(DecisionKind|MarkerKind|SourceKind)\b", "string"
    yield r"\b(Fleet|Node|Pod|Offering)\w+\b", "object"
    yield r"\bint\b", "integer"
    yield r"\bfloat\b", "number"
    yield r"\bstr\b", "string"
    yield r"\bbool\b", "boolean"
    yield r"\bNone\b", "null"
