"""Files, folders and standard input: names -> bytes of text. What is no text is refused, with what to do instead."""

import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

Tell = Callable[[str], None]
"""Hears what could not be read."""
SUFFIXES: Final = (".json", ".yaml", ".yml")
MOST_YAML: Final = 32 * 1024**2
"""Bytes: a minute. The same in JSON is read in a second."""
MOST_JSON: Final = 2 * 1024**3
AS_JSON: Final = "fetch it with `-o json` instead of `-o yaml`, or narrow it"
JSON: Final = (b"{", b"[")
"""How it begins."""
_SAMPLE: Final = 8192
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_GZIP: Final = b"\x1f\x8b"


class InputError(Exception):
    """An input that could not be read; the message says which, why, and what to do."""


def files_in(source: str, tell: Tell) -> Iterator[tuple[str, Path | None]]:
    """Iterate over the files that *source* stands for, and their names: one, those of a folder (sorted), or ``-``.

    Standard input has no path. What cannot be read is told.
    """
    if source == "-":
        yield "standard input", None
        return
    path = Path(source)
    try:
        is_folder = path.is_dir()
        found = sorted(path.iterdir()) if is_folder else []
    except OSError as error:
        tell(f"{source}: {error.strerror}: {_remedy(error)}")
        return
    if not is_folder:
        yield source, path
        return
    some = [one for one in found if one.suffix in SUFFIXES and one.is_file()]
    if not some:
        folders = [one.name for one in found if one.is_dir()]
        deeper = f"; its subfolders are not read: name them ({', '.join(folders[:3])})" if folders else ""
        tell(f"{source}: holds no file that ends in {', '.join(SUFFIXES)}{deeper}")
    yield from ((str(one), one) for one in some)


def body_of(name: str, path: Path | None) -> bytes:
    """Read the file at *path*, or standard input if that is None, as UTF-8.

    Raises:
        InputError: it cannot be read, or is no text.
    """
    try:
        body = sys.stdin.buffer.read(MOST_JSON + 1) if path is None else _bytes_of(name, path)
    except OSError as error:
        raise InputError(f"{name}: {error.strerror}: {_remedy(error)}") from None
    if len(body) > MOST_JSON:
        raise InputError(f"{name}: more than {MOST_JSON // 1024**2} MB: narrow it, by namespace for example")
    return _utf8(name, body)


def _bytes_of(name: str, path: Path) -> bytes:
    status = path.stat()
    if stat.S_ISREG(status.st_mode) and status.st_size > MOST_YAML:
        with path.open("rb") as file:
            start = file.read(_SAMPLE)
        _refuse_binary(name, start)
        if start.lstrip()[:1] not in JSON:
            size = f"{status.st_size / 1024**2:,.0f} MB"
            raise InputError(f"{name}: {size} of YAML would take many minutes: {AS_JSON}")
    return path.read_bytes()


def _utf8(name: str, body: bytes) -> bytes:
    """Answer *body* without a byte order mark, as UTF-8: what a shell of Windows writes to a file is UTF-16."""
    if body.startswith(_UTF16):
        try:
            return body.decode("utf-16").encode()
        except UnicodeDecodeError:
            raise InputError(f"{name}: is cut off in the middle of a character: fetch it again") from None
    _refuse_binary(name, body[:_SAMPLE])
    body = body.removeprefix(b"\xef\xbb\xbf")
    try:
        body.decode()
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}:{line}: is not UTF-8: save it as UTF-8") from None
    return body


def _refuse_binary(name: str, start: bytes) -> None:
    if start.startswith(_GZIP):
        raise InputError(f"{name}: is compressed: gunzip it first")
    if b"\0" in start and not start.startswith(_UTF16):
        raise InputError(f"{name}: is no text: name files of JSON or YAML, as kubectl prints them")


def _remedy(error: OSError) -> str:
    match error:
        case FileNotFoundError():
            return "check the path"
        case PermissionError():
            return "make it readable, or pipe it in with `-f -`"
        case _:
            return "name a file, a folder or `-`"
