"""Laws of NodeOverlays and static pools: the order of lists does not matter, and what is done is done."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.decide.provisioning.static_capacity import decide_static_capacity
from shared.decide.scheduling.templates.node_overlays import evaluate_overlays
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from shared.model.core.metadata import ObjectMeta
from shared.model.core.resources import Resources
from shared.model.decisions.action import CreateNodeClaim, DeleteObject
from shared.model.karpenter.node_overlay import NodeOverlay, PriceAdjustment
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import SIZES, make_cluster_snapshot, make_node_pool, make_requirements

AMOUNTS = st.decimals(min_value=-200, max_value=200, places=3)
ADJUSTMENTS = st.one_of(
    st.none(),
    st.builds(PriceAdjustment, kind=st.just("absolute"), amount=st.decimals(min_value=0, max_value=9, places=2)),
    st.builds(PriceAdjustment, kind=st.sampled_from(("add", "percent")), amount=AMOUNTS),
)
REQUIREMENTS = st.sampled_from(
    (
        make_requirements(),
        make_requirements((ZONE, "In", ["a"])),
        make_requirements((ZONE, "NotIn", ["a"])),
        make_requirements((INSTANCE_TYPE, "In", ["m.02", "m.08"])),
        make_requirements((CAPACITY_TYPE, "In", ["spot"])),
    )
)
CAPACITIES = st.sampled_from(
    (Resources(), Resources(amounts=(("a/x", 1),)), Resources(amounts=(("a/x", 2), ("a/y", 3))))
)
OVERLAYS = st.lists(
    st.builds(
        NodeOverlay,
        meta=st.sampled_from("abcdef").map(lambda name: ObjectMeta(name=name)),
        requirements=REQUIREMENTS,
        adjustment=ADJUSTMENTS,
        capacity=CAPACITIES,
        weight=st.integers(0, 2),
    ),
    max_size=6,
    unique_by=lambda one: one.name,
)


@given(OVERLAYS, st.randoms(use_true_random=False))
def test_node_overlay_and_nodepool_order_does_not_change_the_evaluation(
    overlays: list[NodeOverlay], chance: object
) -> None:
    pools = [make_node_pool(), make_node_pool("other")]
    first_evaluation = evaluate_overlays(make_cluster_snapshot(node_overlays=tuple(overlays), node_pools=tuple(pools)))
    for items in (overlays, pools):
        chance.shuffle(items)  # type: ignore[attr-defined] # hypothesis' own Random
    second_evaluation = evaluate_overlays(make_cluster_snapshot(node_overlays=tuple(overlays), node_pools=tuple(pools)))
    assert (first_evaluation.catalog, first_evaluation.verdicts) == (
        second_evaluation.catalog,
        second_evaluation.verdicts,
    )


@given(OVERLAYS)
def test_overlaid_prices_are_never_negative_and_instance_types_are_unchanged(overlays: list[NodeOverlay]) -> None:
    catalogue = evaluate_overlays(make_cluster_snapshot(node_overlays=tuple(overlays))).catalog
    assert catalogue is not None
    instance_types = catalogue.get_instance_types("default", "default")
    assert [listed_type.name for listed_type in instance_types] == [listed_type.name for listed_type in SIZES]
    for instance_type, before in zip(instance_types, SIZES, strict=True):
        assert [(offering.zone, offering.capacity_type) for offering in instance_type.offerings] == [
            (offering.zone, offering.capacity_type) for offering in before.offerings
        ]
        assert all(offering.price_usd_per_hour >= 0 for offering in instance_type.offerings)
        assert instance_type.capacity["cpu"] == before.capacity["cpu"]


@given(OVERLAYS)
def test_removing_an_unused_node_overlay_does_not_change_the_catalog(overlays: list[NodeOverlay]) -> None:
    evaluation = evaluate_overlays(make_cluster_snapshot(node_overlays=tuple(overlays)))
    used = tuple(overlay for overlay in overlays if not evaluation.verdicts[overlay.name][0])
    assert evaluate_overlays(make_cluster_snapshot(node_overlays=used)).catalog == evaluation.catalog


@given(st.integers(0, 9), st.integers(0, 9), st.none() | st.integers(0, 9))
def test_static_nodepool_reaches_its_replicas_in_one_decision(before: int, after: int, nodes: int | None) -> None:
    limits = None if nodes is None else Resources(amounts=(("nodes", nodes),))
    cluster = make_cluster_snapshot(node_pools=(make_node_pool(replicas=before, limits=limits),))
    for replicas in (before, after):
        cluster = replace(cluster, node_pools=(make_node_pool(replicas=replicas, limits=limits),))
        actions = decide_static_capacity(ClusterState(cluster))
        created_claims = tuple(action.claim for action in actions if isinstance(action, CreateNodeClaim))
        deleted_names = {action.name for action in actions if isinstance(action, DeleteObject)}
        remaining_claims = tuple(
            node_claim for node_claim in cluster.node_claims if node_claim.name not in deleted_names
        )
        cluster = replace(cluster, node_claims=(*remaining_claims, *created_claims))
        names = [claim.name for claim in cluster.node_claims]
        assert len(set(names)) == len(names)
        assert decide_static_capacity(ClusterState(cluster)) == ()
    assert len(cluster.node_claims) == (after if nodes is None else min(after, nodes))


@given(AMOUNTS)
def test_zero_price_adjustment_keeps_the_price(price: Decimal) -> None:
    price_usd_per_hour = float(abs(price))
    for kind in ("add", "percent"):
        assert PriceAdjustment(kind=kind, amount=Decimal(0)).compute_price(price_usd_per_hour) == price_usd_per_hour
