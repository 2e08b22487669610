"""Pod events without a watch, and what follows from them: since when a node has been quiet.

The digest of the pods on a node stands in an annotation of its claim; where it differs from that of the pods that are
seen, pods came, ended or began to go since then, and the quiet begins now: it may only be thought too short.
"""

from datetime import datetime

import msgspec

from shared.lifecycle.followups import look_at
from shared.lifecycle.machines import Change, Machine, View
from shared.model.action import PatchMetadata
from shared.model.conditions import with_condition, without_condition
from shared.model.labels import POD_DIGEST
from shared.model.nodepools import NodePool
from shared.model.nodes import NodeClaim
from shared.model.objects import condition, is_true
from shared.model.state import pod_digest


def notice_pods(machine: Machine, view: View) -> Change:
    """Note the time of a pod event; the time is written before the digest, so that a kill between repeats it."""
    claim = machine.claim
    digest, known = pod_digest(machine.pods), claim.meta.annotation(POD_DIGEST)
    if not machine.nodes or digest == known:
        return Change(claim=claim)
    first = not known
    quiet = first and (claim.last_pod_event_at is not None or all(pod.is_daemon() for pod in machine.pods))
    noted = claim if quiet else msgspec.structs.replace(claim, last_pod_event_at=view.now)
    why = "pods seen for the first time" if first else "pods came, ended or began to go"
    write = PatchMetadata(kind="NodeClaim", name=claim.name, annotations=((POD_DIGEST, digest),), why=why)
    return Change(claim=noted, after=(write,))


def consolidate(machine: Machine, view: View) -> Change:
    """Set or remove `Consolidatable`; claims of no pool, or of a static one, have no say in that."""
    claim, pool = machine.claim, view.pool_of(machine.claim)
    if pool is None or pool.replicas is not None:
        return Change(claim=claim)
    due = consolidatable_at(claim, pool)
    if due is not None and due <= view.now:
        some = with_condition(claim.conditions, "Consolidatable", "True", "", "", view.now, claim.meta.generation)
        return Change(claim=msgspec.structs.replace(claim, conditions=some))
    wake = look_at(due, view.now, f"{claim.name} will be consolidatable") if due is not None else ()
    some = without_condition(claim.conditions, "Consolidatable")
    return Change(claim=msgspec.structs.replace(claim, conditions=some), after=wake)


def consolidatable_at(claim: NodeClaim, pool: NodePool) -> datetime | None:
    """Answer when the claim has been quiet for the pool's consolidateAfter; None: never, or not initialized."""
    initialized = condition(claim.conditions, "Initialized")
    if pool.consolidate_after is None or initialized is None or not is_true(claim.conditions, "Initialized"):
        return None
    start = claim.last_pod_event_at or initialized.since or claim.meta.created_at
    return start + pool.consolidate_after if start is not None else None
