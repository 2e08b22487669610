"""Two versions of the functions at work on one cluster, as a canary has them, and as a rollback leaves them.

The code is the same. What is not is what each writes down: the **older** one knows no more fields than the last release
left (tests/golden/state): what is new it reads past, and drops where it writes a row anew. The **newer** one adds a
field to every document. Each has settings of its own, and containers of its own.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from shared.model.labels import PLANNED_UNDER
from shared.ports import Fence, Kube, Row, Table
from shared.ports import World as Outside
from sim.cloud.chance import share
from tests.golden.state import FOLDER, ROWS
from tests.scenario.worlds import CLAIMS, Json, World

Plain = Any
Version = Literal["older", "newer"]
NEW: Final = "of the next release"
"""A field that no code reads."""
UNKNOWN: Final = frozenset((PLANNED_UNDER,))
"""Annotations of claims that the last release did not write."""
SETTINGS: Final[Mapping[Version, Mapping[str, str]]] = {
    "older": {"JOINER_HINTS": "Withheld", "MIN_VALUES_POLICY": "BestEffort", "JOINER_SNAPSHOTS": "off"},
    "newer": {"JOINER_HINTS": "Given", "PREFERENCE_POLICY": "Ignore", "DISABLE_DRY_RUN": "true"},
}


class Versions(World):
    """A world in which chance says which version is called."""

    def __init__(self, *manifests: Json, seed: int = 0) -> None:
        """Begin with the older one alone."""
        self.newer = 0.0
        """So likely it is the newer one that is called."""
        self.called: Counter[Version] = Counter()
        self.made: Counter[str] = Counter()
        """How often there was a claim of a name: the same decision comes again by the same name."""
        self._coin = seed
        super().__init__(*manifests, seed=seed)
        self.live.api.subscribe(CLAIMS, self._on_claim)

    def doubled(self) -> list[str]:
        """Answer the names of claims that more instances were started for than there were claims."""
        started = Counter(one.tag("karpenter.sh/nodeclaim") for one in self.cloud.instances())
        return sorted(name for name, count in started.items() if name and count > self.made[name])

    def _on_claim(self, event: str, _old: Json | None, new: Json | None) -> None:
        if event == "ADDED" and new is not None:
            self.made[new["metadata"]["name"]] += 1

    def _world(self, function: str, environment: dict[str, str]) -> Outside:
        """Answer what that version of *function* reaches."""
        drawn = share(self._coin, "version", function, self.called.total())
        version: Version = "newer" if drawn < self.newer else "older"
        self.called[version] += 1
        known = super()._world(function, environment | dict(SETTINGS[version]))
        table = Rows(known.table, version)
        kube = Claims(known.kube) if version == "older" else known.kube
        return replace(known, table=table, kube=kube, memory=self._memory(f"{function} {version}"))


class Rows:
    """The table, as a version reads and writes it."""

    def __init__(self, table: Table, version: Version) -> None:
        """Stand before *table*."""
        self._table, self._version = table, version

    def read(self, kind: str, name: str) -> Row | None:
        """Answer the row as the version sees it."""
        row = self._table.read(kind, name)
        return row if row is None else self._seen(row)

    def rows(self, kind: str) -> tuple[Row, ...]:
        """Answer them as the version sees them."""
        return tuple(self._seen(row) for row in self._table.rows(kind))

    def write(
        self,
        kind: str,
        name: str,
        body: str,
        *,
        version: int,
        expires_at: datetime | None = None,
        fence: Fence | None = None,
    ) -> Row:
        """Write what the version would."""
        text = self._written(kind, body)
        row = self._table.write(kind, name, text, version=version, expires_at=expires_at, fence=fence)
        return replace(row, body=body)

    def remove(self, kind: str, name: str, *, version: int) -> None:
        """Delete the row."""
        self._table.remove(kind, name, version=version)

    def _seen(self, row: Row) -> Row:
        return replace(row, body=self._known(row.kind, row.body)) if self._version == "older" else row

    def _written(self, kind: str, body: str) -> str:
        if kind not in ROWS:
            return body
        return self._known(kind, body) if self._version == "older" else _text(extended(msgspec.json.decode(body)))

    def _known(self, kind: str, body: str) -> str:
        return body if kind not in ROWS else _text(narrowed(msgspec.json.decode(body), golden(kind)))


class Claims:
    """The API server, to which nobody says of a claim what the last release did not."""

    def __init__(self, kube: Kube) -> None:
        """Stand before *kube*."""
        self._kube = kube

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kube, name)

    def create(self, path: str, body: bytes) -> bytes:
        """Create it without."""
        if not path.endswith(CLAIMS.partition(".")[0]):
            return self._kube.create(path, body)
        claim = msgspec.json.decode(body)
        annotations = claim["metadata"].get("annotations", {})
        claim["metadata"]["annotations"] = {key: text for key, text in annotations.items() if key not in UNKNOWN}
        return self._kube.create(path, msgspec.json.encode(claim))


def golden(kind: str) -> Plain:
    """Answer what the last release left of *kind*."""
    return msgspec.json.decode(FOLDER.joinpath(f"{kind}.json").read_bytes())


def narrowed(said: Plain, known: Plain) -> Plain:
    """Answer *said* with no more fields than *known* has; where that is empty nothing is known of what may be in it."""
    if isinstance(said, dict) and isinstance(known, dict) and known:
        return {key: narrowed(value, known[key]) for key, value in said.items() if key in known}
    if isinstance(said, list) and isinstance(known, list) and known and isinstance(known[0], dict):
        return [narrowed(one, known[0]) for one in said]
    return said


def extended(said: Plain) -> Plain:
    """Answer *said* with a field more in every document of it."""
    if isinstance(said, dict):
        return {key: extended(value) for key, value in said.items()} | {"added": NEW}
    return [extended(one) for one in said] if isinstance(said, list) else said


def _text(document: Plain) -> str:
    return msgspec.json.encode(document).decode()
