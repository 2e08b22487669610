"""The evictions that a cycle of the journal contains."""

from collections.abc import Iterator

from cli.journal.journal import Cycle
from shared.model.decisions.action import DeletePod, EvictPod


def iterate_evictions(cycle: Cycle) -> Iterator[tuple[str, EvictPod | DeletePod]]:
    """Yield namespace and name of each pod that *cycle* evicted or deleted, like ``shop/cart``, with the action."""
    for result in cycle.entry.results:
        action = result.action
        if isinstance(action, EvictPod | DeletePod) and result.result == "done":
            yield f"{action.namespace}/{action.name}", action
