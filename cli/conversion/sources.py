"""Files -> objects with the lines of their fields, and the very text of those that stay as they are."""

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final, TypeVar

import msgspec

from cli.conversion.remarks import Path
from cli.files import JSON, InputError, Tell, body_of, files_in
from cli.inputs import documents_of
from cli.yaml_mistakes import ALIEN

Said = TypeVar("Said", int, str)
MOST_MARKED: Final = 1 << 20
"""Bytes of JSON that are read twice for the sake of lines."""
_EXAMPLE: Final = "`apiVersion: karpenter.sh/v1` and `kind: NodePool`"
_NUMBERED: Final = re.compile(r"\d+[.:|)]?[ \t|]+\w")
_BUILT: Final = "build what it describes first, with `kubectl kustomize` for example"
_RENDERED: Final = "render it first, with `helm template` for example"


_OTHER_FILES: Final = {
    frozenset({"version"}): f"this describes a chart: {_RENDERED}",
    frozenset({"resources", "patches", "patchesStrategicMerge", "bases", "components"}): (
        f"this is a kustomization: {_BUILT}"
    ),
    frozenset({"settings", "serviceAccount", "controller"}): f"these are values of a chart: {_RENDERED}",
}
"""What a file without objects is, by a key of it."""


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """One object as somebody wrote it."""

    value: Any
    file: str
    text: str = ""
    """As it stands in a file of YAML, comments included; empty if it came from JSON, or out of a List."""
    lines: Mapping[Path, int] = {}
    """Where its fields begin, counted from 1."""
    plain: Mapping[Path, str] = {}
    """How numbers and truth values are written in it."""

    def where(self, path: Path) -> str:
        """Answer file and line of the field at *path*, or of the nearest above it that is there."""
        line = self.line(path)
        return f"{self.file}:{line}" if line else self.file

    def line(self, path: Path) -> int:
        """Answer that line alone, 0 if lines are not known."""
        return next(
            (self.lines[path[:length]] for length in range(len(path), -1, -1) if path[:length] in self.lines), 0
        )


def written_in(sources: Iterable[str], tell: Tell) -> Iterator[Written]:
    """Iterate over the objects in *sources*: files, folders, ``-``; what cannot be read is told, and left out."""
    for source in sources:
        for name, path in files_in(source, tell):
            try:
                body = body_of(name, path)
            except InputError as error:
                tell(str(error))
                continue
            for one in _documents(name, body, tell):
                yield from _objects(one, tell)


def _documents(name: str, body: bytes, tell: Tell) -> Iterator[Written]:
    if body.lstrip()[:1] in JSON:
        try:
            yield from _marked_json(name, body) or _json(name, body, tell)
        except RecursionError:
            tell(f"{name}:1: is nested too deeply: no object of Kubernetes is: remove it")
        return
    from cli.yaml_documents import read_marked  # noqa: PLC0415 - who has JSON need not wait for YAML

    for one in read_marked(body.decode(), lambda line, why: tell(f"{name}:{line}: not YAML: {why}")):
        yield Written(value=one.value, file=name, text=one.text, lines=one.lines, plain=one.plain)


def _json(name: str, body: bytes, tell: Tell) -> Iterator[Written]:
    try:
        for one in documents_of(name, body, tell):
            value = one.value if one.body is None else msgspec.json.decode(one.body)
            yield Written(value=value, file=one.where)
    except InputError as error:
        tell(str(error))


def _marked_json(name: str, body: bytes) -> list[Written]:
    """Answer the one document in *body* with its lines, as JSON is YAML; nothing if it is long, or several."""
    if len(body) > MOST_MARKED:
        return []
    try:
        value = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return []
    from cli.yaml_documents import read_marked  # noqa: PLC0415 - as above

    some = list(read_marked(body.decode(), lambda *_: None))
    return [Written(value=value, file=name, lines=one.lines) for one in some if some == [one]]


def _objects(one: Written, tell: Tell) -> Iterator[Written]:
    value = one.value
    if isinstance(value, dict) and isinstance(value.get("items"), list) and str(value.get("kind")).endswith("List"):
        for place, item in enumerate(value["items"]):
            lines, plain = _below(("items", place), one.lines), _below(("items", place), one.plain)
            yield from _objects(Written(value=_lent(value, item), file=one.file, lines=lines, plain=plain), tell)
    elif isinstance(value, dict) and isinstance(value.get("kind"), str) and value.get("apiVersion"):
        yield one
    elif isinstance(value, list) and any(isinstance(item, dict) and "kind" in item for item in value):
        for place, item in enumerate(value):
            lines, plain = _below((place,), one.lines), _below((place,), one.plain)
            yield from _objects(Written(value=item, file=one.file, lines=lines, plain=plain), tell)
    elif value is not None:
        tell(f"{one.where(())}: is no object of Kubernetes: {_meant(value, one.text)}")


def _lent(some: Mapping[str, Any], item: Any) -> Any:  # noqa: ANN401 - JSON
    """Answer *item* with what items of a PodList do not say themselves."""
    kind = str(some["kind"]).removesuffix("List")
    return {"apiVersion": some.get("apiVersion"), "kind": kind} | item if kind and isinstance(item, dict) else item


def _below(prefix: Path, some: Mapping[Path, Said]) -> dict[Path, Said]:
    return {path[len(prefix) :]: said for path, said in some.items() if path[: len(prefix)] == prefix}


def _meant(value: object, text: str) -> str:
    """Say what *value*, which is no object, could be, and what to do."""
    if isinstance(value, Mapping):
        return _lacking(value)
    if isinstance(value, list) and value and isinstance(value[0], Mapping) and {"op", "path"} <= value[0].keys():
        return f"this is a patch: {_BUILT}"
    alien = next((why for pattern, why in ALIEN if pattern.search(text)), "")
    return alien or "write apiVersion, kind and metadata, or remove it"


def _lacking(value: Mapping[Any, Any]) -> str:
    """Say what a mapping could be that lacks apiVersion or kind."""
    keys = [str(key) for key in value]
    if any(_NUMBERED.match(key) for key in keys):
        return "the numbers of the lines came along: remove them"
    others = {key.lower(): key for key in keys if key not in ("apiVersion", "kind")}
    for field in ("apiVersion", "kind"):
        close = get_close_matches(field.lower(), others, n=1, cutoff=0.8)
        if field not in value and close:
            return f"{others[close[0]]}: did you mean {field}?"
        if field not in value and "metadata" in value:
            return f"{field} is missing: write it, as in {_EXAMPLE}"
    for some, what in _OTHER_FILES.items():
        if not some.isdisjoint(value):
            return what
    return f"write apiVersion, kind and metadata, or remove it; if these are values of a chart, {_RENDERED}"
