"""What there is of ours, and what nothing accounts for: each with its owner, age and price, and what to do about it."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from cli.audit_facts import Asset, Evidence
from cli.checks.facts import Unseen
from shared.disruption.prices import PriceList
from shared.launch.templates import PREFIX
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.nodes import Node, NodeClaim
from shared.model.objects import Meta, Pairs
from shared.model.state import state_nodes

YOUNG: Final = timedelta(minutes=5)
"""EC2 and the API server may tell of a machine at different times."""
SLOW: Final = timedelta(hours=1)
"""Whatever goes is gone by then; what is kept for the next launch is not."""
GIB_MONTH: Final = 0.08
"""USD for a GiB of a gp3 volume, the kind that we make; other kinds and regions differ by a half."""
HOURS_PER_MONTH: Final = 730
STATES: Final = ("pending", "running", "stopping", "stopped")


def audited(seen: Evidence) -> tuple[Asset, ...]:
    """Answer everything, what is leaked first, then by kind and name.

    What an unseen part might account for is not called leaked.
    """
    found = [one for look in _LOOKS for one in look(seen)]
    return tuple(sorted(found, key=lambda one: (not one.is_leaked, one.kind, one.name)))


def _instances(seen: Evidence) -> Iterator[Asset]:
    if isinstance(seen.instances, Unseen) or isinstance(seen.cluster, Unseen):
        return
    claims = {one.instance_id: one for one in seen.cluster.node_claims if one.is_launched()}
    prices = PriceList(seen.cluster.catalogue)
    for one in (each for each in seen.instances if each.state in STATES):
        age = seen.now - one.launched_at
        claim = claims.get(one.instance_id)
        owner = f"NodeClaim {claim.name}" if claim is not None else "" if age > YOUNG else "a launch that goes on"
        labels: Pairs = (
            (CAPACITY_TYPE, one.capacity_type),
            (INSTANCE_TYPE, one.instance_type),
            (NODEPOOL, one.tag(NODEPOOL)),
            (ZONE, one.zone),
        )
        price = prices.price(Meta(name="", labels=tuple(sorted(labels))), one.tag("karpenter.k8s.aws/ec2nodeclass"))
        why = "no NodeClaim has it: `lifecycle` ends it within minutes, if it runs"
        remedy = f"aws ec2 terminate-instances --instance-ids {one.instance_id}"
        yield _asset("Instance", one.instance_id, owner, why, remedy, age, price)


def _claims(seen: Evidence) -> Iterator[Asset]:
    if isinstance(seen.cluster, Unseen):
        return
    there = None if isinstance(seen.instances, Unseen) else {one.instance_id for one in seen.instances}
    pools = {one.name for one in seen.cluster.node_pools}
    for one in seen.cluster.node_claims:
        why, remedy = _claim_trouble(one, pools, there, seen.now)
        pool = one.meta.label(NODEPOOL)
        yield _asset("NodeClaim", one.name, "" if why else f"NodePool {pool}", why, remedy, _age(one.meta, seen.now))


def _claim_trouble(one: NodeClaim, pools: set[str], there: set[str] | None, now: datetime) -> tuple[str, str]:
    age = _age(one.meta, now) or timedelta()
    if one.meta.deleted_at is not None:
        if now - one.meta.deleted_at > SLOW:
            held = ", ".join(one.meta.finalizers) or "nobody"
            return f"it is going for over an hour, held by {held}", f"joiner explain nodeclaim {one.name} --context"
        return "", ""
    if one.is_launched() and there is not None and one.instance_id not in there and age > YOUNG:
        return f"its instance is not there: {one.instance_id}", f"kubectl delete nodeclaim {one.name}"
    if one.meta.label(NODEPOOL) not in pools:
        return "its NodePool is not there", f"kubectl delete nodeclaim {one.name}"
    return "", ""


def _nodes(seen: Evidence) -> Iterator[Asset]:
    if isinstance(seen.cluster, Unseen):
        return
    for state in state_nodes(seen.cluster):
        if state.node is None or not (state.pool or state.claim is not None):
            continue
        yield _node(state.node, f"NodeClaim {state.claim.name}" if state.claim is not None else "", seen.now)


def _node(node: Node, owner: str, now: datetime) -> Asset:
    held = f", held by {', '.join(node.meta.finalizers)}" if node.meta.finalizers else ""
    why = f"it says that it is of NodePool {node.meta.label(NODEPOOL)}, and no NodeClaim has it{held}"
    age = _age(node.meta, now)
    is_young = age is not None and age <= YOUNG
    return _asset(
        "Node", node.name, owner or ("a launch that goes on" if is_young else ""), why, _gone("node", node), age
    )


def _gone(kind: str, one: Node) -> str:
    """Answer how it is made to go; what is going already has only its finalizer left."""
    if one.meta.deleted_at is None:
        return f"kubectl delete {kind} {one.name}"
    return f"""kubectl patch {kind} {one.name} --type merge -p '{{"metadata": {{"finalizers": null}}}}'"""


def _classes(seen: Evidence) -> Iterator[Asset]:
    if isinstance(seen.cluster, Unseen):
        return
    using = {one.node_class.name for one in seen.cluster.node_claims}
    for one in seen.cluster.node_classes:
        gone = one.meta.deleted_at
        is_stuck = gone is not None and seen.now - gone > SLOW and one.meta.name not in using
        why = f"it is going for over an hour, held by {', '.join(one.meta.finalizers)}, and no NodeClaim uses it"
        remedy = "see that `lifecycle` runs: joiner doctor"
        yield _asset("EC2NodeClass", one.meta.name, "" if is_stuck else "you", why, remedy, _age(one.meta, seen.now))


def _templates(seen: Evidence) -> Iterator[Asset]:
    if isinstance(seen.templates, Unseen):
        return
    for one in seen.templates:
        if one.name.startswith(f"{PREFIX}/{seen.name}/"):
            age = None if one.created_at is None else seen.now - one.created_at
            owner = "launches" if age is None or age <= SLOW or seen.is_installed is not False else ""
            why = "Joiner is not installed any more"
            remedy = f"aws ec2 delete-launch-template --launch-template-name {one.name}"
            yield _asset("LaunchTemplate", one.name, owner, why, remedy, age)


def _attached(seen: Evidence) -> Iterator[Asset]:
    if isinstance(seen.attached, Unseen) or isinstance(seen.instances, Unseen):
        return
    there = {one.instance_id for one in seen.instances if one.state in STATES}
    for one in seen.attached:
        age = None if one.since is None else seen.now - one.since
        is_young = age is not None and age <= YOUNG
        owner = f"instance {one.instance_id}" if one.instance_id else ""
        if not owner and (is_young or one.made_for in there):
            owner = f"instance {one.made_for}" if one.made_for else "a launch that goes on"
        price = one.gib * GIB_MONTH / HOURS_PER_MONTH
        yield _asset(one.kind, one.name, owner, "it is attached to nothing", _DELETE[one.kind](one.name), age, price)


_DELETE: Final[dict[str, Callable[[str], str]]] = {
    "Volume": lambda name: f"aws ec2 delete-volume --volume-id {name}",
    "NetworkInterface": lambda name: f"aws ec2 delete-network-interface --network-interface-id {name}",
    "Queue": lambda name: f"aws sqs delete-queue --queue-url {name}",
    "InstanceProfile": lambda name: f"aws iam delete-instance-profile --instance-profile-name {name}",
}


def _named(seen: Evidence) -> Iterator[Asset]:
    if isinstance(seen.named, Unseen) or seen.is_installed is None:
        return
    for one in seen.named:
        owner = "the installation" if seen.is_installed else ""
        age = None if one.since is None else seen.now - one.since
        yield _asset(one.kind, one.name, owner, "Joiner is not installed any more", _DELETE[one.kind](one.name), age)


def _commands(seen: Evidence) -> Iterator[Asset]:
    if isinstance(seen.commands, Unseen):
        return
    for name, one in seen.commands:
        if one is None:
            yield _asset("Command", name, "", "its row cannot be read", "nothing: what it was about is taken back")
        elif one.is_open:
            age = seen.now - one.proposed_at
            owner = "`disrupt`" if age <= 2 * SLOW else ""
            why = f"it is {one.phase} for over two hours: {one.why}"
            yield _asset("Command", name, owner, why, f"joiner explain command {name}", age)


_LOOKS: Final[tuple[Callable[[Evidence], Iterable[Asset]], ...]] = (
    _instances,
    _claims,
    _nodes,
    _classes,
    _templates,
    _attached,
    _named,
    _commands,
)


def _asset(
    kind: str,
    name: str,
    owner: str,
    why: str,
    remedy: str,
    age: timedelta | None = None,
    usd_per_hour: float = 0.0,
) -> Asset:
    if owner:
        return Asset(kind=kind, name=name, owner=owner, age=age, usd_per_hour=usd_per_hour)
    return Asset(kind=kind, name=name, owner="", why=why, remedy=remedy, age=age, usd_per_hour=usd_per_hour)


def _age(meta: Meta, now: datetime) -> timedelta | None:
    return None if meta.created_at is None else now - meta.created_at
