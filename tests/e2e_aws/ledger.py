"""The ledger: what the test creates, written to a file before each creation, so that a crash leaves nothing unknown."""

from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec

Kind: TypeAlias = Literal[
    "stack", "object", "instances", "launch-template", "capacity-reservation", "fis-template", "role", "bucket"
]
Lifetime: TypeAlias = Literal["step", "run"]


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One thing that may exist; its name is chosen by the test, so it is known before the creation."""

    kind: Kind
    name: str
    """Name of the resource; for `instances`, `capacity-reservation` and `fis-template` the value of their Name tag; for
    `object` the path in the Kubernetes API."""
    lifetime: Lifetime


class LedgerDocument(msgspec.Struct, kw_only=True, rename="camel"):
    """The content of the file."""

    cluster: str
    region: str
    run_id: str
    entries: list[LedgerEntry] = []


LEDGER_NAME: Final = "e2e-aws-ledger.json"


class Ledger:
    """The entries of one run; each change is in the file before the method returns."""

    def __init__(self, path: Path, document: LedgerDocument) -> None:
        """Keep *document* in the file *path*; nothing is written yet."""
        self._path, self._document = path, document

    @property
    def document(self) -> LedgerDocument:
        """The run and its entries, oldest first."""
        return self._document

    def record(self, kind: Kind, name: str, lifetime: Lifetime = "step") -> str:
        """Write that *name* is about to be created; return *name*."""
        self._document.entries.append(LedgerEntry(kind=kind, name=name, lifetime=lifetime))
        self._write()
        return name

    def list_entries(self, *lifetimes: Lifetime) -> tuple[LedgerEntry, ...]:
        """Return the entries of *lifetimes*, newest first: the order of removal."""
        return tuple(entry for entry in reversed(self._document.entries) if entry.lifetime in lifetimes)

    def discard(self, entry: LedgerEntry) -> None:
        """Write that *entry* is removed; an empty ledger has no file."""
        self._document.entries.remove(entry)
        self._write()

    def postpone(self, entry: LedgerEntry) -> None:
        """Write that the removal of *entry* has begun, and that the end of the run must wait for it."""
        position = self._document.entries.index(entry)
        self._document.entries[position] = msgspec.structs.replace(entry, lifetime="run")
        self._write()

    def _write(self) -> None:
        if not self._document.entries:
            self._path.unlink(missing_ok=True)
            return
        new_path = self._path.with_suffix(".new")
        new_path.write_bytes(msgspec.json.format(msgspec.json.encode(self._document), indent=1))
        new_path.replace(self._path)


def load_ledger(path: Path) -> Ledger | None:
    """Return the ledger of an unfinished run, None if there is none.

    Raises:
        ValueError: the file is damaged.
    """
    try:
        document = msgspec.json.decode(path.read_bytes(), type=LedgerDocument)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise ValueError(f"{path}: {error}") from None
    return Ledger(path, document)
