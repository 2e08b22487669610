"""Which claims have drifted today, and what is written on them. A new image is tried by one node first, if asked for.

The canary, for `joiner.dev/image-soak`: while no living claim of the NodePool has one of the images that a claim ought
to have, one claim drifts for it, such that nothing forbids its disruption if there is one; once one has, the others
drift when it was fit for use for so long.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

import msgspec
from msgspec.structs import replace

from shared.disruption.candidates import pods_in_the_way
from shared.disruption.drifting import DRIFTED, IMAGE, Drifting, drift_of, fitting_images, is_recovered
from shared.disruption.knobs import knobs_of
from shared.disruption.prices import PriceList
from shared.lifecycle.events import about
from shared.lifecycle.guards import guards_of
from shared.model.action import Action, PatchStatus
from shared.model.cluster import Cluster
from shared.model.conditions import conditions_json, with_condition, without_condition
from shared.model.labels import DO_NOT_DISRUPT, IMAGE_SOAK, NODEPOOL, VOLUNTARY_DISRUPTION
from shared.model.nodepools import NodePool
from shared.model.nodes import NodeClaim
from shared.model.objects import Meta, condition, is_true
from shared.model.state import pods_by_node
from shared.model.units import instant_text


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that is compared with what is asked for today."""

    one: Drifting
    reason: str | None
    """"": it has not drifted; None: that cannot be told."""


class Canary(msgspec.Struct, frozen=True, kw_only=True):
    """A new image that a NodePool's nodes are not all to have yet."""

    held: frozenset[str]
    """Claims that wait for it."""
    words: str


def drifts(cluster: Cluster) -> tuple[Drift, ...]:
    """Compare every claim that is ours and stays; sorted by name. What is not launched has not drifted."""
    return _drifts(cluster)[0]


def recovered(cluster: Cluster) -> frozenset[str]:
    """Answer the names of claims that are called drifted, and are seen to be as they ought to be."""
    if not any(is_true(one.conditions, DRIFTED) for one in cluster.node_claims):
        return frozenset()
    return frozenset(one.claim.name for one in _compared(cluster) if is_recovered(one))


def describe_drift(cluster: Cluster) -> tuple[Action, ...]:
    """Write the condition of every claim that has another now, and tell NodePools whose nodes wait for a canary."""
    compared, canaries = _drifts(cluster)
    writes = (_write(one.one.claim, one.reason, cluster.taken_at) for one in compared if one.reason is not None)
    said = (about("NodePool", pool.meta, "ImageCanary", canary.words, cluster.taken_at) for pool, canary in canaries)
    return (*(action for some in writes for action in some), *said)


def _drifts(cluster: Cluster) -> tuple[tuple[Drift, ...], tuple[tuple[NodePool, Canary], ...]]:
    compared = list(_compared(cluster))
    canaries = tuple(_canaries(compared, cluster))
    held = frozenset(name for _, canary in canaries for name in canary.held)
    return tuple(_judged(replace(one, holds_image=one.claim.name in held)) for one in compared), canaries


def _compared(cluster: Cluster) -> Iterator[Drifting]:
    pools = {one.name: one for one in cluster.node_pools if one.node_class.is_supported()}
    classes = {one.name: one for one in cluster.node_classes}
    instances = {one.instance_id: one for one in cluster.instances or ()}
    asked = {one.provider_id for one in cluster.nodes if _asks(one.meta)}
    prices = PriceList(cluster.catalogue)
    for claim in sorted(cluster.node_claims, key=lambda one: one.name):
        pool = pools.get(claim.meta.label(NODEPOOL))
        if pool is not None and not claim.is_deleting():
            yield Drifting(
                claim=claim,
                pool=pool,
                node_class=classes.get(claim.node_class.name),
                instance=instances.get(claim.instance_id),
                types=prices.types(claim.node_class.name, pool.name),
                now=cluster.taken_at,
                is_asked=_asks(claim.meta) or (claim.provider_id in asked and bool(claim.provider_id)),
            )


def _asks(meta: Meta) -> bool:
    return meta.annotation(VOLUNTARY_DISRUPTION) == "drifted"


def _judged(one: Drifting) -> Drift:
    return Drift(one=one, reason=drift_of(one) if is_true(one.claim.conditions, "Launched") else "")


def _canaries(compared: Iterable[Drifting], cluster: Cluster) -> Iterator[tuple[NodePool, Canary]]:
    by_pool: dict[str, list[Drifting]] = {}
    for one in compared:
        if knobs_of(one.pool).image_soak:
            by_pool.setdefault(one.pool.name, []).append(one)
    for _, mine in sorted(by_pool.items()):
        outdated: dict[frozenset[str], list[NodeClaim]] = {}
        for one in mine:
            if _judged(one).reason == IMAGE:
                outdated.setdefault(frozenset(fitting_images(one)), []).append(one.claim)
        for images, claims in sorted(outdated.items(), key=lambda item: sorted(item[0])):
            canary = _canary(images, claims, [one.claim for one in mine], mine[0].pool, cluster)
            if canary is not None:
                yield mine[0].pool, canary


def _canary(
    images: frozenset[str], outdated: list[NodeClaim], every: list[NodeClaim], pool: NodePool, cluster: Cluster
) -> Canary | None:
    """Answer who of *outdated* waits for *images* to prove themselves; None: they have."""
    soak, names = knobs_of(pool).image_soak, frozenset(one.name for one in outdated)
    fresh = [one for one in every if one.image_id in images]
    since = min((at for one in fresh if (at := _fit_since(one)) is not None), default=None)
    if since is not None and since + soak <= cluster.taken_at:
        return None
    what = f"image {min(images)} (annotation {IMAGE_SOAK})"
    if since is not None:
        until = instant_text(since + soak)
        return Canary(held=names, words=f"{len(outdated)} nodes keep their image until {until}: one tries {what}")
    if fresh:
        return Canary(held=names, words=f"{len(outdated)} nodes keep their image until one is fit for use with {what}")
    first = min(outdated, key=_Reluctance(cluster))
    others = names - {first.name}
    words = f"{first.name} is replaced first, {len(others)} nodes keep their image: one is to try {what}"
    return Canary(held=others, words=words)


class _Reluctance:
    """Sorts claims: such that may be disrupted first, then the one that was chosen before, then by name."""

    def __init__(self, cluster: Cluster) -> None:
        self._pods, self._guards = pods_by_node(cluster.pods), guards_of(cluster.budgets)
        self._nodes: Mapping[str, str] = {one.name: one.meta.annotation(DO_NOT_DISRUPT) for one in cluster.nodes}
        self._now = cluster.taken_at

    def __call__(self, claim: NodeClaim) -> tuple[bool, bool, str]:
        pods = self._pods.get(claim.node_name, ())
        is_kept = self._nodes.get(claim.node_name) == "true" or pods_in_the_way(pods, self._guards, self._now)
        return bool(is_kept), not is_true(claim.conditions, DRIFTED), claim.name


def _fit_since(claim: NodeClaim) -> datetime | None:
    known = condition(claim.conditions, "Initialized")
    return known.since if known is not None and known.status == "True" else None


def _write(claim: NodeClaim, reason: str, now: datetime) -> Iterator[Action]:
    old = condition(claim.conditions, DRIFTED)
    if (old.reason if old is not None and old.status == "True" else "") == reason and (reason or old is None):
        return
    some = without_condition(claim.conditions, DRIFTED)
    if reason:
        some = with_condition(claim.conditions, DRIFTED, "True", reason, reason, now, claim.meta.generation)
    yield PatchStatus(
        kind="NodeClaim",
        name=claim.name,
        resource_version=claim.meta.resource_version,
        status=msgspec.json.encode({"conditions": conditions_json(some)}).decode(),
        why=f"it has drifted: {reason}" if reason else "it has not drifted any more",
    )
