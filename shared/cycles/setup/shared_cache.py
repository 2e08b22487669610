"""Storing of the large lists that a container has cached, so that cold containers can load them.

Only the setting `shared-cache: on` and a list of at least `MIN_STORED_LIST_BYTES` make a request.
"""

from datetime import timedelta
from typing import Final

from shared.cycles.setup.time_limit import build_time_check
from shared.errors import Fault
from shared.ports.world import World
from shared.report.log import log
from shared.store.shared_cache.list_index import ListIndex, StoredList, read_list_index, write_stored_lists
from shared.take.kubernetes.shared_cache import find_cluster_uid, find_storable_lists, take_stored_list_reads

STORE_INTERVAL: Final = timedelta(seconds=50)
"""How old a stored list must be before it is replaced: less than the minute between two scheduled runs.

The API server keeps the changes of the last 75 seconds or more for watches (`DefaultEventFreshDuration` of its watch
cache). A cluster with many changes refuses to continue from an older list.
"""
_MAX_CURRENT_AGE: Final = timedelta(minutes=1)
"""A list that was current before is not stored: another function has a newer one, or will soon."""
_CHECKED_AT_CACHE_KEY: Final = "stored lists: checked at"


def store_large_lists(world: World) -> None:
    """Log the stored lists that this cycle has loaded, then store cached lists if those in the bucket are old.

    A fault is logged: nothing depends on stored lists.
    """
    if world.settings.shared_cache == "off" or world.memory is None:
        return
    _log_reads(world)
    now = world.clock()
    checked_at = world.memory.get(_CHECKED_AT_CACHE_KEY)
    storable_lists = find_storable_lists(world.memory, now - _MAX_CURRENT_AGE)
    is_over = build_time_check(world)
    if not storable_lists or (is_over is not None and is_over()):
        return
    if checked_at is not None and timedelta() <= now - checked_at < STORE_INTERVAL:  # type: ignore[operator]
        return
    world.memory[_CHECKED_AT_CACHE_KEY] = now
    try:
        _store_lists(world, storable_lists)
    except (Fault, ValueError) as error:
        log("WARNING", "lists not stored", world, {"error": f"{type(error).__name__}: {error}"})


def _store_lists(world: World, storable_lists: dict[str, StoredList]) -> None:
    """Store those of *storable_lists* that are newer than what the bucket has.

    Raises:
        Fault: the table, the bucket or the API server did not respond.
        ValueError: the cluster has no uid.
    """
    index = read_list_index(world.table)
    cluster_uid = find_cluster_uid(world.kube, world.memory if world.memory is not None else {})
    if index.cluster_uid != cluster_uid:
        index = ListIndex(cluster_uid=cluster_uid, row_version=index.row_version)
    due_lists = {
        field: stored_list for field, stored_list in storable_lists.items() if _is_due(index, field, stored_list)
    }
    if not due_lists:
        return
    started_at = world.clock()
    is_written = write_stored_lists(world.table, world.bucket, index, due_lists, started_at)
    fields = {
        "lists": {field: len(stored_list.values) for field, stored_list in due_lists.items()},
        "seconds": (world.clock() - started_at).total_seconds(),
    }
    log("INFO", "stored lists" if is_written else "lists not stored: another container was faster", world, fields)


def _is_due(index: ListIndex, field: str, stored_list: StoredList) -> bool:
    """Return whether *stored_list* replaces the stored one: it was current `STORE_INTERVAL` later."""
    entry = index.lists.get(field)
    return entry is None or stored_list.entry.current_at - entry.current_at >= STORE_INTERVAL


def _log_reads(world: World) -> None:
    for read in take_stored_list_reads(world.memory if world.memory is not None else {}):
        if read.refusal:
            log("INFO", "stored list not used", world, {"list": read.field, "reason": read.refusal})
        else:
            age = round(read.age.total_seconds(), 1)
            message = f"loaded stored list of {read.field}, {age:.0f} s old"
            log("INFO", message, world, {"list": read.field, "age_seconds": age, "objects": read.count})
