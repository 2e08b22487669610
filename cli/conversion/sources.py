"""Files -> objects with the lines of their fields, and the very text of those that stay as they are."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from cli.conversion.remarks import Path
from cli.files import JSON, InputError, Tell, body_of, files_in
from cli.inputs import documents_of


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """One object as somebody wrote it."""

    value: Any
    file: str
    text: str = ""
    """As it stands in a file of YAML, comments included; empty if it came from JSON, or out of a List."""
    lines: Mapping[Path, int] = {}
    """Where its fields begin, counted from 1."""

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
            for one in documents_of(name, body, tell):
                value = one.value if one.body is None else msgspec.json.decode(one.body)
                yield Written(value=value, file=one.where)
        except InputError as error:
            tell(str(error))
        return
    from cli.yaml_documents import read_marked  # noqa: PLC0415 - who has JSON need not wait for YAML

    for text, value, lines in read_marked(body.decode(), lambda line, why: tell(f"{name}:{line}: not YAML: {why}")):
        yield Written(value=value, file=name, text=text, lines=lines)


def _objects(one: Written, tell: Tell) -> Iterator[Written]:
    value = one.value
    if isinstance(value, dict) and isinstance(value.get("items"), list) and str(value.get("kind")).endswith("List"):
        for place, item in enumerate(value["items"]):
            prefix: Path = ("items", place)
            lines = {path[2:]: line for path, line in one.lines.items() if path[:2] == prefix}
            yield from _objects(Written(value=item, file=one.file, lines=lines), tell)
    elif isinstance(value, dict) and isinstance(value.get("kind"), str) and value.get("apiVersion"):
        yield one
    elif value is not None:
        tell(f"{one.where(())}: is no object of Kubernetes: write apiVersion, kind and metadata, or remove it")
