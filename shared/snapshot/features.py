"""What features add to a look: kinds that are read only where they are on, and what follows from them at once."""

from typing import Final

from msgspec.structs import replace

from shared.model.cluster import Cluster
from shared.ports import World
from shared.scheduling.overlays import overlaid
from shared.scheduling.spread import default_constraints, spread_by_default
from shared.settings import Gates, gates_from
from shared.snapshot.optional import BUFFERS, OVERLAYS, SELECTING, SIZED
from shared.snapshot.take import MACHINERY, Wanted, first_look, retake, take

_POOLS: Final = ("node_pools",)


def gates_of(world: World) -> Gates:
    """Answer the features that are on.

    Raises:
        ValueError: the setting cannot be read.
    """
    return gates_from(world.settings.feature_gates)


def glance(world: World) -> Cluster:
    """Answer a first look, with what may want a plan though no pod waits.

    Raises:
        Fault: as `take`.
    """
    gates = gates_of(world)
    more = (*(BUFFERS if gates.capacity_buffer else ()), *(_POOLS if gates.static_capacity else ()))
    return first_look(world, (*MACHINERY, *more))


def survey(world: World, wanted: Wanted) -> Cluster:
    """Answer what is *wanted* as a plan sees it: with what features read, prices overlaid, pods spread by default.

    Raises:
        Fault: as `take`.
    """
    gates = gates_of(world)
    more = (*(OVERLAYS if gates.node_overlay else ()), *(BUFFERS if gates.capacity_buffer else ()))
    if world.settings.scheduler_config:
        more = (*more, *SELECTING)
    cluster = take(world, replace(wanted, lists=(*wanted.lists, *more)))
    if cluster.capacity_buffers:
        missing = tuple(name for name in SIZED if name not in more)
        cluster = retake(world, cluster, Wanted(lists=missing))
    return featured(cluster, world.settings.feature_gates, world.settings.scheduler_config)


def featured(cluster: Cluster, feature_gates: str, scheduler_config: str) -> Cluster:
    """Answer *cluster* with what follows from objects of features that are on; those of others count as not there.

    Raises:
        ValueError: a setting cannot be read.
    """
    gates = gates_from(feature_gates)
    if not gates.node_overlay:
        cluster = replace(cluster, node_overlays=())
    if not gates.capacity_buffer:
        cluster = replace(cluster, capacity_buffers=())
    return spread_by_default(overlaid(cluster), default_constraints(scheduler_config))


def with_overlays(world: World, cluster: Cluster) -> Cluster:
    """Answer *cluster* with NodeOverlays, and the catalogue if there are any.

    Raises:
        Fault: as `take`.
    """
    if not gates_of(world).node_overlay:
        return cluster
    cluster = retake(world, cluster, Wanted(lists=OVERLAYS))
    return retake(world, cluster, Wanted(lists=(), catalogue=True)) if cluster.node_overlays else cluster
