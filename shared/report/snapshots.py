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
from shared.model.action import Action, FollowUp
from shared.model.cluster import Cluster
from shared.model.commands import Standing
from shared.ports import World
from shared.report.journal import Note
from shared.report.notes import Told
from shared.settings import Settings

PREFIX: Final = "snapshot/"
_FAST: Final = 1
_LARGEST: Final = 1024**3
"""Nobody's snapshot: 20,000 pods are 47 MB."""
_ADDRESSES: Final = ("kube_endpoint", "table_name", "bucket_name", "queue_prefix", "instance_profile", "price_list")
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


class Made(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of it."""

    decided: int
    """So many of the entry's actions, the first, come from the snapshot alone; EC2 answered before the others."""
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

    That pods still have room where they had it is no decision: whoever has none is told so by an event.
    """
    is_decision = any(not isinstance(one, FollowUp) for one in actions) or any(one.kind != "Pod" for one in notes)
    return is_decision and world.settings.snapshots == "on"


def keep(cluster: bytes, catalogue: str, given: Given, made: Made, world: World) -> tuple[str, str]:
    """Write the snapshot whose Cluster is *cluster*, as JSON; answer its key, and what went wrong, "" if nothing did.

    The key is made of what is written: what is there under it is this, or nothing.
    """
    document = _Written(given=given, made=made, catalogue=catalogue, cluster=msgspec.Raw(cluster))
    body = gzip.compress(_ENCODER.encode(document), _FAST, mtime=0)
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
