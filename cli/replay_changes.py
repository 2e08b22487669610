"""What is otherwise than it was: objects that are put in the place of those that were decided on, or taken away."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from cli.files import InputError, Tell
from cli.inputs import documents_in, objects_of
from cli.live import joined, running_labels
from cli.manifests import manifests
from shared.model.cluster import Cluster
from shared.model.nodeclasses import EC2NodeClass
from shared.model.nodepools import NodePool
from shared.model.objects import Meta, pairs
from shared.snapshot.documents import cluster_from_documents
from shared.snapshot.kinds import LISTINGS, order
from shared.snapshot.optional import OPTIONAL

_FOUND_OUT: Final = (
    "resolved_subnets",
    "resolved_security_groups",
    "resolved_images",
    "resolved_profile",
    "resolved_capacity_reservations",
    "resolved_placement_group",
    "conditions",
)
"""Of an EC2NodeClass: what the catalog function writes into its status."""
_ASKED: Final = (
    "image_selectors",
    "ami_family",
    "subnet_selectors",
    "security_group_selectors",
    "capacity_reservation_selectors",
    "placement_group_selector",
)


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster that is not as it was."""

    cluster: Cluster
    what: tuple[str, ...] = ()
    """As ``NodePool default``, and how it is otherwise."""
    notes: tuple[str, ...] = ()
    """What a reader should know of it."""


def changed(cluster: Cluster, files: Sequence[str], without: Iterable[str], tell: Tell) -> Changed:
    """Answer *cluster* with the objects in *files* as if they were applied, and without those that are named.

    What is wrong with a file is told. An object keeps what it is known by, and its status: what is written into that
    later, as images that a node class selects, is not found out anew.

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
    applied = replace(
        applied,
        problems=(),
        node_pools=tuple(_pool(one, cluster) for one in applied.node_pools),
        node_classes=tuple(_node_class(one, cluster, notes) for one in applied.node_classes),
    )
    said += _said(cluster, applied)
    return Changed(cluster=joined(cluster, applied), what=tuple(said), notes=tuple(notes))


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


def _node_class(one: EC2NodeClass, cluster: Cluster, notes: list[str]) -> EC2NodeClass:
    known = next((each for each in cluster.node_classes if each.name == one.name), None)
    if known is None:
        notes.append(
            f"EC2NodeClass {one.name} is new: nothing of what it selects is known, prices are those of any type"
        )
        return one
    if any(getattr(one, field) != getattr(known, field) for field in _ASKED):
        notes.append(f"EC2NodeClass {one.name} selects otherwise: its images, subnets and groups stay what they were")
    kept = {field: getattr(known, field) for field in _FOUND_OUT}
    return replace(one, meta=_meta(one.meta, known.meta), **kept)


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
