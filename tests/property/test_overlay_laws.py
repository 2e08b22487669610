"""Laws of NodeOverlays and static pools: the order of lists does not matter, and what is done is done."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.model.action import CreateNodeClaim, DeleteObject
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from shared.model.objects import Meta
from shared.model.overlays import Adjustment, NodeOverlay
from shared.model.resources import Resources
from shared.scheduling.overlays import evaluate
from shared.scheduling.static import decide_static
from tests.unit.catalogues import SIZES, needs, pool, world

AMOUNTS = st.decimals(min_value=-200, max_value=200, places=3)
ADJUSTMENTS = st.one_of(
    st.none(),
    st.builds(Adjustment, kind=st.just("absolute"), amount=st.decimals(min_value=0, max_value=9, places=2)),
    st.builds(Adjustment, kind=st.sampled_from(("add", "percent")), amount=AMOUNTS),
)
REQUIREMENTS = st.sampled_from(
    (
        needs(),
        needs((ZONE, "In", ["a"])),
        needs((ZONE, "NotIn", ["a"])),
        needs((INSTANCE_TYPE, "In", ["m.02", "m.08"])),
        needs((CAPACITY_TYPE, "In", ["spot"])),
    )
)
CAPACITIES = st.sampled_from(
    (Resources(), Resources(amounts=(("a/x", 1),)), Resources(amounts=(("a/x", 2), ("a/y", 3))))
)
OVERLAYS = st.lists(
    st.builds(
        NodeOverlay,
        meta=st.sampled_from("abcdef").map(lambda name: Meta(name=name)),
        requirements=REQUIREMENTS,
        adjustment=ADJUSTMENTS,
        capacity=CAPACITIES,
        weight=st.integers(0, 2),
    ),
    max_size=6,
    unique_by=lambda one: one.name,
)


@given(OVERLAYS, st.randoms(use_true_random=False))
def test_the_order_of_overlays_and_pools_does_not_matter(overlays: list[NodeOverlay], chance: object) -> None:
    pools = [pool(), pool("other")]
    one = evaluate(world(node_overlays=tuple(overlays), node_pools=tuple(pools)))
    for some in (overlays, pools):
        chance.shuffle(some)  # type: ignore[attr-defined] # hypothesis' own Random
    other = evaluate(world(node_overlays=tuple(overlays), node_pools=tuple(pools)))
    assert (one.catalogue, one.verdicts) == (other.catalogue, other.verdicts)


@given(OVERLAYS)
def test_a_price_is_never_below_zero_and_types_stay_what_they_are(overlays: list[NodeOverlay]) -> None:
    catalogue = evaluate(world(node_overlays=tuple(overlays))).catalogue
    assert catalogue is not None
    found = catalogue.types_for("default", "default")
    assert [one.name for one in found] == [one.name for one in SIZES]
    for one, before in zip(found, SIZES, strict=True):
        assert [(some.zone, some.capacity_type) for some in one.offerings] == [
            (some.zone, some.capacity_type) for some in before.offerings
        ]
        assert all(some.price_usd_per_hour >= 0 for some in one.offerings)
        assert one.capacity["cpu"] == before.capacity["cpu"]


@given(OVERLAYS)
def test_an_overlay_that_is_not_used_might_as_well_not_be_there(overlays: list[NodeOverlay]) -> None:
    all_ = evaluate(world(node_overlays=tuple(overlays)))
    used = tuple(one for one in overlays if not all_.verdicts[one.name][0])
    assert evaluate(world(node_overlays=used)).catalogue == all_.catalogue


@given(st.integers(0, 9), st.integers(0, 9), st.none() | st.integers(0, 9))
def test_a_static_pool_is_content_after_one_decision(before: int, after: int, nodes: int | None) -> None:
    limits = None if nodes is None else Resources(amounts=(("nodes", nodes),))
    cluster = world(node_pools=(pool(replicas=before, limits=limits),))
    for replicas in (before, after):
        cluster = replace(cluster, node_pools=(pool(replicas=replicas, limits=limits),))
        actions = decide_static(cluster)
        made = tuple(one.claim for one in actions if isinstance(one, CreateNodeClaim))
        gone = {one.name for one in actions if isinstance(one, DeleteObject)}
        kept = tuple(one for one in cluster.node_claims if one.name not in gone)
        cluster = replace(cluster, node_claims=(*kept, *made))
        names = [claim.name for claim in cluster.node_claims]
        assert len(set(names)) == len(names)
        assert decide_static(cluster) == ()
    assert len(cluster.node_claims) == (after if nodes is None else min(after, nodes))


@given(AMOUNTS)
def test_a_change_by_nothing_is_no_change(price: Decimal) -> None:
    some = float(abs(price))
    for kind in ("add", "percent"):
        assert Adjustment(kind=kind, amount=Decimal(0)).of(some) == some
