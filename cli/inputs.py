"""Files of objects and of the catalogue, as a person names them: JSON, or YAML where PyYAML is there."""

import importlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import msgspec

from shared.model.catalogue import Catalogue
from shared.snapshot.catalogue import decode_catalogue

Tell = Callable[[str], None]
"""Hears what could not be read."""
_SUFFIXES: Final = (".json", ".yaml", ".yml")
_JSON: Final = (b"{", b"[")


class InputError(Exception):
    """An input that could not be read; the message says which and why."""


def objects_in(sources: Iterable[str], tell: Tell) -> list[dict[str, Any]]:
    """Answer the objects in *sources*: files, folders (sorted, not their subfolders), or ``-`` for standard input.

    What cannot be read is told, and left out.
    """
    found: list[dict[str, Any]] = []
    for name, read in _bodies(sources, tell):
        try:
            for one in _documents(name, read()):
                found.extend(_objects(name, one, tell))
        except InputError as error:
            tell(str(error))
        except OSError as error:
            tell(f"{name}: {error.strerror}")
    return found


def catalogue_in(source: str) -> Catalogue:
    """Read the catalogue in the file *source*.

    Raises:
        InputError: there is none in it.
    """
    try:
        body = Path(source).read_bytes()
    except OSError as error:
        raise InputError(f"{source}: {error.strerror}") from None
    try:
        if not body.lstrip().startswith(_JSON):
            [document] = _documents(source, body)
            body = msgspec.json.encode(document)
        return decode_catalogue(body)
    except ValueError as error:
        raise InputError(f"{source}: not a catalogue: {error}") from None


def yaml_module(wanted_for: str) -> ModuleType:
    """Answer PyYAML.

    Raises:
        InputError: it is not installed.
    """
    try:
        return importlib.import_module("yaml")
    except ImportError:
        raise InputError(f"{wanted_for}: YAML needs PyYAML: pip install pyyaml, or use JSON") from None


def _bodies(sources: Iterable[str], tell: Tell) -> Iterator[tuple[str, Callable[[], bytes]]]:
    for source in sources:
        path = Path(source)
        if source == "-":
            yield "standard input", sys.stdin.buffer.read
        elif path.is_dir():
            some = sorted(one for one in path.iterdir() if one.suffix in _SUFFIXES and one.is_file())
            if not some:
                tell(f"{source}: holds no file that ends in {', '.join(_SUFFIXES)}")
            yield from ((str(one), one.read_bytes) for one in some)
        else:
            yield source, path.read_bytes


def _documents(name: str, body: bytes) -> list[Any]:
    if not body.lstrip().startswith(_JSON):
        return _yaml(name, body)
    try:
        return [msgspec.json.decode(body)]
    except msgspec.DecodeError as error:
        return _several(name, body, str(error))


def _several(name: str, body: bytes, why: str) -> list[Any]:
    """Read JSON documents one after the other, as several commands print them."""
    decoder, found = json.JSONDecoder(), []
    try:
        text = body.decode().strip()
        while text:
            document, end = decoder.raw_decode(text)
            found.append(document)
            text = text[end:].lstrip()
    except ValueError:
        raise InputError(f"{name}: not JSON: {why}") from None
    return found


def _yaml(name: str, body: bytes) -> list[Any]:
    yaml = yaml_module(name)
    try:
        return list(yaml.load_all(body, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.YAMLError as error:
        words = " ".join(str(error).split())
        raise InputError(f"{name}: not YAML: {words}") from None


def _objects(name: str, document: object, tell: Tell) -> Iterator[dict[str, Any]]:
    for one in document if isinstance(document, list) else [document]:
        if isinstance(one, Mapping):
            yield dict(one)
        elif one is not None:
            tell(f"{name}: holds something that is no object: {str(one)[:40]!r}")
