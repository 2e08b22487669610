"""Files, folders and standard input: names -> UTF-8 bytes. Binary content is rejected, with a fix."""

import argparse
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from cli.terminal.errors import InputError

ErrorReporter = Callable[[str], None]
"""Receives a message about input that could not be read."""
FILE_SUFFIXES: Final = (".json", ".yaml", ".yml")
MAX_YAML_BYTES: Final = 32 * 1024**2
"""About one minute of parsing. JSON of that size takes one second."""
MAX_JSON_BYTES: Final = 2 * 1024**3
MANIFESTS: Final = "Kubernetes objects as YAML or JSON"
"""What a file contains, unless another content is expected."""
JSON_PREFIXES: Final = (b"{", b"[")
"""The first byte of a JSON document."""
_SAMPLE_BYTES: Final = 8192
_UTF16_BOMS: Final = (b"\xff\xfe", b"\xfe\xff")
_GZIP_MAGIC: Final = b"\x1f\x8b"


def add_filename(parser: argparse.ArgumentParser, content: str) -> None:
    """Add the argument for files with *content*."""
    parser.add_argument(
        "-f",
        "--filename",
        action="append",
        default=[],
        metavar="FILE|DIR|-",
        help=f"file, folder or standard input with {content}; repeatable",
    )


def list_files(source: str, report_error: ErrorReporter) -> Iterator[tuple[str, Path | None]]:
    """Yield the name and path of each file that *source* means: a file, the files of a folder (sorted), or ``-``.

    Standard input has no path. Errors are passed to *report_error*.
    """
    if source == "-":
        yield "standard input", None
        return
    path = Path(source)
    try:
        is_folder = path.is_dir()
        entries = sorted(path.iterdir()) if is_folder else []
    except OSError as error:
        report_error(f"{source}: {error.strerror}: {_suggest_fix(error)}")
        return
    if not is_folder:
        yield source, path
        return
    files = [entry for entry in entries if entry.suffix in FILE_SUFFIXES and entry.is_file()]
    if not files:
        folders = [entry.name for entry in entries if entry.is_dir()]
        subfolders_hint = f"; subfolders are not read: name them ({', '.join(folders[:3])})" if folders else ""
        report_error(f"{source}: no {', '.join(FILE_SUFFIXES)} file in this folder{subfolders_hint}")
    yield from ((str(file), file) for file in files)


def read_utf8(name: str, path: Path | None, expected: str = MANIFESTS) -> bytes:
    """Read the file at *path*, or standard input if *path* is None, as UTF-8; *expected* describes its content.

    Raises:
        InputError: it cannot be read, is empty, or is not text.
    """
    try:
        body = sys.stdin.buffer.read(MAX_JSON_BYTES + 1) if path is None else _read_file_bytes(name, path)
    except OSError as error:
        raise InputError(f"{name}: {error.strerror}: {_suggest_fix(error)}") from None
    if len(body) > MAX_JSON_BYTES:
        raise InputError(f"{name}: larger than {MAX_JSON_BYTES // 1024**2} MB: select less, for example one namespace")
    text = _convert_to_utf8(name, body)
    if not text.strip():
        raise InputError(f"{name}: is empty: expected {expected}")
    return text


def build_size_error(name: str, size_bytes: int) -> InputError:
    """Return the error for a YAML file that is too large to be parsed in a reasonable time."""
    hint = "use `-o json` instead of `-o yaml`, or select less"
    return InputError(f"{name}: {size_bytes / 1024**2:,.0f} MB of YAML take many minutes to parse: {hint}")


def _read_file_bytes(name: str, path: Path) -> bytes:
    status = path.stat()
    if stat.S_ISREG(status.st_mode) and status.st_size > MAX_YAML_BYTES:
        with path.open("rb") as file:
            start = file.read(_SAMPLE_BYTES)
        _reject_binary(name, start)
        if start.lstrip()[:1] not in JSON_PREFIXES:
            raise build_size_error(name, status.st_size)
    return path.read_bytes()


def _convert_to_utf8(name: str, body: bytes) -> bytes:
    """Return *body* as UTF-8 without a byte order mark; a Windows shell writes UTF-16 to files."""
    if body.startswith(_UTF16_BOMS):
        try:
            return body.decode("utf-16").encode()
        except UnicodeDecodeError:
            raise InputError(f"{name}: ends in the middle of a character: fetch it again") from None
    _reject_binary(name, body[:_SAMPLE_BYTES])
    body = body.removeprefix(b"\xef\xbb\xbf")
    try:
        body.decode()
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}:{line}: is not UTF-8: save it as UTF-8") from None
    return body


def _reject_binary(name: str, start: bytes) -> None:
    if start.startswith(_GZIP_MAGIC):
        raise InputError(f"{name}: is compressed: gunzip it first")
    if b"\0" in start and not start.startswith(_UTF16_BOMS):
        raise InputError(f"{name}: is not text: expected JSON or YAML")


def _suggest_fix(error: OSError) -> str:
    match error:
        case FileNotFoundError():
            return "check the path"
        case PermissionError():
            return "make it readable, or pipe it in with `-f -`"
        case _:
            return "name a file, a folder or `-`"
