"""Laws of reading and writing."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from shared.kube.objects import node_claim_object
from shared.model.catalogue import Catalogue, InstanceType, Offering, SeenMemory
from shared.model.conditions import conditions_json
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE, ZONE_ID
from shared.model.nodes import NodeClaim, NodeClassRef
from shared.model.objects import Condition, Meta, Owner, pairs
from shared.model.requirements import Requirement, Requirements, requirements
from shared.model.resources import Resources, resources
from shared.model.taints import Taint
from shared.snapshot.catalogue import decode_catalogue, encode_catalogue, packed
from shared.snapshot.digest import snapshot_digest
from shared.snapshot.documents import cluster_from_documents
from shared.snapshot.kinds import LISTINGS
from shared.snapshot.take import Wanted, take
from tests.unit.snapshot_world import Lists, a_pod, a_pool, world

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
BY_KIND = {listing.kind: listing for listing in LISTINGS}
names = st.text("abc", min_size=1, max_size=3)
values = st.text("xyz1", max_size=3)
maps = st.dictionaries(names, values, max_size=3)
instants = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)).map(  # noqa: DTZ001
    lambda instant: instant.replace(microsecond=0)
)
spans = st.integers(0, 10**7).map(lambda seconds: timedelta(seconds=seconds))
amounts = st.dictionaries(st.sampled_from(("cpu", "memory", "pods", "a/b")), st.integers(0, 2**50)).map(resources)
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
    requirements
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
owners = st.builds(Owner, api_version=names, kind=names, name=names, uid=names, controller=st.booleans())
metas = st.builds(
    Meta,
    name=names,
    labels=maps.map(pairs),
    annotations=maps.map(pairs),
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


def read(kind: str, some: object) -> Any:
    [found], [] = BY_KIND[kind].objects([msgspec.json.decode(msgspec.json.encode(some))])
    return found


@given(claims)
def test_a_claim_that_is_written_is_read_back(claim: NodeClaim) -> None:
    assert read("NodeClaim", node_claim_object(claim)) == claim


@given(conditions)
def test_conditions_that_are_written_are_read_back(some: tuple[Condition, ...]) -> None:
    node = {"metadata": {"name": "a"}, "status": {"conditions": conditions_json(some)}}
    assert read("Node", node).conditions == some


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


def derived(name: str, sold: tuple[Offering, ...], own: Requirements) -> Requirements:
    found = {
        INSTANCE_TYPE: frozenset((name,)),
        ZONE: frozenset(one.zone for one in sold),
        ZONE_ID: frozenset(one.zone_id for one in sold if one.zone_id),
        CAPACITY_TYPE: frozenset(one.capacity_type for one in sold),
    }
    return requirements((*own, *(Requirement(key=key, values=some) for key, some in found.items())))


@st.composite
def instance_types(draw: st.DrawFn) -> InstanceType:
    name, sold = draw(names), draw(offerings)
    label = st.builds(Requirement, key=names, values=st.frozensets(values, max_size=3))
    own = requirements(draw(st.lists(label, max_size=4, unique_by=lambda item: item.key)))
    return InstanceType(
        name=name,
        requirements=derived(name, sold, own),
        capacity=draw(amounts),
        overhead=draw(amounts),
        offerings=sold,
    )


type_sets = st.lists(instance_types(), min_size=1, max_size=3, unique_by=lambda one: one.name).map(
    lambda some: tuple(sorted(some, key=lambda one: one.name))
)
catalogues = st.builds(
    Catalogue,
    region=names,
    instance_types=type_sets,
    by_node_class=st.dictionaries(names, type_sets, max_size=2).map(lambda some: tuple(sorted(some.items()))),
    priced_at=st.none() | instants,
    made_at=st.none() | instants,
    seen=st.lists(
        st.builds(SeenMemory, instance_type=names, image_id=names, memory_bytes=st.integers(1, 2**50), at=instants),
        max_size=3,
    ).map(lambda some: tuple(sorted(some))),
)


@given(catalogues)
def test_a_catalogue_that_is_written_is_read_back(catalogue: Catalogue) -> None:
    body = encode_catalogue(catalogue)
    assert decode_catalogue(body) == catalogue
    assert decode_catalogue(packed(body)) == catalogue


@given(catalogues, st.data())
def test_a_catalogue_that_is_cut_short_is_refused(catalogue: Catalogue, data: st.DataObject) -> None:
    body = data.draw(st.sampled_from((encode_catalogue, lambda one: packed(encode_catalogue(one)))))(catalogue)
    part = body[: data.draw(st.integers(0, len(body) - 1))]
    try:
        decode_catalogue(part)
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


def total_of(boxes: list[dict[str, Any]], name: str) -> int:
    return sum(one["resources"]["requests"].get(name, 0) for one in boxes)


@given(st.lists(box, max_size=4), st.lists(box, max_size=4), st.dictionaries(st.just("cpu"), st.integers(0, 3)))
def test_a_pod_never_asks_for_less_than_any_of_its_moments(
    init: list[dict[str, Any]], regular: list[dict[str, Any]], overhead: dict[str, int]
) -> None:
    spec = {"initContainers": init, "containers": regular, "overhead": overhead}
    found: Resources = read("Pod", {"metadata": {"name": "a"}, "spec": spec}).spec.requests
    sidecars = [one for one in init if one["restartPolicy"] == "Always"]
    for name, unit in (("cpu", 1000), ("memory", 1)):
        extra = overhead.get(name, 0)
        moments = [total_of(regular + sidecars, name)]
        for place, one in enumerate(init):
            before = [other for other in init[:place] if other["restartPolicy"] == "Always"]
            moments.append(total_of([*before, one], name))
        assert found[name] == unit * (max(moments) + extra)


objects = st.lists(names, unique=True, max_size=5).map(lambda some: [a_pod(name, nodeName=name) for name in some])
bad = st.sampled_from(({"metadata": {"name": "bad"}}, 3, a_pod("bad", overhead={"cpu": "x"})))
lists = st.builds(lambda some, one: [*some, one], objects, bad)


@given(lists.flatmap(lambda some: st.tuples(st.just(some), st.permutations(some))), st.integers(1, 3))
def test_the_order_of_a_list_changes_nothing(orders: tuple[list[object], list[object]], per_page: int) -> None:
    wanted = Wanted(lists=("pods", "node_pools"))
    pools = [a_pool("a"), a_pool("b")]
    one = take(world(Lists({"Pod": orders[0], "NodePool": pools})), wanted)
    other = take(world(Lists({"Pod": orders[1], "NodePool": pools[::-1]}, per_page)), wanted)
    assert one == other
    assert snapshot_digest(one) == snapshot_digest(other)
    assert len(one.problems) == 1
    assert len(one.pods) == len(orders[0]) - 1


@given(objects.flatmap(lambda some: st.tuples(st.just(some), st.permutations(some))))
def test_the_order_of_documents_changes_nothing(orders: tuple[list[dict[str, Any]], list[dict[str, Any]]]) -> None:
    one, other = (
        cluster_from_documents([{"apiVersion": "v1", "kind": "Pod"} | pod for pod in order], NOW) for order in orders
    )
    assert one == other
    assert len(one.pods) == len(orders[0])
