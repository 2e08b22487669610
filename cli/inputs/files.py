"""Files, folders and standard input: names -> UTF-8 bytes. Binary content is rejected, with a fix."""

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
JSON_HINT: Final = "fetch it with `-o json` instead of `-o yaml`, or narrow it"
JSON_PREFIXES: Final = (b"{", b"[")
"""The first byte of a JSON document."""
_SAMPLE_BYTES: Final = 8192
_UTF16_BOMS: Final = (b"\xff\xfe", b"\xfe\xff")
_GZIP_MAGIC: Final = b"\x1f\x8b"


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
        deeper = f"; its subfolders are not read: name them ({', '.join(folders[:3])})" if folders else ""
        report_error(f"{source}: holds no file that ends in {', '.join(FILE_SUFFIXES)}{deeper}")
    yield from ((str(file), file) for file in files)


def read_utf8(name: str, path: Path | None) -> bytes:
    """Read the file at *path*, or standard input if *path* is None, as UTF-8.

    Raises:
        InputError: it cannot be read, or is not text.
    """
    try:
        body = sys.stdin.buffer.read(MAX_JSON_BYTES + 1) if path is None else _read_file_bytes(name, path)
    except OSError as error:
        raise InputError(f"{name}: {error.strerror}: {_suggest_fix(error)}") from None
    if len(body) > MAX_JSON_BYTES:
        raise InputError(f"{name}: more than {MAX_JSON_BYTES // 1024**2} MB: narrow it, by namespace for example")
    return _convert_to_utf8(name, body)


def _read_file_bytes(name: str, path: Path) -> bytes:
    status = path.stat()
    if stat.S_ISREG(status.st_mode) and status.st_size > MAX_YAML_BYTES:
        with path.open("rb") as file:
            start = file.read(_SAMPLE_BYTES)
        _reject_binary(name, start)
        if start.lstrip()[:1] not in JSON_PREFIXES:
            size = f"{status.st_size / 1024**2:,.0f} MB"
            raise InputError(f"{name}: {size} of YAML would take many minutes: {JSON_HINT}")
    return path.read_bytes()


def _convert_to_utf8(name: str, body: bytes) -> bytes:
    """Return *body* as UTF-8 without a byte order mark; a Windows shell writes UTF-16 to files."""
    if body.startswith(_UTF16_BOMS):
        try:
            return body.decode("utf-16").encode()
        except UnicodeDecodeError:
            raise InputError(f"{name}: is cut off in the middle of a character: fetch it again") from None
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
        raise InputError(f"{name}: is no text: name files of JSON or YAML, as kubectl prints them")


def _suggest_fix(error: OSError) -> str:
    match error:
        case FileNotFoundError():
            return "check the path"
        case PermissionError():
            return "make it readable, or pipe it in with `-f -`"
        case _:
            return "name a file, a folder or `-`"
