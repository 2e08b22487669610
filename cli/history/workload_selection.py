"""The workload that a user names."""

from difflib import get_close_matches

from msgspec.structs import replace

from cli.terminal.errors import InputError
from shared.model.core.formatting import join_names
from shared.model.decisions.workload_history import WorkloadHistory

MAX_SUGGESTED_NAMES = 5


def select_workloads(history: WorkloadHistory, name: str) -> WorkloadHistory:
    """Return *history* with only the workloads and families that *name* matches; "" matches all.

    *name* is ``NAME``, ``NAMESPACE/NAME``, ``KIND/NAMESPACE/NAME`` or ``KIND NAMESPACE/NAME``; KIND in any case.

    Raises:
        InputError: nothing matches.
    """
    if not name:
        return history
    workloads = tuple(record for record in history.workloads if _is_match(record.name, name))
    families = tuple(record for record in history.run_times if _is_match(record.family, name))
    if not workloads and not families:
        names = [record.name for record in history.workloads]
        similar_names = get_close_matches(name, names, n=MAX_SUGGESTED_NAMES, cutoff=0.5) or names
        raise InputError(
            f"workload {name} not found; the history has {join_names(similar_names, MAX_SUGGESTED_NAMES) or 'none'}"
        )
    return replace(history, workloads=workloads, run_times=families)


def _is_match(full_name: str, name: str) -> bool:
    kind, _, qualified_name = full_name.partition(" ")
    names = (qualified_name.partition("/")[2], qualified_name, f"{kind}/{qualified_name}".lower(), full_name.lower())
    return name in names[:2] or name.lower() in names[2:]
