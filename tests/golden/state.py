"""What a release leaves behind: rows of the table and objects of the bucket, for the next one and the one before.

While a deployment tries a new version both are at work on the same table, and after a rollback the older one reads what
the newer one wrote. At a release, and only then, write down what it leaves::

    .venv/bin/python -m tests.golden.state
"""

from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from shared.actions.lease import Holding
from shared.launch.ledger import Book
from shared.launch.probes import Rehearsal
from shared.launch.subnets import Addresses
from shared.model.catalogue import UnavailableOffering
from shared.model.cluster import LaunchGroup
from shared.model.commands import Standing
from shared.report.journal import Entry
from shared.snapshot.catalogue import WireCatalogue, unpacked
from sim.embedded import Embedded
from tests.infra.guarded import MANIFESTS

FOLDER: Final = Path(__file__).parent / "state"
ROWS: Final[dict[str, Any]] = {
    "addresses": Addresses,
    "command": Standing,
    "launch-group": LaunchGroup,
    "lease": Holding,
    "ledger": Book,
    "rehearsal": Rehearsal,
    "unavailable": tuple[UnavailableOffering, ...],
}
"""The kinds of rows whose bodies are documents; those of cursors and follow-ups are plain text."""
OBJECTS: Final[dict[str, Any]] = {"catalogue": WireCatalogue, "journal": Entry}
KINDS: Final = ROWS | OBJECTS
TYPES: Final = ("c5.large", "m5.large")
"""All that EC2 has here: enough to see how a catalogue is written."""
WARNING: Final = "EC2 Spot Instance Interruption Warning"


class Life(Embedded):
    """Keeps the longest document of each kind."""

    def __init__(self) -> None:
        """Begin with nothing."""
        super().__init__()
        self.kept: dict[str, str] = {}
        self.cloud.types = {name: self.cloud.types[name] for name in TYPES}
        self.cloud.offerings = tuple(one for one in self.cloud.offerings if one[0] in TYPES)

    def run(self, duration: timedelta) -> None:
        """Let *duration* pass, and look every few seconds."""
        end = self.clock.now() + duration
        while self.clock.now() < end:
            super().run(timedelta(seconds=5))
            for kind in ROWS:
                self._keep(kind, *(row.body for row in self.table.rows(kind)))
            for kind in OBJECTS:
                self._keep(kind, *(unpacked(self.bucket.get(key)).decode() for key in self.bucket.keys(f"{kind}/")))

    def _keep(self, kind: str, *bodies: str) -> None:
        self.kept[kind] = max((self.kept.get(kind, ""), *bodies), key=lambda body: (len(body), body))


def left() -> dict[str, str]:
    """Answer a document of each kind: pods come, a machine is announced to go, pods go."""
    world, manifests = Life(), list(yaml.safe_load_all(MANIFESTS))
    manifests[1]["spec"]["limits"] = {"cpu": "100"}
    world.apply(manifests)
    world.run(timedelta(minutes=8))
    [machine, *_] = world.living()
    world.runtime.put_event(
        {"source": "aws.ec2", "detail-type": WARNING, "detail": {"instance-id": machine.instance_id}}
    )
    world.run(timedelta(minutes=4))
    manifests[-1]["spec"]["replicas"] = 0
    world.apply(manifests[-1:])
    world.run(timedelta(minutes=6))
    return world.kept


def _write() -> None:
    FOLDER.mkdir(exist_ok=True)
    for kind, body in left().items():
        text = msgspec.json.format(body, indent=1)
        FOLDER.joinpath(f"{kind}.json").write_text(f"{text}\n")


if __name__ == "__main__":
    _write()
