"""What may be done with a pod, and what a PodDisruptionBudget says to it."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from shared.model.catalogue import Offering, UnavailableOffering
from shared.model.labels import ARCH, DO_NOT_DISRUPT, POD_DELETION_COST
from shared.model.objects import Condition, Meta, Owner
from shared.model.pods import HostPort, Pod, PodDisruptionBudget, PodSpec, strict_requirements
from shared.model.requirements import requirement, requirements
from shared.model.selectors import EVERYTHING, selector
from shared.model.taints import Toleration

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
GIVEN_UP = Condition(type="PodScheduled", status="False", reason="Unschedulable")
DAEMON = Owner(api_version="apps/v1", kind="DaemonSet", name="d", uid="u")
STATEFUL = Owner(api_version="apps/v1", kind="StatefulSet", name="s", uid="u")
STATIC = Owner(api_version="v1", kind="Node", name="n", uid="u")
STAYS = PodSpec(tolerations=(Toleration(operator="Exists"),))


def pod(
    *,
    owner: Owner | None = None,
    deleted: timedelta | None = None,
    annotations: tuple[tuple[str, str], ...] = (),
    labels: tuple[tuple[str, str], ...] = (),
    **parts: object,
) -> Pod:
    meta = Meta(
        name="cart",
        namespace="shop",
        owners=(owner,) if owner else (),
        deleted_at=None if deleted is None else NOW - deleted,
        annotations=annotations,
        labels=labels,
    )
    return msgspec.structs.replace(Pod(meta=meta, spec=PodSpec()), **parts)


def protected(value: str, started_at: datetime | None = None) -> Pod:
    return pod(annotations=((DO_NOT_DISRUPT, value),), started_at=started_at)


WAITING = pod(conditions=(GIVEN_UP,))
DELETED = pod(deleted=timedelta())


@pytest.mark.parametrize(
    ("one", "is_provisionable"),
    [
        (WAITING, True),
        (pod(), False),
        (pod(conditions=(Condition(type="PodScheduled", status="False", reason="SchedulingGated"),)), False),
        (pod(conditions=(GIVEN_UP,), node_name="ip-1"), False),
        (pod(conditions=(GIVEN_UP,), nominated_node_name="ip-1"), False),
        (pod(conditions=(GIVEN_UP,), owner=DAEMON), False),
        (pod(conditions=(GIVEN_UP,), owner=STATIC), False),
        (pod(conditions=(GIVEN_UP,), deleted=timedelta()), True),
    ],
)
def test_whom_a_node_may_be_made_for(one: Pod, *, is_provisionable: bool) -> None:
    assert one.is_provisionable() is is_provisionable


@pytest.mark.parametrize(
    ("one", "is_reschedulable"),
    [
        (pod(), True),
        (DELETED, False),
        (pod(owner=STATEFUL, deleted=timedelta()), True),
        (pod(phase="Succeeded"), False),
        (pod(phase="Failed"), False),
        (pod(owner=DAEMON), False),
        (pod(owner=STATIC), False),
    ],
)
def test_who_would_need_another_place(one: Pod, *, is_reschedulable: bool) -> None:
    assert one.is_reschedulable() is is_reschedulable


HOUR_AGO = NOW - timedelta(hours=1)


@pytest.mark.parametrize(
    ("one", "is_protected"),
    [
        (pod(), False),
        (protected("true"), True),
        (protected("false"), False),
        (protected("True"), False),
        (protected(""), False),
        (protected("2h", HOUR_AGO), True),
        (protected("1h", HOUR_AGO), False),
        (protected("30m", HOUR_AGO), False),
        (protected("30m"), True),
        (protected("0s"), False),
        (protected("-1h"), False),
        (protected("soon"), False),
        (protected("99999999999h"), False),
    ],
)
def test_how_long_a_pod_is_protected(one: Pod, *, is_protected: bool) -> None:
    assert one.is_protected(NOW) is is_protected
    assert one.is_disruptable(NOW) is not is_protected
    assert one.is_evictable(NOW) is not is_protected


def test_a_pod_that_has_ended_or_is_ending_protects_nothing() -> None:
    for one in (pod(phase="Failed"), DELETED):
        assert one.is_disruptable(NOW)
        assert not one.is_evictable(NOW)


@pytest.mark.parametrize(
    ("one", "is_evictable", "is_waited_for"),
    [
        (pod(), True, True),
        (pod(spec=STAYS), False, False),
        (pod(owner=STATIC), False, False),
        (pod(owner=DAEMON), True, True),
        (protected("true"), False, True),
        (pod(deleted=timedelta(seconds=60)), False, True),
        (pod(deleted=timedelta(seconds=61)), False, False),
        (pod(deleted=-timedelta(seconds=30)), False, True),
        (pod(phase="Succeeded"), False, False),
    ],
)
def test_whom_a_drain_evicts_and_whom_it_waits_for(one: Pod, *, is_evictable: bool, is_waited_for: bool) -> None:
    assert one.is_evictable(NOW) is is_evictable
    assert one.is_waiting_eviction(NOW) is is_waited_for


@pytest.mark.parametrize(
    ("cost", "priority", "eviction_cost"),
    [
        ("", 0, 1.0),
        ("134217728", 0, 2.0),
        ("-134217728", 0, 0.0),
        ("", 2**25, 2.0),
        ("1e12", 0, 10.0),
        ("-1e12", 0, -10.0),
        ("nan", 0, 1.0),
        ("inf", 0, 10.0),
        ("dear", 0, 1.0),
    ],
)
def test_how_much_it_hurts_to_move_a_pod(cost: str, priority: int, eviction_cost: float) -> None:
    annotations = ((POD_DELETION_COST, cost),) if cost else ()
    assert pod(annotations=annotations, priority=priority).eviction_cost() == eviction_cost


def test_critical_pods_are_left_for_last() -> None:
    assert pod(priority_class="system-node-critical").is_critical()
    assert not pod(priority_class="high").is_critical()


def test_a_name_has_its_namespace() -> None:
    assert pod().name == "shop/cart"


@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        (HostPort(port=80), HostPort(port=80), True),
        (HostPort(port=80), HostPort(port=81), False),
        (HostPort(port=80), HostPort(port=80, protocol="UDP"), False),
        (HostPort(port=80, ip="10.0.0.1"), HostPort(port=80), True),
        (HostPort(port=80, ip="10.0.0.1"), HostPort(port=80, ip="::"), True),
        (HostPort(port=80, ip="10.0.0.1"), HostPort(port=80, ip="10.0.0.2"), False),
        (HostPort(port=80, ip="10.0.0.1"), HostPort(port=80, ip="10.0.0.1"), True),
    ],
)
def test_which_host_ports_conflict(one: HostPort, other: HostPort, *, conflict: bool) -> None:
    assert one.conflicts(other) is other.conflicts(one) is conflict


def budget(**parts: object) -> PodDisruptionBudget:
    whole = PodDisruptionBudget(meta=Meta(name="b", namespace="shop"), selector=EVERYTHING, disruptions_allowed=1)
    return msgspec.structs.replace(whole, **parts)


def test_a_budget_guards_pods_of_its_namespace_that_it_selects() -> None:
    cart = pod(labels=(("app", "cart"),))
    assert budget().selects(cart)
    assert budget(selector=selector({"app": "cart"})).selects(cart)
    assert not budget(selector=selector({"app": "web"})).selects(cart)
    assert not budget(selector=None).selects(cart)
    assert not budget(meta=Meta(name="b", namespace="bank")).selects(cart)
    assert budget().name == "shop/b"


@pytest.mark.parametrize(
    ("one", "never"),
    [
        (budget(), False),
        (budget(max_unavailable="0"), True),
        (budget(max_unavailable="0%"), True),
        (budget(max_unavailable="1"), False),
        (budget(min_available="100%"), True),
        (budget(min_available="100"), False),
    ],
)
def test_which_budgets_can_never_allow_a_disruption(one: PodDisruptionBudget, *, never: bool) -> None:
    assert one.is_fully_blocking() is never


def test_strict_requirements_are_the_selector_and_one_term() -> None:
    first, second = (requirements([requirement("a", "In", [value])]) for value in "xy")
    spec = PodSpec(node_selector=((ARCH, "arm64"),), required_terms=(first, second))
    own = requirements([requirement(ARCH, "In", ["arm64"])])
    assert strict_requirements(spec) == own & first
    assert strict_requirements(spec, 1) == own & second
    assert strict_requirements(PodSpec(node_selector=((ARCH, "arm64"),))) == own
    assert strict_requirements(PodSpec()) == requirements([])


def test_a_selector_that_contradicts_itself_is_satisfied_by_nothing() -> None:
    spec = PodSpec(node_selector=((ARCH, "amd64"), (ARCH, "arm64")))
    assert strict_requirements(spec)[ARCH].operator == "DoesNotExist"


@pytest.mark.parametrize(
    ("refused", "covers"),
    [
        (UnavailableOffering(capacity_type="spot", instance_type="m5.large", zone="a", until=NOW + timedelta(1)), True),
        (UnavailableOffering(capacity_type="spot", instance_type="m5.large", zone="a", until=NOW), False),
        (UnavailableOffering(capacity_type="spot", until=NOW + timedelta(1)), True),
        (UnavailableOffering(capacity_type="on-demand", until=NOW + timedelta(1)), False),
        (UnavailableOffering(capacity_type="spot", zone="b", until=NOW + timedelta(1)), False),
        (UnavailableOffering(capacity_type="spot", instance_type="m5.xlarge", until=NOW + timedelta(1)), False),
        (UnavailableOffering(capacity_type="", zone="a", until=NOW + timedelta(1)), True),
    ],
)
def test_what_a_refusal_covers(refused: UnavailableOffering, *, covers: bool) -> None:
    offering = Offering(zone="a", capacity_type="spot", price_usd_per_hour=1.0)
    assert refused.covers("m5.large", offering, NOW) is covers


@pytest.mark.parametrize(("group", "covers"), [("pg-1", True), ("pg-2", False), ("", False)])
def test_what_is_refused_to_a_placement_group_is_open_to_others(group: str, *, covers: bool) -> None:
    refused = UnavailableOffering(capacity_type="", zone="a", until=NOW + timedelta(1), group_id="pg-1")
    offering = Offering(zone="a", capacity_type="spot", price_usd_per_hour=1.0)
    assert refused.covers("m5.large", offering, NOW, group) is covers
