"""One pod's verdict in full: where it goes and why there, or what each NodePool has against it.

Nothing is guessed. The place is that of the plan. What other NodePools say comes from planning for this pod alone, with
each of them as the only one.
"""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from cli.explained_constraints import Constraint, constraints
from cli.files import InputError
from cli.left_out import by_pool, workload_of
from cli.planned import Planned, choice_document
from shared.model.catalogue import InstanceType
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from shared.model.nodepools import NodePool
from shared.model.objects import condition
from shared.model.pods import Pod, strict_requirements
from shared.model.requirements import (
    Requirements,
)
from shared.model.resources import PODS, quantities_from, resources
from shared.model.state import state_nodes
from shared.scheduling.placement import Choice, NewNode
from shared.scheduling.solve import solve

_LIKELY: Final = 0.6


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one pod; what does not apply is empty."""

    pod: str
    workload: str
    requests: dict[str, str]
    kind: str
    """NewNode, ExistingNode, Unschedulable, or NotWaiting."""
    node: str = ""
    node_pool: str = ""
    offering: Choice | None = None
    instance_types: tuple[str, ...] = ()
    """What the node could become, cheapest first."""
    beside: tuple[str, ...] = ()
    """The other pods that the plan puts there."""
    daemon_pods: int = 0
    funnel: tuple[tuple[str, int], ...] = ()
    """How many instance types are left, step by step."""
    constraints: tuple[Constraint, ...] = ()
    pools: tuple[tuple[str, str], ...] = ()
    """NodePool and what it says, those that say the same together."""
    reason: str = ""
    undecided: tuple[str, ...] = ()
    """Constraints that are decided only at launch."""


def explain(planned: Planned, wanted: str) -> Verdict:
    """Answer the verdict on the pod *wanted* (``shop/cart``, or ``cart`` where that is one).

    Raises:
        InputError: there is no such pod, or more than one.
    """
    name = _found(planned, wanted)
    read = planned.pods().get(name)
    about: dict[str, Any] = {
        "pod": name,
        "workload": workload_of(read) if read is not None else "",
        "requests": quantities_from(read.spec.requests - resources({PODS: 1})) if read is not None else {},
        "undecided": tuple(one.constraint for one in planned.placement.approximations if one.pod == name),
    }
    for one in planned.left_out:
        if one.pod == name:
            said = tuple((", ".join(pools), words) for pools, words in by_pool(one.message))
            return Verdict(kind="Unschedulable", reason=one.reason, pools=said, **about)
    pod = planned.pods()[name]  # who is not left out could be read
    for node in planned.placement.new_nodes:
        if name in node.pods:
            return _on_new(planned, pod, node, about)
    for fit in planned.placement.existing:
        if name in fit.pods:
            return _on_existing(planned, fit.node, tuple(one for one in fit.pods if one != name), about)
    return Verdict(kind="NotWaiting", node=pod.node_name, reason=_why_not(pod), **about)


def _found(planned: Planned, wanted: str) -> str:
    known = sorted({*planned.pods(), *(one.pod for one in planned.left_out)})
    same = [name for name in known if wanted in (name, name.partition("/")[2])]
    if len(same) == 1:
        return same[0]
    if same:
        raise InputError(f"--pod {wanted}: is in several namespaces: write one of {', '.join(same)}")
    words = {name: name for name in known} | {name.partition("/")[2]: name for name in known}
    close = [words[one] for one in get_close_matches(wanted, list(words), n=3, cutoff=_LIKELY)]
    hint = f"do you mean {' or '.join(dict.fromkeys(close))}?" if close else "name it as namespace/name"
    raise InputError(f"--pod {wanted}: no such pod among {len(known)}: {hint}")


def _on_new(planned: Planned, pod: Pod, node: NewNode, about: dict[str, Any]) -> Verdict:
    pool = next(one for one in planned.cluster.node_pools if one.name == node.node_pool)
    return Verdict(
        kind="NewNode",
        node=node.name,
        node_pool=pool.name,
        offering=node.cheapest,
        instance_types=node.instance_types,
        beside=tuple(one for one in node.pods if one != pod.name),
        daemon_pods=node.daemon_pods,
        funnel=tuple(_funnel(planned, pool, pod, node)),
        constraints=tuple(constraints(pool, pod, node)),
        pools=tuple(_others(planned, pod, pool.name)),
        **about,
    )


def _funnel(planned: Planned, pool: NodePool, pod: Pod, node: NewNode) -> Iterator[tuple[str, int]]:
    """Count what is sold, what the pool allows of it, what the pod does, and what is large enough for it alone."""
    catalogue = planned.cluster.catalogue
    sold = catalogue.types_for(pool.node_class.name, pool.name) if catalogue is not None else ()
    yield "in the catalogue", len(sold)
    allowed = _compatible(sold, pool.requirements)
    yield f"allowed by pool {pool.name}", len(allowed)
    # beyond what the types say of themselves a pod asks for labels of the pool, which it has: the pod is there
    keys = {item.key for one in allowed for item in one.requirements}
    own = strict_requirements(pod.spec)
    mine = _compatible(allowed, own.without(item.key for item in own if item.key not in keys))
    yield "allowed by the pod", len(mine)
    yield "large enough for it alone", sum(pod.spec.requests.fits(one.allocatable) for one in mine)
    yield "for all of the node's pods, within the plan's price", len(node.instance_types)


def _compatible(types: Iterable[InstanceType], wanted: Requirements) -> list[InstanceType]:
    return [one for one in types if not one.requirements.conflict(wanted)]


def _others(planned: Planned, pod: Pod, chosen: str) -> Iterator[tuple[str, str]]:
    """Plan for *pod* alone, with each other NodePool as the only one."""
    said: dict[str, list[str]] = {}
    for pool in planned.cluster.node_pools:
        if pool.name != chosen:
            said.setdefault(_alone(planned, pod, pool), []).append(pool.name)
    yield from ((", ".join(names), words) for words, names in said.items())


def _alone(planned: Planned, pod: Pod, pool: NodePool) -> str:
    found = solve(replace(planned.cluster, node_pools=(pool,)), pods=(pod,), options=planned.options)
    if found.unschedulable:
        [(_, words)] = by_pool(found.unschedulable[0].message)
        return words
    if found.existing:
        return f"alone it would fit on node {found.existing[0].node}"
    choice = found.new_nodes[0].cheapest
    return f"would do too; the cheapest for it alone is {offering_text(choice)}"


def offering_text(choice: Choice) -> str:
    """Answer an offering in words."""
    price = f"${choice.price_usd_per_hour:.4f} per hour"
    return f"{choice.instance_type}, {choice.capacity_type}, in {choice.zone}, {price}"


def _on_existing(planned: Planned, name: str, beside: tuple[str, ...], about: dict[str, Any]) -> Verdict:
    state = next(one for one in state_nodes(planned.cluster) if one.name == name)
    meta = state.meta
    type_, zone, capacity_type = (meta.label(key) for key in (INSTANCE_TYPE, ZONE, CAPACITY_TYPE))
    catalogue = planned.cluster.catalogue
    price = next(
        (
            offering.price_usd_per_hour
            for one in (catalogue.instance_types if catalogue is not None else ())
            for offering in one.offerings
            if (one.name, offering.zone, offering.capacity_type) == (type_, zone, capacity_type)
        ),
        0.0,
    )
    offering = Choice(instance_type=type_, zone=zone, capacity_type=capacity_type, price_usd_per_hour=price)
    return Verdict(kind="ExistingNode", node=name, offering=offering if type_ else None, beside=beside, **about)


def _why_not(pod: Pod) -> str:
    """Say why nothing is planned for *pod*."""
    if pod.node_name:
        return f"it is on node {pod.node_name} already"
    if pod.nominated_node_name:
        return f"kube-scheduler makes room for it on node {pod.nominated_node_name}"
    if pod.is_daemon() or pod.is_mirror():
        return "it belongs to one node: no node is made for it"
    scheduled = condition(pod.conditions, "PodScheduled")
    if scheduled is not None and scheduled.reason:
        return f"kube-scheduler has not given up on it: {scheduled.reason}"
    return "kube-scheduler has not looked at it yet (--assume-unschedulable plans for it all the same)"


def verdict_document(verdict: Verdict) -> dict[str, Any]:
    """Answer *verdict* as it is written down: stable keys; USD per hour."""
    return {
        "pod": verdict.pod,
        "workload": verdict.workload,
        "requests": verdict.requests,
        "verdict": verdict.kind,
        "reason": verdict.reason,
        "node": verdict.node,
        "nodePool": verdict.node_pool,
        "offering": choice_document(verdict.offering) if verdict.offering is not None else None,
        "instanceTypes": list(verdict.instance_types),
        "beside": list(verdict.beside),
        "daemonPods": verdict.daemon_pods,
        "typesLeft": [{"step": step, "types": number} for step, number in verdict.funnel],
        "constraints": [one.requirement | {"madeBy": list(one.made_by)} for one in verdict.constraints],
        "pools": [{"nodePools": pools.split(", ") if pools else [], "says": words} for pools, words in verdict.pools],
        "undecided": list(verdict.undecided),
    }
