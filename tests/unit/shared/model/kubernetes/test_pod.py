"""What is allowed for a pod, and the effect of PodDisruptionBudgets on it."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from shared.model.cloud_provider.instance_type import Offering, UnavailableOffering
from shared.model.core.labels import ARCH, DO_NOT_DISRUPT, OWN_DELETION_COST, POD_DELETION_COST, SAFE_TO_EVICT
from shared.model.core.metadata import Condition, ObjectMeta, OwnerReference
from shared.model.core.requirements import build_requirements, parse_requirement
from shared.model.core.selectors import EVERYTHING, build_label_selector
from shared.model.core.taints import Toleration
from shared.model.kubernetes.deletion_cost import get_own_deletion_cost, get_user_deletion_cost
from shared.model.kubernetes.do_not_disrupt import find_protecting_annotation, is_pod_protected
from shared.model.kubernetes.eviction_cost import compute_eviction_cost
from shared.model.kubernetes.host_ports import HostPort
from shared.model.kubernetes.pod import Pod, PodSpec, build_strict_requirements
from shared.model.kubernetes.pod_classes import (
    is_critical,
    is_disruptable,
    is_evictable,
    is_provisionable,
    is_reschedulable,
    is_waiting_eviction,
)
from shared.model.kubernetes.pod_disruption_budget import PodDisruptionBudget

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
UNSCHEDULABLE_CONDITION = Condition(type="PodScheduled", status="False", reason="Unschedulable")
DAEMON = OwnerReference(api_version="apps/v1", kind="DaemonSet", name="d", uid="u")
STATEFUL = OwnerReference(api_version="apps/v1", kind="StatefulSet", name="s", uid="u")
STATIC = OwnerReference(api_version="v1", kind="Node", name="n", uid="u")
TOLERATES_EVERYTHING = PodSpec(tolerations=(Toleration(operator="Exists"),))


def make_pod(
    *,
    owner: OwnerReference | None = None,
    deleted: timedelta | None = None,
    annotations: tuple[tuple[str, str], ...] = (),
    labels: tuple[tuple[str, str], ...] = (),
    **parts: object,
) -> Pod:
    meta = ObjectMeta(
        name="cart",
        namespace="shop",
        owners=(owner,) if owner else (),
        deleted_at=None if deleted is None else NOW - deleted,
        annotations=annotations,
        labels=labels,
    )
    return msgspec.structs.replace(Pod(meta=meta, spec=PodSpec()), **parts)


def make_protected_pod(value: str, started_at: datetime | None = None) -> Pod:
    return make_pod(annotations=((DO_NOT_DISRUPT, value),), started_at=started_at)


WAITING = make_pod(conditions=(UNSCHEDULABLE_CONDITION,))
DELETED = make_pod(deleted=timedelta())


@pytest.mark.parametrize(
    ("pod", "is_launch_expected"),
    [
        (WAITING, True),
        (make_pod(), False),
        (make_pod(conditions=(Condition(type="PodScheduled", status="False", reason="SchedulingGated"),)), False),
        (make_pod(conditions=(UNSCHEDULABLE_CONDITION,), node_name="ip-1"), False),
        (make_pod(conditions=(UNSCHEDULABLE_CONDITION,), nominated_node_name="ip-1"), False),
        (make_pod(conditions=(UNSCHEDULABLE_CONDITION,), owner=DAEMON), False),
        (make_pod(conditions=(UNSCHEDULABLE_CONDITION,), owner=STATIC), False),
        (make_pod(conditions=(UNSCHEDULABLE_CONDITION,), deleted=timedelta()), True),
    ],
)
def test_only_unschedulable_pods_without_a_node_are_provisionable(pod: Pod, *, is_launch_expected: bool) -> None:
    assert is_provisionable(pod) is is_launch_expected


@pytest.mark.parametrize(
    ("pod", "is_move_expected"),
    [
        (make_pod(), True),
        (DELETED, False),
        (make_pod(owner=STATEFUL, deleted=timedelta()), True),
        (make_pod(phase="Succeeded"), False),
        (make_pod(phase="Failed"), False),
        (make_pod(owner=DAEMON), False),
        (make_pod(owner=STATIC), False),
    ],
)
def test_reschedulable_pods_exclude_ended_deleting_daemonset_and_static_pods(
    pod: Pod, *, is_move_expected: bool
) -> None:
    assert is_reschedulable(pod) is is_move_expected


HOUR_AGO = NOW - timedelta(hours=1)


@pytest.mark.parametrize(
    ("pod", "is_protected"),
    [
        (make_pod(), False),
        (make_protected_pod("true"), True),
        (make_protected_pod("false"), False),
        (make_protected_pod("True"), False),
        (make_protected_pod(""), False),
        (make_protected_pod("2h", HOUR_AGO), True),
        (make_protected_pod("1h", HOUR_AGO), False),
        (make_protected_pod("30m", HOUR_AGO), False),
        (make_protected_pod("30m"), True),
        (make_protected_pod("0s"), False),
        (make_protected_pod("-1h"), False),
        (make_protected_pod("soon"), False),
        (make_protected_pod("99999999999h"), False),
    ],
)
def test_do_not_disrupt_annotation_protects_a_pod_always_or_for_a_duration(pod: Pod, *, is_protected: bool) -> None:
    assert is_pod_protected(pod, NOW) is is_protected
    assert is_disruptable(pod, NOW) is not is_protected
    assert is_evictable(pod, NOW) is not is_protected


@pytest.mark.parametrize(
    ("value", "options", "is_protected"),
    [
        ("false", {}, True),
        ("true", {}, False),
        ("False", {}, False),
        ("", {}, False),
        ("false", {"owner": DAEMON}, False),
        ("false", {"owner": STATIC}, False),
    ],
)
def test_safe_to_evict_false_protects_pods_that_no_daemonset_owns(
    value: str, options: dict[str, object], *, is_protected: bool
) -> None:
    pod = make_pod(annotations=((SAFE_TO_EVICT, value),), **options)  # type: ignore[arg-type]
    assert is_pod_protected(pod, NOW) is is_protected
    assert find_protecting_annotation(pod, NOW) == (SAFE_TO_EVICT if is_protected else "")


def test_safe_to_evict_true_does_not_override_do_not_disrupt() -> None:
    pod = make_pod(annotations=((SAFE_TO_EVICT, "true"), (DO_NOT_DISRUPT, "true")))
    assert find_protecting_annotation(pod, NOW) == DO_NOT_DISRUPT


def test_ended_or_deleting_pod_does_not_block_disruption() -> None:
    for pod in (make_pod(phase="Failed"), DELETED):
        assert is_disruptable(pod, NOW)
        assert not is_evictable(pod, NOW)


@pytest.mark.parametrize(
    ("pod", "is_eviction_expected", "is_waited_for"),
    [
        (make_pod(), True, True),
        (make_pod(spec=TOLERATES_EVERYTHING), False, False),
        (make_pod(owner=STATIC), False, False),
        (make_pod(owner=DAEMON), True, True),
        (make_protected_pod("true"), False, True),
        (make_pod(deleted=timedelta(seconds=60)), False, True),
        (make_pod(deleted=timedelta(seconds=61)), False, False),
        (make_pod(deleted=-timedelta(seconds=30)), False, True),
        (make_pod(phase="Succeeded"), False, False),
    ],
)
def test_drain_evicts_and_waits_for_the_expected_pods(
    pod: Pod, *, is_eviction_expected: bool, is_waited_for: bool
) -> None:
    assert is_evictable(pod, NOW) is is_eviction_expected
    assert is_waiting_eviction(pod, NOW) is is_waited_for


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
def test_pod_eviction_cost_depends_on_deletion_cost_and_priority(
    cost: str, priority: int, eviction_cost: float
) -> None:
    annotations = ((POD_DELETION_COST, cost),) if cost else ()
    assert compute_eviction_cost(make_pod(annotations=annotations, priority=priority)) == eviction_cost


def test_a_deletion_cost_that_joiner_has_set_does_not_change_the_eviction_cost() -> None:
    own_annotations = ((POD_DELETION_COST, "-134217728"), (OWN_DELETION_COST, "-134217728"))
    changed_annotations = ((POD_DELETION_COST, "-134217728"), (OWN_DELETION_COST, "-5"))
    assert compute_eviction_cost(make_pod(annotations=own_annotations)) == 1.0
    assert compute_eviction_cost(make_pod(annotations=changed_annotations)) == 0.0


@pytest.mark.parametrize(
    ("value", "mark", "user_cost", "own_cost"),
    [
        ("", "", "", None),
        ("-5", "", "-5", None),
        ("-5", "-5", "", -5),
        ("-5", "-6", "-5", None),
        ("", "-5", "", None),
        ("low", "low", "", None),
    ],
)
def test_deletion_cost_is_joiners_only_if_its_mark_repeats_it(
    value: str, mark: str, user_cost: str, own_cost: int | None
) -> None:
    annotations = ((POD_DELETION_COST, value), (OWN_DELETION_COST, mark))
    pod = make_pod(annotations=tuple(pair for pair in annotations if pair[1]))
    assert (get_user_deletion_cost(pod), get_own_deletion_cost(pod)) == (user_cost, own_cost)


def test_pod_criticality_depends_on_its_priority_class() -> None:
    assert is_critical(make_pod(priority_class="system-node-critical"))
    assert not is_critical(make_pod(priority_class="high"))


def test_pod_name_includes_its_namespace() -> None:
    assert make_pod().name == "shop/cart"


@pytest.mark.parametrize(
    ("first_port", "second_port", "conflict"),
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
def test_host_ports_conflict_by_port_protocol_and_ip(
    first_port: HostPort, second_port: HostPort, *, conflict: bool
) -> None:
    assert first_port.has_conflict(second_port) is second_port.has_conflict(first_port) is conflict


def make_budget(**parts: object) -> PodDisruptionBudget:
    default_budget = PodDisruptionBudget(
        meta=ObjectMeta(name="b", namespace="shop"), selector=EVERYTHING, disruptions_allowed=1
    )
    return msgspec.structs.replace(default_budget, **parts)


def test_pdb_matches_selected_pods_of_its_namespace() -> None:
    cart = make_pod(labels=(("app", "cart"),))
    assert make_budget().is_match(cart)
    assert make_budget(selector=build_label_selector({"app": "cart"})).is_match(cart)
    assert not make_budget(selector=build_label_selector({"app": "web"})).is_match(cart)
    assert not make_budget(selector=None).is_match(cart)
    assert not make_budget(meta=ObjectMeta(name="b", namespace="bank")).is_match(cart)
    assert make_budget().name == "shop/b"


@pytest.mark.parametrize(
    ("budget", "never"),
    [
        (make_budget(), False),
        (make_budget(max_unavailable="0"), True),
        (make_budget(max_unavailable="0%"), True),
        (make_budget(max_unavailable="1"), False),
        (make_budget(min_available="100%"), True),
        (make_budget(min_available="100"), False),
    ],
)
def test_fully_blocking_pdbs_are_recognized(budget: PodDisruptionBudget, *, never: bool) -> None:
    assert budget.is_fully_blocking() is never


def test_strict_requirements_combine_node_selector_and_one_affinity_term() -> None:
    first, second = (build_requirements([parse_requirement("a", "In", [value])]) for value in "xy")
    spec = PodSpec(node_selector=((ARCH, "arm64"),), required_terms=(first, second))
    selector_requirements = build_requirements([parse_requirement(ARCH, "In", ["arm64"])])
    assert build_strict_requirements(spec) == selector_requirements & first
    assert build_strict_requirements(spec, 1) == selector_requirements & second
    assert build_strict_requirements(PodSpec(node_selector=((ARCH, "arm64"),))) == selector_requirements
    assert build_strict_requirements(PodSpec()) == build_requirements([])


def test_contradictory_node_selector_matches_no_node() -> None:
    spec = PodSpec(node_selector=((ARCH, "amd64"), (ARCH, "arm64")))
    assert build_strict_requirements(spec)[ARCH].operator == "DoesNotExist"


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
def test_unavailable_offering_matches_type_zone_and_capacity_type_until_it_expires(
    refused: UnavailableOffering, *, covers: bool
) -> None:
    offering = Offering(zone="a", capacity_type="spot", price_usd_per_hour=1.0)
    assert refused.is_match("m5.large", offering, NOW) is covers


@pytest.mark.parametrize(("group", "covers"), [("pg-1", True), ("pg-2", False), ("", False)])
def test_offering_unavailable_in_one_placement_group_is_available_in_others(group: str, *, covers: bool) -> None:
    refused = UnavailableOffering(capacity_type="", zone="a", until=NOW + timedelta(1), group_id="pg-1")
    offering = Offering(zone="a", capacity_type="spot", price_usd_per_hour=1.0)
    assert refused.is_match("m5.large", offering, NOW, group) is covers
