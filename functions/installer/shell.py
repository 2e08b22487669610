"""Looks, carries out what is planned, and looks again: until there is nothing left to do, or time is."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final, TypeVar, assert_never

import msgspec

from functions.installer.manifests import (
    COLLECTIONS,
    DEFINITION,
    Manifest,
    is_going,
    is_ours,
    name_of,
    objects_of,
    path_of,
    titled,
)
from functions.installer.plan import Create, Delete, Patch, Plan, Standing, Step, install, remove
from shared.errors import Conflict, Forbidden, Gone, Throttled, Unreachable
from shared.ports import Kube

CLAIMS: Final = "/apis/karpenter.sh/v1/nodeclaims"
CLASSES: Final = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
NODES: Final = "/api/v1/nodes"
POOL_LABEL: Final = "karpenter.sh/nodepool"
HELD: Final = ((CLAIMS, ""), (CLASSES, ""), (NODES, POOL_LABEL))
"""Collections, with a label, of what our finalizers are on."""
LEASES: Final = "/apis/coordination.k8s.io/v1/leases"
LEADER: Final = "karpenter-leader-election"
FRESH: Final = timedelta(minutes=2)
"""Since a lease was renewed, for its holder to be at work; it renews it every few seconds."""
PAUSE: Final = timedelta(seconds=5)
Answer = TypeVar("Answer")
PASSING: Final = (Conflict, Forbidden, Gone, Throttled, Unreachable)
"""Worth another look: also what is forbidden, for an access entry that was just made counts some seconds later."""


class Refused(Exception):
    """Nothing was done: it would not have worked; the message says why."""


class Installer(msgspec.Struct, frozen=True, kw_only=True):
    """One installation into the cluster of *kube*, with time until *deadline*."""

    kube: Kube
    wanted: tuple[Manifest, ...]
    clock: Callable[[], datetime]
    wait: Callable[[timedelta], None]
    deadline: datetime

    def install(self) -> tuple[str, ...]:
        """Install or upgrade; answer what was done and what a person should know.

        Raises:
            Refused: somebody else's definitions cannot be used; nothing was done.
            Fault: the API server did not let us, until the deadline.
        """
        told = self._repeated(lambda: install(self.wanted, Standing(live=self._steady())))
        self.patiently(self._served)
        return told

    def remove(self, *, purge: bool) -> tuple[str, ...]:
        """Take out what was installed, and our finalizers; definitions with objects only if *purge*.

        Raises:
            Fault: the API server did not let us, until the deadline.
        """
        return self._repeated(lambda: remove(self.wanted, self._standing(), purge=purge))

    def _repeated(self, look: Callable[[], Plan]) -> tuple[str, ...]:
        """Carry out what is planned until nothing is, or only what was just done; answer what was told, each once."""
        told: dict[str, None] = {}
        done: Plan | None = None
        while True:
            plan = self.patiently(lambda: self.carried_out(look()))
            told |= dict.fromkeys(plan.told)
            if not plan.steps or (done is not None and plan.steps == done.steps):
                return tuple(told)
            done = plan

    def patiently(self, act: Callable[[], Answer]) -> Answer:
        """Answer what *act* does, once it does.

        Raises:
            Fault: it did not until the deadline.
        """
        while True:
            try:
                return act()
            except PASSING:
                if self.clock() + PAUSE > self.deadline:
                    raise
                self.wait(PAUSE)

    def carried_out(self, plan: Plan) -> Plan:
        """Take the steps of *plan*, and answer it.

        Raises:
            Refused: it says so itself; nothing was done.
            Fault: a step failed.
        """
        if plan.refused:
            raise Refused("; ".join(plan.refused))
        for step in plan.steps:
            self._do(step)
        return plan

    def _do(self, step: Step) -> None:
        match step:
            case Create():
                self.kube.create(step.path, msgspec.json.encode(step.body))
            case Patch():
                with suppress(Gone):
                    self.kube.patch(step.path, msgspec.json.encode(step.body))
            case Delete():
                options = {"preconditions": {"uid": step.uid}} if step.uid else {}
                with suppress(Gone):
                    self.kube.delete(step.path, msgspec.json.encode(options))
            case _:
                assert_never(step)

    def _live(self) -> dict[str, Manifest]:
        found = ((path_of(one), self._read(path_of(one))) for one in self.wanted)
        return {path: one for path, one in found if one is not None}

    def _steady(self) -> dict[str, Manifest]:
        """Answer what is live.

        Raises:
            Conflict: some of it is on its way out still.
        """
        live = self._live()
        going = [titled(one) for one in live.values() if is_going(one)]
        if going:
            raise Conflict(f"{', '.join(going)} of an earlier installation is still on its way out")
        return live

    def _standing(self) -> Standing:
        live = self._live()
        ours = [one for one in self.wanted if one["kind"] == DEFINITION and is_kept(live.get(path_of(one)))]
        counts = {name_of(one): sum(1 for _ in self.objects(objects_of(one))) for one in ours}
        held = (each for path, label in HELD for each in self.objects(path, label))
        return Standing(live=live, counts=counts, held=tuple(held), has_keeper=self._has_keeper())

    def _has_keeper(self) -> bool:
        """Whether a Karpenter holds its lease, wherever it was installed."""
        page = msgspec.json.decode(self.kube.list(LEASES, field_selector=f"metadata.name={LEADER}"))
        renewed = ((one.get("spec") or {}).get("renewTime") for one in page["items"])
        return any(self.clock() - datetime.fromisoformat(one) < FRESH for one in renewed if one)

    def _read(self, path: str) -> Manifest | None:
        try:
            found: Manifest = msgspec.json.decode(self.kube.read(path))
        except Gone:
            return None
        return found

    def objects(self, collection: str, label: str = "") -> Iterator[tuple[str, Manifest]]:
        """Iterate over path and object of all of *collection*; there are none where its kind is not defined.

        Raises:
            Unreachable: it is defined and not served: that is no empty answer.
        """
        token = ""
        while True:
            try:
                page = msgspec.json.decode(self.kube.list(collection, label_selector=label, continue_token=token))
            except Gone as fault:
                *_, group, _, plural = collection.split("/")
                if self._read(f"{COLLECTIONS[DEFINITION]}/{plural}.{group}") is not None:
                    raise Unreachable(f"{collection} is defined, and not served") from fault
                return
            for one in page["items"]:
                yield f"{collection}/{name_of(one)}", one
            token = page["metadata"].get("continue", "")
            if not token:
                return

    def _served(self) -> None:
        """Look whether all definitions of ours are served.

        Raises:
            Unreachable: one is not yet.
        """
        live = self._live()
        for one in self.wanted:
            if one["kind"] == DEFINITION and is_kept(live.get(path_of(one))):
                try:
                    self.kube.list(objects_of(one), limit=1)
                except Gone as fault:
                    raise Unreachable(f"{name_of(one)} is not served yet") from fault


def is_kept(live: Manifest | None) -> bool:
    """Whether *live* is there, ours, and not on its way out."""
    return live is not None and is_ours(live) and not is_going(live)
