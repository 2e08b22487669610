"""What is wrong with manifests, or is hardly meant so: findings, each with its place and a remedy."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Final

from cli.conversion.accepted import complaints, is_ours, unread
from cli.conversion.beyond import faults, field_of, unplannable
from cli.conversion.convert import CONVERTED, convert
from cli.conversion.judged import hint_for
from cli.conversion.metadata import ANNOTATIONS, renamed_annotation
from cli.conversion.nowadays import other_class
from cli.conversion.remarks import Path, Remarks, spelled
from cli.conversion.remedies import remedy_for, value_at
from cli.conversion.sources import Written
from cli.conversion.workloads import PODS
from cli.findings import Finding, Level, finding, name_of
from cli.linted_pools import of_pools
from shared.model.catalogue import Catalogue
from shared.model.labels import DO_NOT_DISRUPT
from shared.model.units import parse_duration

Object = dict[str, Any]
_READ: Final = frozenset((*ANNOTATIONS, DO_NOT_DISRUPT))


def findings(some: Sequence[Written], catalogue: Catalogue | None = None) -> list[Finding]:
    """Answer what is to be said of *some*, in the order in which they were read."""
    found = [each for one in some for each in _of_one(one)]
    told = {(one.kind, one.name, one.field) for one in found}
    found += [one for one in _of_old(some) if (one.kind, one.name, one.field) not in told]
    found += of_pools(some, catalogue)
    places = {id(one): place for place, one in enumerate(some)}
    at = {(one.value["kind"], name_of(one.value)): places[id(one)] for one in reversed(some)}
    return sorted(dict.fromkeys(found), key=lambda one: (at.get((one.kind, one.name), 0), _line(one.where), one.field))


def _line(where: str) -> int:
    line = where.rpartition(":")[2]
    return int(line) if line.isdecimal() else 0


def _of_one(one: Written) -> Iterator[Finding]:
    """Look at *one* alone: its fields, its annotations, its images."""
    if is_ours(one.value):
        for path, close in unread(one.value):
            yield finding(one, "error", path, f"is no field, so it is silently dropped: {hint_for(path, close)}")
        better = {path for path, _ in faults(one.value)}
        for complaint in complaints(one.value):
            field, _, why = complaint.partition(": ")
            path = _path(field, one)
            if path in better:
                continue
            yield finding(one, "error", path, f"{why}: {remedy_for(field, why, value_at(one.value, path))}")
        for message in () if any(faults(one.value)) else unplannable(one.value):
            field = field_of(message)
            yield finding(one, "error", _path(field, one), message.removeprefix(f"{field}: "))
        for path, why in faults(one.value):
            yield finding(one, "error", path, why)
        for path, why in other_class(one.value):
            yield finding(one, "warning", path, why)
        yield from _images(one)
    elif one.value["kind"] in PODS:
        yield from _texts(one)
        yield from _misplaced(one)
    for path, notes in _in_metadata("annotations", one.value, ()):
        yield from _annotations(one, path, notes)


def _path(field: str, one: Written) -> Path:
    """Read what `spelled` writes: a path of *one*, else one in which no key holds a dot."""
    if (there := next((path for path in one.lines if spelled(path) == field), None)) is not None:
        return there
    parts: list[str | int] = []
    for part in field.split("."):
        key, *places = part.replace("]", "").split("[")
        parts += [key, *(int(place) for place in places if place.isdecimal())]
    return tuple(parts)


def _images(one: Written) -> Iterator[Finding]:
    spec = one.value.get("spec")
    terms = spec.get("amiSelectorTerms") if isinstance(spec, dict) else None
    for place, term in enumerate(terms if isinstance(terms, list) else ()):
        tags = term.get("tags") if isinstance(term, dict) else None
        named: dict[Path, Any] = {("name",): term.get("name")} if isinstance(term, dict) else {}
        named |= {("tags", key): text for key, text in (tags if isinstance(tags, dict) else {}).items()}
        for where, text in named.items():
            if isinstance(text, str) and (name := text.strip()).startswith("ami-"):
                path = ("spec", "amiSelectorTerms", place, *where)
                why = f"{name} is an image's id, and no image is called so: write `id: {name}`"
                yield finding(one, "error" if where == ("name",) else "warning", path, why)


def _in_metadata(field: str, value: Any, path: Path) -> Iterator[tuple[Path, Object]]:  # noqa: ANN401 - JSON
    """Iterate over all *field* of metadata in *value*: of the object, and of what it makes."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == field and path[-1:] == ("metadata",) and isinstance(inner, dict):
                yield (*path, key), inner
            else:
                yield from _in_metadata(field, inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _in_metadata(field, inner, (*path, place))


def _annotations(one: Written, path: Path, notes: Object) -> Iterator[Finding]:
    for key, value in notes.items():
        where, remarks = (*path, key), Remarks()
        now = renamed_annotation(str(key), where, remarks)
        if key in ANNOTATIONS:
            how = "`joiner convert` writes it" if one.value["kind"] in PODS else f"write {now}"
            yield finding(one, "warning", where, f"is the old name of {now}: {how}")
        yield from (finding(one, "warning", where, said.message) for said in remarks.said if said.level == "warning")
        if now in _READ and not isinstance(value, str):
            text = str(value).lower()
            yield finding(
                one, "error", where, f'is no text, which the API server refuses: write it in quotes: "{text}"'
            )
        elif now in _READ and value != "true" and not _lasts(str(value)):
            how = "remove it" if str(value).lower() == "false" else 'write "true", or a duration'
            yield finding(one, "warning", where, f"is {value!r}, which protects nothing: {how}")


def _lasts(text: str) -> bool:
    try:
        return parse_duration(text) > timedelta()
    except ValueError:
        return False


def _misplaced(one: Written) -> Iterator[Finding]:
    """Look for what would protect pods, if it stood where it is read from."""
    meta, path = one.value.get("metadata"), spelled((*PODS[one.value["kind"]], "metadata", "annotations"))
    notes = meta.get("annotations") if isinstance(meta, dict) else None
    for key in sorted(_READ & notes.keys()) if isinstance(notes, dict) and PODS[one.value["kind"]] else ():
        yield finding(
            one,
            "warning",
            ("metadata", "annotations", key),
            f"is read from pods, and does nothing here: write it under {path}",
        )
    for place, labels in _in_metadata("labels", one.value, ()):
        for key in sorted(_READ & labels.keys()):
            yield finding(one, "warning", (*place, key), f"is a label here, and nobody reads it: write it under {path}")


def _texts(one: Written) -> Iterator[Finding]:
    """Look for what has to be a text in what makes pods, and is none."""
    for path, value in _untexted(one.value, ()):
        text = one.plain.get(path, str(value).lower() if isinstance(value, bool) else str(value))
        yield finding(one, "error", path, f'is no text, which the API server refuses: write it in quotes: "{text}"')


def _untexted(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:  # noqa: ANN401 - JSON
    if isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _untexted(inner, (*path, place))
    elif isinstance(value, dict):
        for key, inner in value.items():
            is_text = path[-1:] == ("nodeSelector",) or path[-2:] == ("metadata", "labels")
            is_text |= len(path) > 1 and path[-2] == "tolerations" and key in ("key", "value", "operator", "effect")
            if is_text and isinstance(inner, bool | int | float):
                yield (*path, key), inner
            else:
                yield from _untexted(inner, (*path, key))


def _of_old(some: Sequence[Written]) -> Iterator[Finding]:
    """Say which are of an older API, and what `joiner convert` would refuse of them."""
    done = convert(some)
    current = {(one.value["kind"], name_of(one.value)) for one in some if is_ours(one.value)}
    for note in done.notes:
        is_known = (note.kind, note.name) in current and note.field != "metadata.name"
        if note.level != "changed" and note.kind not in PODS and not is_known:
            level: Level = "error" if note.level == "refused" else "warning"
            yield Finding(
                level=level, where=note.where, kind=note.kind, name=note.name, field=note.field, message=note.message
            )
    for one in some:
        api = str(one.value["apiVersion"])
        if (api, one.value["kind"]) in CONVERTED:
            yield finding(one, "error", ("apiVersion",), f"{api} is served no more: `joiner convert` writes it as v1")
