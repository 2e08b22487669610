"""The reference page of the events on the event bus, and the JSON schema of each detail-type."""

import inspect
import json
from typing import Any, Final

import msgspec

from docs.reference.fleet_document import read_descriptions
from docs.reference.markdown import format_code, render_page, render_table
from shared.report.event_bus.event_details import DETAIL_TYPES, EVENT_SOURCE, EventDetail

_SCHEMA_FOLDER: Final = "event-schemas"
_INTRODUCTION: Final = f"""
These are the events that Joiner puts on the event bus of the setting `event-bus`. Their `source` is `{EVENT_SOURCE}`;
`time` is the start of the cycle that reports the event. [Events](../guide/events.md) describes how to use them. The
JSON schemas are in `docs/reference/event-schemas/`.
"""


def render_event_pages() -> dict[str, str]:
    """Render the page and the schemas, by file name."""
    return {
        "events.md": _render_page(),
        **{
            f"{_SCHEMA_FOLDER}/{build_schema_name(detail_type)}": render_schema(struct)
            for detail_type, struct in DETAIL_TYPES.items()
        },
    }


def build_schema_name(detail_type: str) -> str:
    """Return the file name of the schema of *detail_type*.

    >>> build_schema_name("Node Launched")
    'node-launched.json'
    """
    return f"{detail_type.lower().replace(' ', '-')}.json"


def render_schema(struct: type[EventDetail]) -> str:
    """Render the JSON schema of the details that *struct* describes: one object, with a description of each field."""
    schema: dict[str, Any] = msgspec.json.schema(struct)
    definition = schema["$defs"][struct.__name__]
    descriptions = _read_all_descriptions(struct)
    for name, json_name in zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True):
        definition["properties"][json_name]["description"] = descriptions[name]
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", **definition}
    return json.dumps(document, indent=2) + "\n"


def _render_page() -> str:
    sections = (_render_section(detail_type, struct) for detail_type, struct in DETAIL_TYPES.items())
    common = f"## Fields of every detail\n\n{_render_fields(EventDetail, EventDetail.__struct_fields__)}"
    return render_page("Events", " ".join(_INTRODUCTION.split()), common, *sections)


def _render_section(detail_type: str, struct: type[EventDetail]) -> str:
    own_fields = tuple(name for name in struct.__struct_fields__ if name not in EventDetail.__struct_fields__)
    summary = " ".join((inspect.getdoc(struct) or "").split())
    schema_name = build_schema_name(detail_type)
    link = f"Schema: [{schema_name}]({_SCHEMA_FOLDER}/{schema_name})"
    return f"## {detail_type}\n\n{summary} {link}\n\n{_render_fields(struct, own_fields)}"


def _render_fields(struct: type[EventDetail], names: tuple[str, ...]) -> str:
    properties = msgspec.json.schema(struct)["$defs"][struct.__name__]["properties"]
    json_names = dict(zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True))
    descriptions = _read_all_descriptions(struct)
    rows = (
        (format_code(json_names[name]), properties[json_names[name]].get("type", "string"), descriptions[name])
        for name in names
    )
    return render_table(("Field", "Type", "Content"), rows)


def _read_all_descriptions(struct: type[EventDetail]) -> dict[str, str]:
    own_descriptions = {} if struct is EventDetail else read_descriptions(struct)[0]
    return {**read_descriptions(EventDetail)[0], **own_descriptions}
