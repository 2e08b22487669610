"""Two versions of the functions on one cluster, as during a canary deployment and after a rollback.

The code is the same; the stored documents differ. The **older** version knows only the fields of the last release
(tests/golden/state): it ignores newer fields and drops them when it rewrites a row. The **newer** version adds a field
to every document. Each version has its own settings and its own containers.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from shared.model.core.labels import PLANNED_UNDER
from shared.ports.kubernetes import Kube
from shared.ports.storage import FencingToken, Table, TableRow
from shared.ports.world import World as Outside
from sim.cloud.seeded_random import draw_fraction
from tests.golden.state import FOLDER, ROW_TYPES
from tests.scenario.worlds import CLAIMS, Json, World

Plain = Any
Version = Literal["older", "newer"]
NEW: Final = "of the next release"
"""A value that no code reads."""
UNKNOWN: Final = frozenset((PLANNED_UNDER,))
"""Annotations of claims that the last release did not write."""
SETTINGS: Final[Mapping[Version, Mapping[str, str]]] = {
    "older": {"JOINER_POD_NOMINATIONS": "Disabled", "MIN_VALUES_POLICY": "BestEffort", "JOINER_SNAPSHOTS": "off"},
    "newer": {"JOINER_POD_NOMINATIONS": "Enabled", "PREFERENCE_POLICY": "Ignore", "DISABLE_DRY_RUN": "true"},
}


class Versions(World):
    """A world in which each invocation runs a randomly chosen version."""

    def __init__(self, *manifests: Json, seed: int = 0) -> None:
        """Start with the older version only."""
        self.newer = 0.0
        """The probability that an invocation runs the newer version."""
        self.invocations: Counter[Version] = Counter()
        self.claim_counts: Counter[str] = Counter()
        """Number of claims created per name: a repeated decision creates a claim of the same name."""
        self._coin = seed
        super().__init__(*manifests, seed=seed)
        self.cluster.api.subscribe(CLAIMS, self._count_claim)

    def find_doubled_claims(self) -> list[str]:
        """Return the names of claims for which more instances were started than claims were created."""
        started = Counter(
            instance.get_tag("karpenter.sh/nodeclaim") for instance in self.cloud.instances.describe_all()
        )
        return sorted(name for name, count in started.items() if name and count > self.claim_counts[name])

    def _count_claim(self, event: str, _old: Json | None, new: Json | None) -> None:
        if event == "ADDED" and new is not None:
            self.claim_counts[new["metadata"]["name"]] += 1

    def _build_world(self, function: str, environment: dict[str, str]) -> Outside:
        """Return the ports of *function* as its version uses them."""
        fraction = draw_fraction(self._coin, "version", function, self.invocations.total())
        version: Version = "newer" if fraction < self.newer else "older"
        self.invocations[version] += 1
        world = super()._build_world(function, environment | dict(SETTINGS[version]))
        table = Rows(world.table, version)
        kube = Claims(world.kube) if version == "older" else world.kube
        return replace(world, table=table, kube=kube, memory=self._get_container_cache(f"{function} {version}"))


class Rows:
    """The table as one version reads and writes it."""

    def __init__(self, table: Table, version: Version) -> None:
        """Wrap *table*."""
        self._table, self._version = table, version

    def read(self, kind: str, name: str) -> TableRow | None:
        """Return the row as the version reads it."""
        row = self._table.read(kind, name)
        return row if row is None else self._translate_row(row)

    def list_rows(self, kind: str) -> tuple[TableRow, ...]:
        """Return the rows as the version reads them."""
        return tuple(self._translate_row(row) for row in self._table.list_rows(kind))

    def write(
        self,
        kind: str,
        name: str,
        body: str,
        *,
        version: int,
        expires_at: datetime | None = None,
        fence: FencingToken | None = None,
    ) -> TableRow:
        """Write the row as the version writes it."""
        text = self._rewrite_body(kind, body)
        row = self._table.write(kind, name, text, version=version, expires_at=expires_at, fence=fence)
        return replace(row, body=body)

    def remove(self, kind: str, name: str, *, version: int) -> None:
        """Delete the row."""
        self._table.remove(kind, name, version=version)

    def _translate_row(self, row: TableRow) -> TableRow:
        return replace(row, body=self._narrow_body(row.kind, row.body)) if self._version == "older" else row

    def _rewrite_body(self, kind: str, body: str) -> str:
        if kind not in ROW_TYPES:
            return body
        return (
            self._narrow_body(kind, body)
            if self._version == "older"
            else _encode_text(extend_document(msgspec.json.decode(body)))
        )

    def _narrow_body(self, kind: str, body: str) -> str:
        return (
            body
            if kind not in ROW_TYPES
            else _encode_text(narrow_document(msgspec.json.decode(body), read_golden_state(kind)))
        )


class Claims:
    """An API server to which claims are written without the annotations that the last release did not write."""

    def __init__(self, kube: Kube) -> None:
        """Wrap *kube*."""
        self._kube = kube

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kube, name)

    def create(self, path: str, body: bytes) -> bytes:
        """Create the object without unknown annotations."""
        if not path.endswith(CLAIMS.partition(".")[0]):
            return self._kube.create(path, body)
        claim = msgspec.json.decode(body)
        annotations = claim["metadata"].get("annotations", {})
        claim["metadata"]["annotations"] = {key: text for key, text in annotations.items() if key not in UNKNOWN}
        return self._kube.create(path, msgspec.json.encode(claim))


def read_golden_state(kind: str) -> Plain:
    """Return the state document of *kind* that the last release stored."""
    return msgspec.json.decode(FOLDER.joinpath(f"{kind}.json").read_bytes())


def narrow_document(document: Plain, template: Plain) -> Plain:
    """Return *document* without fields that *template* lacks; an empty *template* allows every field."""
    if isinstance(document, dict) and isinstance(template, dict) and template:
        return {key: narrow_document(value, template[key]) for key, value in document.items() if key in template}
    if isinstance(document, list) and isinstance(template, list) and template and isinstance(template[0], dict):
        return [narrow_document(item, template[0]) for item in document]
    return document


def extend_document(document: Plain) -> Plain:
    """Return *document* with an extra field in every object."""
    if isinstance(document, dict):
        return {key: extend_document(value) for key, value in document.items()} | {"added": NEW}
    return [extend_document(item) for item in document] if isinstance(document, list) else document


def _encode_text(document: Plain) -> str:
    return msgspec.json.encode(document).decode()
