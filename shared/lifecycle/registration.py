"""From a launched instance to a node that is fit for use: launched, registered, initialized.

What is done to the Node is judged by what the Node shows, not by what the claim remembers: a patch that did not
happen is decided again.
"""

from datetime import timedelta
from typing import Final

import msgspec

from shared.lifecycle.events import about
from shared.lifecycle.machines import Change, Machine, View
from shared.model.action import FollowUp, PatchMetadata, RegisterNode
from shared.model.conditions import with_condition
from shared.model.labels import (
    COMMAND,
    DO_NOT_SYNC_TAINTS,
    INITIALIZED,
    POD_DIGEST,
    REGISTERED,
    TERMINATION_FINALIZER,
    UNREGISTERED_TAINT,
)
from shared.model.nodes import Node, NodeClaim
from shared.model.objects import Owner, condition, is_true, pairs
from shared.model.taints import Taint, is_ephemeral

AGAIN: Final = timedelta(seconds=3)
"""So soon a node is looked at again that is kept closed until it is Ready: its pods wait for nothing else."""


def launch(machine: Machine, view: View) -> Change:
    """A claim with a provider id was launched, whoever says so."""
    claim = machine.claim
    if not claim.provider_id or is_true(claim.conditions, "Launched"):
        return Change(claim=claim)
    return Change(claim=_mark(claim, view, "Launched", "True"))


def register(machine: Machine, view: View) -> Change:
    """Give the Node that joined what its claim says, and take the unregistered taint away with the same patch."""
    claim = machine.claim
    if not claim.provider_id or (is_true(claim.conditions, "Registered") and len(machine.nodes) != 1):
        return Change(claim=claim)
    if not machine.nodes:
        message = f"no node has provider id {claim.provider_id} yet"
        return Change(claim=_mark(claim, view, "Registered", "Unknown", "NodeNotFound", message))
    if len(machine.nodes) > 1:
        message = "several nodes have its provider id: " + ", ".join(node.name for node in machine.nodes)
        return Change(claim=_mark(claim, view, "Registered", "False", "MultipleNodesFound", message))
    (node,) = machine.nodes
    if node.meta.deleted_at is not None:
        return Change(claim=claim)
    is_closed = node.name in view.closed and node.meta.label(REGISTERED) != "true"
    return _wait(claim, node, view) if is_closed else _open(claim, node, view)


def _wait(claim: NodeClaim, node: Node, view: View) -> Change:
    message = f"node {node.name} stays closed until it is Ready and its pods are told to go there"
    wake = FollowUp(function="lifecycle", after=AGAIN, why=f"node {node.name} is closed")
    return Change(claim=_mark(claim, view, "Registered", "Unknown", "NodeClosed", message), after=(wake,))


def _open(claim: NodeClaim, node: Node, view: View) -> Change:
    registered = _mark(msgspec.structs.replace(claim, node_name=node.name), view, "Registered", "True")
    if node.meta.label(REGISTERED) == "true":
        return Change(claim=registered)
    bare = not any(taint.key == UNREGISTERED_TAINT for taint in node.taints)
    words = f"node {node.name} joined without the taint {UNREGISTERED_TAINT}: pods may have come before its labels"
    missing = about("NodeClaim", claim.meta, "UnregisteredTaintMissing", words, view.now, type_="Warning")
    return Change(claim=registered, before=(registration_of(claim, node, view),), after=(missing,) if bare else ())


def registration_of(claim: NodeClaim, node: Node, view: View) -> RegisterNode:
    """Answer what makes *node* the node of *claim*; what it has of its own stays."""
    finalizers = dict.fromkeys((*node.meta.finalizers, TERMINATION_FINALIZER))
    others = (one for one in node.meta.owners if one.uid != claim.meta.uid)
    owner = Owner(api_version="karpenter.sh/v1", kind="NodeClaim", name=claim.name, uid=claim.meta.uid)
    return RegisterNode(
        name=node.name,
        resource_version=node.meta.resource_version,
        taints=_merged_taints(claim, node),
        labels=pairs((*claim.meta.labels, (REGISTERED, "true"))),
        annotations=pairs(pair for pair in claim.meta.annotations if pair[0] != POD_DIGEST),
        finalizers=tuple(finalizers),
        owners=(*others, owner),
        hints=view.places.get(node.name, ()),
        seen=node.taints,
        why=f"the node of {claim.name} joined",
    )


def _merged_taints(claim: NodeClaim, node: Node) -> tuple[Taint, ...]:
    synced = not any(owner.label(DO_NOT_SYNC_TAINTS) == "true" for owner in (node.meta, claim.meta))
    merged = list(node.taints)
    for taint in (*claim.taints, *claim.startup_taints) if synced else ():
        if not any(taint.is_same(one) for one in merged):
            merged.append(taint)
    return tuple(taint for taint in merged if taint.key != UNREGISTERED_TAINT)


def initialize(machine: Machine, view: View) -> Change:
    """Call the registered Node fit for use once nothing is missing any more, or say what is."""
    claim = machine.claim
    if not is_true(claim.conditions, "Registered"):
        return Change(claim=claim)
    done = is_true(claim.conditions, "Initialized")
    node = machine.nodes[0] if len(machine.nodes) == 1 else None
    if node is None or node.meta.label(REGISTERED) != "true":
        message = "its node is not there, or not registered yet"
        return Change(claim=claim if done else _mark(claim, view, "Initialized", "Unknown", "NodeNotFound", message))
    reason, message = ("", "") if done else _obstacle(claim, node)
    if reason:
        return Change(claim=_mark(claim, view, "Initialized", "Unknown", reason, message))
    initialized = _mark(claim, view, "Initialized", "True")
    wake = () if done else _replaces(claim)
    if node.meta.label(INITIALIZED) == "true":
        return Change(claim=initialized, after=wake)
    why = f"the node of {claim.name} is fit for use"
    label = PatchMetadata(kind="Node", name=node.name, labels=((INITIALIZED, "true"),), why=why)
    return Change(claim=initialized, before=(label,), after=wake)


def _replaces(claim: NodeClaim) -> tuple[FollowUp, ...]:
    """Wake disruption for what waits for this node."""
    command = claim.meta.annotation(COMMAND)
    return (FollowUp(function="disrupt", after=timedelta(), why=f"{claim.name} is fit for use"),) if command else ()


def _obstacle(claim: NodeClaim, node: Node) -> tuple[str, str]:
    if not node.is_ready():
        return "NodeNotReady", f"node {node.name} is not Ready"
    startup = [taint for taint in node.taints if any(taint.is_same(one) for one in claim.startup_taints)]
    if startup:
        return "StartupTaintsExist", f"startup taint {startup[0]} is still there"
    ephemeral = [taint for taint in node.taints if is_ephemeral(taint)]
    if ephemeral:
        return "KnownEphemeralTaintsExist", f"taint {ephemeral[0]} is still there"
    missing = [name for name in claim.requests.names() if node.allocatable[name] <= 0]
    if missing:
        return "ResourceNotRegistered", f"resource {missing[0]} was requested and is not registered"
    return "", ""


def _mark(claim: NodeClaim, view: View, type_: str, status: str, reason: str = "", message: str = "") -> NodeClaim:
    known = condition(claim.conditions, type_)
    since = view.now
    if known is None and status == "Unknown":
        since = claim.meta.created_at or view.now
    some = with_condition(claim.conditions, type_, status, reason, message, since, claim.meta.generation)
    return msgspec.structs.replace(claim, conditions=some)
