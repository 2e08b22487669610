"""Snapshots: what a stored decision was made from, so that it can be made again.

One object for each entry of the journal in which something was decided, put before the entry that names it: the
Cluster, and what else was decided on. It says which catalogue goes with it, and that one is in the bucket for longer.
"""

import gzip
import zlib
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

import msgspec

from shared.errors import Fault
from shared.lifecycle.notices import Notice
from shared.model.action import Action, DeleteLaunchTemplate, FollowUp, PatchMetadata, PatchStatus, TagInstance
from shared.model.cluster import Cluster
from shared.model.commands import Standing
from shared.model.labels import NODECLASS_FINALIZER, TERMINATION_FINALIZER
from shared.ports import World
from shared.report.journal import Note
from shared.report.notes import Told
from shared.report.observed import Kept, Resolved, Round
from shared.settings import Settings

PREFIX: Final = "snapshot/"
_FAST: Final = 1
_CLOSE: Final = 6
_OURS: Final = frozenset((TERMINATION_FINALIZER, NODECLASS_FINALIZER))
_SMALL: Final = 8 * 1024**2
"""Up to so many bytes are packed closely: it takes no more than 0.1 s, and a month's snapshots are a third smaller."""
_LARGEST: Final = 1024**3
"""Nobody's snapshot: 20,000 pods are 47 MB."""
_ADDRESSES: Final = (
    *("kube_endpoint", "table_name", "bucket_name", "queue_prefix", "instance_profile", "price_list", "report_topic"),
)
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


class Given(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was decided on besides the Cluster."""

    settings: Settings
    standings: tuple[Standing, ...] = ()
    """Commands, by id, as the cycle found them."""
    cursor: str = ""
    """Where the sweep began."""
    told: Told | None = None
    """Verdicts that the container had told already."""
    notices: tuple[Notice, ...] = ()
    is_planner: bool = True
    """Whether the cycle had the planner's lease: `interrupt` acts without it too, and then plans nothing."""
    overtaken: tuple[int, ...] = ()
    """Versions of the planner's lease whose holders never gave it back."""
    rounds: tuple[Round, ...] | None = None
    """Of `provision`: what was seen and heard while claims were launched; None: it was written by a version that kept
    none."""
    kept: Kept | None = None
    """Of `lifecycle`: what it asked on the way."""
    resolved: Resolved | None = None
    """Of `catalog`: what the account answered."""


class Made(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of it."""

    decided: int
    """So many of the entry's actions, the first, come from what was kept alone."""
    cut: str = ""
    """Why it may come out otherwise the next time: the clock or another cycle ended it; "" if nothing did."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The object."""

    given: Given
    made: Made
    catalogue: str = ""
    """Key of the catalogue; "" if there was none."""
    cluster: Cluster
    """Without its catalogue."""


class _Written(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The object, its cluster already JSON."""

    given: Given
    made: Made
    catalogue: str = ""
    cluster: msgspec.Raw


def given_by(settings: Settings) -> Given:
    """Answer what every cycle is given: *settings* without addresses, which decide nothing."""
    return Given(settings=msgspec.structs.replace(settings, **dict.fromkeys(_ADDRESSES, "")))


def is_kept(world: World, actions: Iterable[Action], notes: Iterable[Note]) -> bool:
    """Whether a cycle with these leaves a snapshot: it decided something, and the deployment wants to have it.

    That pods still have room where they had it is no decision: whoever has none is told so by an event. Nor is what
    `lifecycle` notes of machines at every other cycle.
    """
    is_decision = not all(_is_routine(one) for one in actions) or any(one.kind != "Pod" for one in notes)
    return is_decision and world.settings.snapshots == "on"


def _is_routine(action: Action) -> bool:
    """Whether *action* only wakes, or notes what is: that pods came to a node, since when it is quiet, its tags."""
    match action:
        case FollowUp() | TagInstance() | DeleteLaunchTemplate():
            return True
        case PatchMetadata():
            return action.finalizers is None or not _OURS.isdisjoint(action.finalizers)  # held, and not let go
        case PatchStatus():
            return action.kind in ("NodeClaim", "NodePool")  # a condition that turned is told by an event, too
        case _:
            return False


def keep(cluster: bytes, catalogue: str, given: Given, made: Made, world: World) -> tuple[str, str]:
    """Write the snapshot whose Cluster is *cluster*, as JSON; answer its key, and what went wrong, "" if nothing did.

    The key is made of what is written: what is there under it is this, or nothing.
    """
    document = _Written(given=given, made=made, catalogue=catalogue, cluster=msgspec.Raw(cluster))
    text = _ENCODER.encode(document)
    body = gzip.compress(text, _CLOSE if len(text) <= _SMALL else _FAST, mtime=0)
    key = f"{PREFIX}{sha256(body).hexdigest()[:32]}.json.gz"
    try:
        world.bucket.put(key, body)
    except Fault as fault:
        return "", f"snapshot lost: {type(fault).__name__}: {fault}"
    return key, ""


def read_snapshot(body: bytes) -> Snapshot:
    """Answer what `keep` wrote.

    Raises:
        ValueError: it is no snapshot, or not a whole one.
    """
    inflating = zlib.decompressobj(wbits=31)
    try:
        text = inflating.decompress(body, _LARGEST)
    except zlib.error as error:
        raise ValueError(f"not whole: {error}") from None
    if not inflating.eof:
        raise ValueError("not whole, or far too large")
    return msgspec.json.decode(text, type=Snapshot)
