"""State that a release leaves for the releases next to it: rows of the table and objects of the bucket.

While a deployment tries a new version, both versions work on the same table; after a rollback the older version reads
what the newer one wrote. At a release, and only then, regenerate the files::

    .venv/bin/python -m tests.golden.state
"""

from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from shared.model.cloud_provider.instance_type import UnavailableOffering
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.cloud_provider.limit_reservation import LimitReservations
from shared.model.cloud_provider.node_class_findings import DryRunResult
from shared.model.cloud_provider.subnet_addresses import SubnetAddresses
from shared.model.decisions.command import CommandState
from shared.report.journal.journal import JournalEntry
from shared.store.catalog_format import CatalogJson, decompress_body
from shared.store.lease import LeaseRow
from sim.world.embedded_world import EmbeddedWorld
from tests.infra.guarded import MANIFESTS

FOLDER: Final = Path(__file__).parent / "state"
ROW_TYPES: Final[dict[str, Any]] = {
    "addresses": SubnetAddresses,
    "command": CommandState,
    "launch-group": LaunchGroup,
    "lease": LeaseRow,
    "ledger": LimitReservations,
    "rehearsal": DryRunResult,
    "unavailable": tuple[UnavailableOffering, ...],
}
"""Row kinds whose bodies are documents; the bodies of cursors and follow-ups are plain text."""
OBJECT_TYPES: Final[dict[str, Any]] = {"catalogue": CatalogJson, "journal": JournalEntry}
KINDS: Final = ROW_TYPES | OBJECT_TYPES
INSTANCE_TYPES: Final = ("c5.large", "m5.large")
"""The only instance types that EC2 has here: enough to see how a catalog is written."""
WARNING: Final = "EC2 Spot Instance Interruption Warning"


class Life(EmbeddedWorld):
    """A world that keeps the longest document of each kind."""

    def __init__(self) -> None:
        """Start without documents."""
        super().__init__()
        self.longest_documents: dict[str, str] = {}
        self.cloud.types = {name: self.cloud.types[name] for name in INSTANCE_TYPES}
        self.cloud.offerings = tuple(offering for offering in self.cloud.offerings if offering[0] in INSTANCE_TYPES)

    def run(self, duration: timedelta) -> None:
        """Advance time by *duration* and collect documents every five seconds."""
        end = self.clock.get_time() + duration
        while self.clock.get_time() < end:
            super().run(timedelta(seconds=5))
            for kind in ROW_TYPES:
                self._keep(kind, *(row.body for row in self.table.list_rows(kind)))
            for kind in OBJECT_TYPES:
                self._keep(
                    kind, *(decompress_body(self.bucket.get(key)).decode() for key in self.bucket.list_keys(f"{kind}/"))
                )

    def _keep(self, kind: str, *bodies: str) -> None:
        self.longest_documents[kind] = max(
            (self.longest_documents.get(kind, ""), *bodies), key=lambda body: (len(body), body)
        )


def collect_documents() -> dict[str, str]:
    """Return a document of each kind: pods are created, an instance is interrupted, pods are removed."""
    world, manifests = Life(), list(yaml.safe_load_all(MANIFESTS))
    manifests[1]["spec"]["limits"] = {"cpu": "100"}
    world.apply(manifests)
    world.run(timedelta(minutes=8))
    [instance, *_] = world.list_active_instances()
    world.runtime.put_event(
        {"source": "aws.ec2", "detail-type": WARNING, "detail": {"instance-id": instance.instance_id}}
    )
    world.run(timedelta(minutes=4))
    manifests[-1]["spec"]["replicas"] = 0
    world.apply(manifests[-1:])
    world.run(timedelta(minutes=6))
    return world.longest_documents


def _write() -> None:
    FOLDER.mkdir(exist_ok=True)
    for kind, body in collect_documents().items():
        text = msgspec.json.format(body, indent=1)
        FOLDER.joinpath(f"{kind}.json").write_text(f"{text}\n")


if __name__ == "__main__":
    _write()
