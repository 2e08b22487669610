"""Laws of reading and writing."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from shared.model.cloud_provider.instance_type import Catalog, InstanceType, ObservedMemory, Offering
from shared.model.core.conditions import encode_conditions
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE, ZONE_ID
from shared.model.core.metadata import Condition, ObjectMeta, OwnerReference, build_pairs
from shared.model.core.requirements import Requirement, Requirements, build_requirements
from shared.model.core.resources import Resources, build_resources
from shared.model.core.taints import Taint
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.store.catalog_format import compress_body, decode_catalog, encode_catalog
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS
from shared.take.manifests.snapshot_from_manifests import build_snapshot_from_documents
from shared.take.snapshot import SnapshotRequest, take_snapshot
from shared.wire.encode.node_claim import encode_node_claim
from tests.support.snapshot_world import Lists, compute_snapshot_digest, make_node_pool, make_pod, make_world

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
BY_KIND = {listing.kind: listing for listing in RESOURCE_KINDS}
names = st.text("abc", min_size=1, max_size=3)
values = st.text("xyz1", max_size=3)
maps = st.dictionaries(names, values, max_size=3)
instants = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)).map(  # noqa: DTZ001
    lambda instant: instant.replace(microsecond=0)
)
spans = st.integers(0, 10**7).map(lambda seconds: timedelta(seconds=seconds))
amounts = st.dictionaries(st.sampled_from(("cpu", "memory", "pods", "a/b")), st.integers(0, 2**50)).map(build_resources)
taints = st.builds(Taint, key=names, effect=st.sampled_from(("NoSchedule", "NoExecute")), value=values)
taint_sets = st.frozensets(taints, max_size=3).map(lambda some: tuple(sorted(some)))
finite = st.builds(
    Requirement, key=names, values=st.frozensets(values, max_size=3), min_values=st.none() | st.integers(1, 9)
)
open_ended = st.builds(
    Requirement,
    key=names,
    complement=st.just(value=True),
    gte=st.none() | st.integers(0, 9),
    lte=st.none() | st.integers(9, 20),
)
excluding = st.builds(
    Requirement, key=names, complement=st.just(value=True), values=st.frozensets(values, min_size=1, max_size=3)
)
requirement_sets = st.lists(finite | open_ended | excluding, max_size=4, unique_by=lambda item: item.key).map(
    build_requirements
)
conditions = st.lists(
    st.builds(
        Condition,
        type=names,
        status=st.sampled_from(("True", "False", "Unknown")),
        reason=names,
        message=values,
        since=instants,
        observed_generation=st.integers(0, 5),
    ),
    max_size=3,
    unique_by=lambda one: one.type,
).map(lambda some: tuple(sorted(some, key=lambda one: one.type)))
owners = st.builds(OwnerReference, api_version=names, kind=names, name=names, uid=names, controller=st.booleans())
metas = st.builds(
    ObjectMeta,
    name=names,
    labels=maps.map(build_pairs),
    annotations=maps.map(build_pairs),
    finalizers=st.lists(names, max_size=2).map(tuple),
    owners=st.lists(owners, max_size=2).map(tuple),
)
claims = st.builds(
    NodeClaim,
    meta=metas,
    node_class=st.builds(NodeClassRef, name=names),
    requirements=requirement_sets,
    requests=amounts,
    taints=taint_sets,
    startup_taints=taint_sets,
    expire_after=st.none() | spans,
    termination_grace_period=st.none() | spans,
)


def read_object(kind: str, manifest: object) -> Any:
    [converted], [] = BY_KIND[kind].convert_objects([msgspec.json.decode(msgspec.json.encode(manifest))])
    return converted


@given(claims)
def test_encoded_nodeclaim_decodes_to_the_same_nodeclaim(claim: NodeClaim) -> None:
    assert read_object("NodeClaim", encode_node_claim(claim)) == claim


@given(conditions)
def test_encoded_conditions_decode_to_the_same_conditions(node_conditions: tuple[Condition, ...]) -> None:
    node = {"metadata": {"name": "a"}, "status": {"conditions": encode_conditions(node_conditions)}}
    assert read_object("Node", node).conditions == node_conditions


offerings = st.lists(
    st.builds(
        Offering,
        zone=names,
        capacity_type=st.sampled_from(("spot", "on-demand", "reserved")),
        price_usd_per_hour=st.floats(0, 99),
        available=st.booleans(),
        zone_id=values,
        reservation_id=values,
        reservation_capacity=st.integers(0, 5),
        reservation_type=values,
        reservation_interruptible=st.booleans(),
        is_estimated=st.booleans(),
    ),
    max_size=4,
).map(lambda some: tuple(sorted(some)))


def derive_requirements(name: str, sold: tuple[Offering, ...], base_requirements: Requirements) -> Requirements:
    values_by_key = {
        INSTANCE_TYPE: frozenset((name,)),
        ZONE: frozenset(offering.zone for offering in sold),
        ZONE_ID: frozenset(offering.zone_id for offering in sold if offering.zone_id),
        CAPACITY_TYPE: frozenset(offering.capacity_type for offering in sold),
    }
    return build_requirements(
        (
            *base_requirements,
            *(Requirement(key=key, values=allowed_values) for key, allowed_values in values_by_key.items()),
        )
    )


@st.composite
def generate_instance_type(draw: st.DrawFn) -> InstanceType:
    name, sold = draw(names), draw(offerings)
    label = st.builds(Requirement, key=names, values=st.frozensets(values, max_size=3))
    base_requirements = build_requirements(draw(st.lists(label, max_size=4, unique_by=lambda item: item.key)))
    return InstanceType(
        name=name,
        requirements=derive_requirements(name, sold, base_requirements),
        capacity=draw(amounts),
        overhead=draw(amounts),
        offerings=sold,
    )


type_sets = st.lists(generate_instance_type(), min_size=1, max_size=3, unique_by=lambda one: one.name).map(
    lambda some: tuple(sorted(some, key=lambda one: one.name))
)
catalogues = st.builds(
    Catalog,
    region=names,
    instance_types=type_sets,
    by_node_class=st.dictionaries(names, type_sets, max_size=2).map(lambda some: tuple(sorted(some.items()))),
    priced_at=st.none() | instants,
    built_at=st.none() | instants,
    observed_memory=st.lists(
        st.builds(ObservedMemory, instance_type=names, image_id=names, memory_bytes=st.integers(1, 2**50), at=instants),
        max_size=3,
    ).map(lambda some: tuple(sorted(some))),
)


@given(catalogues)
def test_encoded_catalog_decodes_to_the_same_catalog(catalogue: Catalog) -> None:
    body = encode_catalog(catalogue)
    assert decode_catalog(body) == catalogue
    assert decode_catalog(compress_body(body)) == catalogue


@given(catalogues, st.data())
def test_truncated_catalog_is_rejected(catalogue: Catalog, data: st.DataObject) -> None:
    body = data.draw(st.sampled_from((encode_catalog, lambda one: compress_body(encode_catalog(one)))))(catalogue)
    part = body[: data.draw(st.integers(0, len(body) - 1))]
    try:
        decode_catalog(part)
    except ValueError:
        return
    raise AssertionError(part)


box = st.fixed_dictionaries(
    {
        "name": names,
        "resources": st.fixed_dictionaries(
            {"requests": st.dictionaries(st.sampled_from(("cpu", "memory")), st.integers(0, 9))}
        ),
        "restartPolicy": st.sampled_from(("", "Always")),
    }
)


def sum_requests(boxes: list[dict[str, Any]], name: str) -> int:
    return sum(container["resources"]["requests"].get(name, 0) for container in boxes)


@given(st.lists(box, max_size=4), st.lists(box, max_size=4), st.dictionaries(st.just("cpu"), st.integers(0, 3)))
def test_pod_requests_cover_every_phase_of_its_containers(
    init: list[dict[str, Any]], regular: list[dict[str, Any]], overhead: dict[str, int]
) -> None:
    spec = {"initContainers": init, "containers": regular, "overhead": overhead}
    requests: Resources = read_object("Pod", {"metadata": {"name": "a"}, "spec": spec}).spec.requests
    sidecars = [sidecar for sidecar in init if sidecar["restartPolicy"] == "Always"]
    for name, unit in (("cpu", 1000), ("memory", 1)):
        extra = overhead.get(name, 0)
        moments = [sum_requests(regular + sidecars, name)]
        for place, container in enumerate(init):
            before = [earlier for earlier in init[:place] if earlier["restartPolicy"] == "Always"]
            moments.append(sum_requests([*before, container], name))
        assert requests[name] == unit * (max(moments) + extra)


objects = st.lists(names, unique=True, max_size=5).map(lambda some: [make_pod(name, nodeName=name) for name in some])
bad = st.sampled_from(({"metadata": {"name": "bad"}}, 3, make_pod("bad", overhead={"cpu": "x"})))
lists = st.builds(lambda some, one: [*some, one], objects, bad)


@given(lists.flatmap(lambda some: st.tuples(st.just(some), st.permutations(some))), st.integers(1, 3))
def test_list_and_page_order_do_not_change_the_snapshot(
    orders: tuple[list[object], list[object]], per_page: int
) -> None:
    request = SnapshotRequest(lists=("pods", "node_pools"))
    pools = [make_node_pool("a"), make_node_pool("b")]
    first_snapshot = take_snapshot(make_world(Lists({"Pod": orders[0], "NodePool": pools})), request)
    second_snapshot = take_snapshot(make_world(Lists({"Pod": orders[1], "NodePool": pools[::-1]}, per_page)), request)
    assert first_snapshot == second_snapshot
    assert compute_snapshot_digest(first_snapshot) == compute_snapshot_digest(second_snapshot)
    assert len(first_snapshot.problems) == 1
    assert len(first_snapshot.pods) == len(orders[0]) - 1


@given(objects.flatmap(lambda some: st.tuples(st.just(some), st.permutations(some))))
def test_document_order_does_not_change_the_snapshot(orders: tuple[list[dict[str, Any]], list[dict[str, Any]]]) -> None:
    first_snapshot, second_snapshot = (
        build_snapshot_from_documents([{"apiVersion": "v1", "kind": "Pod"} | pod for pod in order], NOW)
        for order in orders
    )
    assert first_snapshot == second_snapshot
    assert len(first_snapshot.pods) == len(orders[0])
