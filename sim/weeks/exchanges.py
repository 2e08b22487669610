"""Which nodes were replaced by which, and whether somebody was sent back and forth."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from shared.model.commands import Standing
from sim.embedded import Embedded

COMMAND: Final = "joiner.dev/command"
CONSOLIDATION: Final = ("multinode", "singlenode")
TYPE: Final = "node.kubernetes.io/instance-type"
ZONE: Final = "topology.kubernetes.io/zone"
SOON: Final = timedelta(hours=1)


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """One consolidation that was carried out."""

    at: datetime
    command: str
    went: tuple[str, ...]
    """Claims, sorted."""
    came: tuple[str, ...]
    kinds_gone: tuple[str, ...]
    """Instance type and zone of each that went."""
    why: str


class Return(msgspec.Struct, frozen=True, kw_only=True):
    """A node that consolidation made, and soon after took away again."""

    made: Exchange
    unmade: Exchange
    claim: str
    began: datetime
    """When it was asked for."""
    minutes: float
    is_back: bool
    """What was there before came again: the same types in the same zones."""


class Exchanges:
    """Notes births and deaths of claims."""

    def __init__(self, world: Embedded) -> None:
        """Begin with none."""
        self._world = world
        self._born: dict[str, datetime] = {}
        self._kinds: dict[str, str] = {}
        self._by_command: dict[str, Exchange] = {}
        world.live.api.subscribe("nodeclaims.karpenter.sh", self._on_claim)

    def born(self, claim: dict[str, Any]) -> None:
        """Note that *claim* was made by consolidation, if it was."""
        command = (claim["metadata"].get("annotations") or {}).get(COMMAND, "")
        if command.startswith(CONSOLIDATION):
            self._born[claim["metadata"]["name"]] = self._world.clock.now()

    def gone(self, claim: dict[str, Any], reason: str) -> None:
        """Note that *claim* is deleted for *reason*."""
        if reason != "Underutilized":
            return
        for row in self._world.table.rows("command"):
            command = msgspec.json.decode(row.body, type=Standing).command
            if claim["metadata"]["uid"] in {target.claim_uid for target in command.targets}:
                self._by_command.setdefault(command.command_id, self._exchange(command))

    def _on_claim(self, event: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        """Remember the type and the zone of every claim."""
        del event
        labels = ((new or old or {}).get("metadata") or {}).get("labels") or {}
        if (new or old) and TYPE in labels and ZONE in labels:
            self._kinds[(new or old or {})["metadata"]["name"]] = f"{labels[TYPE]} {labels[ZONE]}"

    def all(self) -> tuple[Exchange, ...]:
        """Answer all that were carried out, oldest first."""
        return tuple(sorted(self._by_command.values(), key=lambda one: (one.at, one.command)))

    def returns(self) -> Iterator[Return]:
        """Iterate over nodes that were made and taken away within the hour."""
        makers = {name: one for one in self.all() for name in one.came}
        for unmade in self.all():
            for name in unmade.went:
                made = makers.get(name)
                if made is not None and unmade.at - self._born[name] <= SOON:
                    minutes = (unmade.at - self._born[name]).total_seconds() / 60
                    back = sorted(made.kinds_gone) == sorted(self._kinds_of(unmade.came))
                    yield Return(
                        made=made,
                        unmade=unmade,
                        claim=name,
                        began=self._born[name],
                        minutes=round(minutes, 1),
                        is_back=bool(back),
                    )

    def _exchange(self, command: Any) -> Exchange:  # noqa: ANN401
        went = [target.claim for target in command.targets]
        return Exchange(
            at=self._world.clock.now(),
            command=command.command_id,
            went=tuple(sorted(went)),
            came=tuple(sorted(one.claim.name for one in command.replacements)),
            kinds_gone=tuple(self._kinds_of(went)),
            why=command.why,
        )

    def _kinds_of(self, claims: Iterable[str]) -> Iterator[str]:
        return (self._kinds.get(name, "") for name in claims)
