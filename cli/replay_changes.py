"""What is otherwise than it was: objects that are put in the place of those that were decided on, or taken away."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from cli.files import InputError, Tell
from cli.inputs import documents_in, objects_of
from cli.live import joined, running_labels
from cli.manifests import manifests
from cli.replay_selectors import FIELDS, Known, reselected, sold_to
from shared.model.cluster import Cluster
from shared.model.nodeclasses import EC2NodeClass
from shared.model.nodepools import NodePool
from shared.model.objects import Meta, pairs
from shared.snapshot.documents import cluster_from_documents
from shared.snapshot.kinds import LISTINGS, order
from shared.snapshot.optional import OPTIONAL

_STATUS: Final = (
    *(one.status for one in FIELDS),
    "resolved_profile",
    "resolved_placement_group",
    "conditions",
)
"""Of an EC2NodeClass: what the catalog function writes into its status."""
Reads: TypeAlias = Collection[str] | None
"""Of a Cluster: the lists that a function reads."""


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster that is not as it was."""

    cluster: Cluster
    what: tuple[str, ...] = ()
    """As ``NodePool default``, and how it is otherwise."""
    notes: tuple[str, ...] = ()
    """What a reader should know of it."""
    reselected: tuple[str, ...] = ()
    """EC2NodeClasses that are new, or otherwise."""


def changed(
    cluster: Cluster, known: Known, files: Sequence[str], without: Iterable[str], tell: Tell, reads: Reads = None
) -> Changed:
    """Answer *cluster* with the objects in *files* as if they were applied, and without those that are named.

    What is wrong with a file is told. An object keeps what it is known by, and its status; what an EC2NodeClass selects
    is found out anew as far as it is *known*. Kinds that the cycle does not read, if *reads* says which it does, change
    nothing.

    Raises:
        InputError: there is no object of which *without* speaks.
    """
    said: list[str] = []
    for one in without:
        cluster, name = _without(cluster, one)
        said.append(f"without {name}")
    if not files:
        return Changed(cluster=cluster, what=tuple(said))
    some = manifests(objects_of(documents_in(files, tell), tell), tell, running_labels(cluster), are_features_on=True)
    applied = cluster_from_documents(some.objects, cluster.taken_at)
    for problem in applied.problems:
        where = some.places.get((problem.kind, problem.name), "")
        tell(f"{f'{where}: ' if where else ''}{problem.kind} {problem.name}: {problem.message}")
    notes = list(some.notes)
    applied = replace(applied, problems=(), node_pools=tuple(_pool(one, cluster) for one in applied.node_pools))
    if reads is not None:
        applied = _of_kinds(applied, reads, notes)
    cluster, applied, other = _with_classes(cluster, applied, known, notes)
    said += _said(cluster, applied)
    return Changed(cluster=joined(cluster, applied), what=tuple(said), notes=tuple(notes), reselected=other)


def _of_kinds(applied: Cluster, reads: Collection[str], notes: list[str]) -> Cluster:
    """Leave out what the cycle did not look at."""
    for listing in (*LISTINGS, *OPTIONAL):
        if listing.field not in reads and (objects := getattr(applied, listing.field)):
            names = ", ".join("/".join(filter(None, order(one))) for one in objects)
            notes.append(f"{listing.kind} {names}: this function does not look at any; it changes nothing")
            applied = replace(applied, **{listing.field: ()})
    return applied


def _with_classes(
    cluster: Cluster, applied: Cluster, known: Known, notes: list[str]
) -> tuple[Cluster, Cluster, tuple[str, ...]]:
    """Answer both, what EC2NodeClasses select found out anew, and which of these are otherwise than they were."""
    classes: list[EC2NodeClass] = []
    other: list[str] = []
    for one in applied.node_classes:
        before = next((each for each in cluster.node_classes if each.name == one.name), None)
        mine, words = reselected(_kept(one, before), before, known)
        classes.append(mine)
        notes += words
        if mine != before:
            other.append(one.name)
        if cluster.catalogue is not None:
            sold, more = sold_to(cluster.catalogue, mine, before)
            cluster = replace(cluster, catalogue=sold)
            notes += more
    return cluster, replace(applied, node_classes=tuple(classes)), tuple(other)


def _without(cluster: Cluster, text: str) -> tuple[Cluster, str]:
    kind, _, name = text.partition("/")
    for listing in (*LISTINGS, *OPTIONAL):
        if kind.lower() not in (listing.kind.lower(), listing.plural):
            continue
        objects = getattr(cluster, listing.field)
        kept = tuple(one for one in objects if name not in ("/".join(filter(None, order(one))), order(one)[1]))
        if len(kept) == len(objects):
            known = ", ".join("/".join(filter(None, order(one))) for one in objects[:5])
            raise InputError(
                f"--without {text}: there was none{f'; there were {known}' if known else f': no {listing.kind} at all'}"
            )
        return replace(cluster, **{listing.field: kept}), f"{listing.kind} {name}"
    kinds = ", ".join(sorted(listing.kind for listing in LISTINGS))
    raise InputError(f"--without {text}: write KIND/NAME, as nodepool/default; kinds are {kinds}")


def _pool(one: NodePool, cluster: Cluster) -> NodePool:
    known = next((pool for pool in cluster.node_pools if pool.name == one.name), None)
    if known is None:
        return one
    return replace(one, meta=_meta(one.meta, known.meta), usage=known.usage, conditions=known.conditions)


def _kept(one: EC2NodeClass, known: EC2NodeClass | None) -> EC2NodeClass:
    """Answer *one* with what its name is known for: its status."""
    if known is None:
        return one
    status = {name: getattr(known, name) for name in _STATUS}
    status["resolved_profile"] = one.instance_profile or known.resolved_profile
    return replace(one, meta=_meta(one.meta, known.meta), **status)


def _meta(new: Meta, known: Meta) -> Meta:
    """Answer what an object is known by after a manifest was applied to it."""
    return replace(
        known,
        labels=pairs(dict(known.labels) | dict(new.labels)),
        annotations=pairs(dict(known.annotations) | dict(new.annotations)),
    )


def _said(cluster: Cluster, applied: Cluster) -> Iterable[str]:
    for listing in (*LISTINGS, *OPTIONAL):
        known = {order(one): one for one in getattr(cluster, listing.field)}
        for one in getattr(applied, listing.field):
            name = "/".join(filter(None, order(one)))
            before = known.get(order(one))
            how = "new" if before is None else "as it was" if before == one else "changed"
            yield f"{listing.kind} {name} ({how})"
