"""What becomes of a notice when a call for it did not do what it should."""

from collections.abc import Iterable, Sequence

from shared.actions.apply import UNDONE, Outcome
from shared.lifecycle.notices import Notice, Unknown
from shared.model.action import DeleteObject, PatchMetadata, TaintNode
from shared.model.cluster import Cluster


def insisting(done: Iterable[Outcome]) -> tuple[PatchMetadata, ...]:
    """Note when EC2 ends a machine where its Node has changed meanwhile; the taint comes with lifecycle."""
    return tuple(
        PatchMetadata(kind="Node", name=one.action.name, annotations=one.action.annotations, why=one.action.why)
        for one in done
        if isinstance(one.action, TaintNode) and one.result == "skipped" and one.action.annotations
    )


def unsettled(parsed: Sequence[Notice | Unknown], done: Iterable[Outcome], cluster: Cluster) -> tuple[int, ...]:
    """Answer, by their place, the notices that are to come again.

    A machine of theirs is not on its way, for a call failed, or time was too short for it.
    """
    failed = [one.action for one in done if one.result == "failed" or one.message == UNDONE]
    names = {one.name for one in failed if isinstance(one, TaintNode | DeleteObject)}
    ids = {one.instance_id for one in cluster.node_claims if {one.name, one.node_name} & names}
    return tuple(
        place for place, one in enumerate(parsed) if isinstance(one, Notice) and not ids.isdisjoint(one.instance_ids)
    )
