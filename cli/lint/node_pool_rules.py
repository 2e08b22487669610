"""Lint rules about NodePools: how they relate to each other, and which nodes they can launch."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Any, Final

from msgspec.structs import replace

from cli.convert.kinds.workloads import POD_PATH_BY_KIND
from cli.convert.reading.fixes import get_value_at
from cli.convert.reading.sources import SourceObject
from cli.convert.validation.schema_checks import has_schema
from cli.lint.finding import LintFinding, build_finding, get_object_name
from cli.lint.spot_share_rules import lint_node_pool_share
from shared.decide.disruption.budgets.node_pool_annotations import parse_disruption_annotations
from shared.model.cloud_provider.instance_type import Catalog, InstanceType
from shared.model.core.formatting import format_elapsed, join_names
from shared.model.core.labels import (
    CAPACITY_TYPE,
    GRACEFUL_EXPIRATION,
    LIMIT_USD,
    REBALANCE_POLICIES,
    REBALANCE_POLICY,
    SPOT,
    WELL_KNOWN,
    ZONE_BALANCE,
)
from shared.model.core.requirements import Requirement, Requirements, build_label_requirements
from shared.model.core.resources import USD_PER_HOUR, build_resources, format_amount
from shared.model.core.taints import Taint, Toleration
from shared.model.karpenter.money_limit import convert_to_micro_usd, find_limit_problem, has_limits, list_limits
from shared.model.karpenter.node_pool import NodePool
from shared.model.karpenter.zone_balance import parse_balance_percent
from shared.state.schedules import get_usual
from shared.take.manifests.snapshot_from_manifests import build_snapshot_from_documents

JsonObject = dict[str, Any]
MIN_EXPIRE_AFTER: Final = timedelta(hours=1)
"""Nodes that expire sooner spend most of their lifetime on starting and draining."""
SMALLEST_INSTANCE_CAPACITY: Final = build_resources({"cpu": 1000, "memory": 512 << 20})
"""No EC2 instance has less."""
_SIZE_REQUIREMENTS: Final = {
    "cpu": ("karpenter.k8s.aws/instance-cpu", 1000),
    "memory": ("karpenter.k8s.aws/instance-memory", 1 << 20),
}
"""By resource, the requirement for the amount that an instance has, and its unit."""
_SNAPSHOT_TIME: Final = datetime(2024, 1, 1, tzinfo=UTC)


def lint_node_pools(source_objects: Sequence[SourceObject], catalog: Catalog | None) -> Iterator[LintFinding]:
    """Check how NodePools relate to each other, and which nodes they can launch."""
    source_by_name = {
        get_object_name(source.value): source
        for source in source_objects
        if has_schema(source.value) and source.value["kind"] == "NodePool"
    }
    cluster = build_snapshot_from_documents([source.value for source in source_by_name.values()], _SNAPSHOT_TIME)
    pools = sorted(map(get_usual, cluster.node_pools), key=lambda pool: (-pool.weight, pool.name))
    tolerations = [tuple(_parse_tolerations(pod)) for source in source_objects for pod in _list_pod_specs(source.value)]
    class_names = {
        get_object_name(source.value)
        for source in source_objects
        if source.value["kind"] in ("EC2NodeClass", "AWSNodeTemplate")
    }
    for source_object in source_by_name.values():
        yield from _lint_node_class_ref(source_object, class_names)
    for position, pool in enumerate(pools):
        source_object = source_by_name[pool.name]
        yield from _lint_expiration(source_object, pool)
        yield from _lint_disruption_annotations(source_object, pool)
        yield from _lint_rebalance_policy(source_object, pool)
        yield from _lint_zone_balance(source_object, pool)
        yield from lint_node_pool_share(source_object, pool)
        yield from _lint_limits(source_object, pool, catalog)
        if tolerations:
            yield from _lint_taints(source_object, pool, tolerations)
        shadowing_pool = next(
            (higher_pool for higher_pool in pools[:position] if _is_shadowing(higher_pool, pool)), None
        )
        if shadowing_pool is not None:
            yield build_finding(
                source_object,
                "warning",
                ("spec", "weight"),
                f"never used: NodePool {shadowing_pool.name} has precedence, accepts the same pods and has no limits: "
                "raise the weight, or restrict the other NodePool",
            )


def _lint_node_class_ref(source_object: SourceObject, class_names: set[str]) -> Iterator[LintFinding]:
    """Check that the EC2NodeClass of a NodePool is in the input; without any EC2NodeClass, it may be in the cluster."""
    path = ("spec", "template", "spec", "nodeClassRef")
    reference = get_value_at(source_object.value, path)
    name = reference.get("name") if isinstance(reference, dict) and reference.get("kind") == "EC2NodeClass" else None
    if not isinstance(name, str) or name in class_names:
        return
    if not class_names:
        message = f"EC2NodeClass {name} is not in the input, so it is not checked: add its file with -f"
        yield build_finding(source_object, "warning", (*path, "name"), message)
        return
    close = get_close_matches(name, sorted(class_names), n=1)
    fix = f"did you mean {close[0]}?" if close else f"write one of {join_names(sorted(class_names))}, or add its file"
    yield build_finding(source_object, "error", (*path, "name"), f"the input has no EC2NodeClass {name}: {fix}")


def _lint_expiration(source_object: SourceObject, pool: NodePool) -> Iterator[LintFinding]:
    path = ("spec", "template", "spec", "expireAfter")
    if pool.expire_after is None and pool.meta.get_annotation(GRACEFUL_EXPIRATION):
        message = "has no effect: nodes with expireAfter Never do not expire: remove it, or set expireAfter"
        yield build_finding(source_object, "warning", ("metadata", "annotations", GRACEFUL_EXPIRATION), message)
    if pool.expire_after is not None and pool.expire_after < MIN_EXPIRE_AFTER:
        yield build_finding(
            source_object,
            "warning",
            path,
            f"nodes expire after {format_elapsed(pool.expire_after)}, despite budgets: write 24h or more, or Never",
        )


def _lint_disruption_annotations(source_object: SourceObject, pool: NodePool) -> Iterator[LintFinding]:
    for problem in parse_disruption_annotations(pool).problems:
        key, _, message = problem.partition(": ")
        fix = f"{message}; until it is fixed, the nodes are not disrupted voluntarily"
        yield build_finding(source_object, "error", ("metadata", "annotations", key), fix)


def _lint_rebalance_policy(source_object: SourceObject, pool: NodePool) -> Iterator[LintFinding]:
    policy = pool.meta.get_annotation(REBALANCE_POLICY)
    path = ("metadata", "annotations", REBALANCE_POLICY)
    if policy and policy not in REBALANCE_POLICIES:
        message = f"{policy!r} is not a policy, so rebalance recommendations are ignored: "
        yield build_finding(source_object, "error", path, f"{message}write one of {join_names(REBALANCE_POLICIES)}")
    elif policy in REBALANCE_POLICIES[1:] and not pool.requirements[CAPACITY_TYPE].has(SPOT):
        message = "has no effect: the NodePool does not allow spot: remove it, or allow spot"
        yield build_finding(source_object, "warning", path, message)


def _lint_zone_balance(source_object: SourceObject, pool: NodePool) -> Iterator[LintFinding]:
    text = pool.meta.get_annotation(ZONE_BALANCE)
    try:
        parse_balance_percent(text or "0")
    except ValueError as error:
        message = f"{error}; until it is fixed, zones are not balanced"
        yield build_finding(source_object, "error", ("metadata", "annotations", ZONE_BALANCE), message)


def _lint_limits(source_object: SourceObject, pool: NodePool, catalog: Catalog | None) -> Iterator[LintFinding]:
    problem = find_limit_problem(pool)
    if problem:
        key, _, message = problem.partition(": ")
        yield build_finding(source_object, "error", ("metadata", "annotations", key), message)
    types = _filter_types(pool, catalog)
    for name, amount in () if pool.limits is None else pool.limits.amounts:
        smallest_amount = min(
            (kind.capacity[name] for kind in types),
            default=max(SMALLEST_INSTANCE_CAPACITY[name], _compute_requested_amount(pool, name)),
        )
        if 0 < amount < smallest_amount:
            path = ("spec", "limits", name)
            limit, smallest = format_amount(name, amount), format_amount(name, smallest_amount)
            message = f"limit {limit} is below the smallest instance ({smallest}), no node can be launched: increase it"
            yield build_finding(source_object, "error", path, message)
    yield from _lint_usd_limit(source_object, pool, types)


def _lint_usd_limit(
    source_object: SourceObject, pool: NodePool, types: Iterable[InstanceType]
) -> Iterator[LintFinding]:
    """Check that the limit in USD per hour is above the price of the cheapest instance."""
    limit = list_limits(pool).get(USD_PER_HOUR)
    prices = [
        convert_to_micro_usd(offering.price_usd_per_hour)
        for kind in types
        for offering in kind.offerings
        if offering.available and pool.requirements[CAPACITY_TYPE].has(offering.capacity_type)
    ]
    if limit and prices and limit < min(prices):
        amounts = [format_amount(USD_PER_HOUR, amount) for amount in (limit, min(prices))]
        message = (
            f"limit {amounts[0]} is below the cheapest instance ({amounts[1]}), no node can be launched: increase it"
        )
        yield build_finding(source_object, "error", ("metadata", "annotations", LIMIT_USD), message)


def _compute_requested_amount(pool: NodePool, name: str) -> int:
    """Return how much of *name* the requirements of *pool* ask of each instance; 0 if they do not say."""
    key, unit = _SIZE_REQUIREMENTS.get(name, ("", 0))
    requirement = pool.requirements[key]
    values = [] if requirement.complement else [int(value) for value in requirement.values if value.isdecimal()]
    return unit * max(min(values, default=0), requirement.gte or 0)


def _filter_types(pool: NodePool, catalog: Catalog | None) -> tuple[InstanceType, ...]:
    if catalog is None:
        return ()
    types = catalog.get_instance_types(pool.node_class.name, pool.name)
    return tuple(kind for kind in types if not kind.requirements.find_conflict(pool.requirements))


def _lint_taints(
    source_object: SourceObject, pool: NodePool, tolerations: Sequence[Sequence[Toleration]]
) -> Iterator[LintFinding]:
    for position, taint in enumerate(pool.taints):
        if taint.effect != "PreferNoSchedule" and not any(
            _has_toleration(pod_tolerations, taint) for pod_tolerations in tolerations
        ):
            path = ("spec", "template", "spec", "taints", position)
            yield build_finding(
                source_object, "warning", path, f"no pod in the input tolerates {taint}: add a toleration to the pods"
            )


def _has_toleration(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    return any(toleration.can_tolerate(taint) for toleration in tolerations)


def _list_pod_specs(value: JsonObject) -> Iterator[JsonObject]:
    """Yield the spec of the pods that *value* is or creates; not for DaemonSets: their pods follow nodes."""
    kind = value["kind"]
    inner: Any = value
    for key in (*POD_PATH_BY_KIND.get(kind, ()), "spec"):
        inner = inner.get(key) if isinstance(inner, dict) else None
    if kind in POD_PATH_BY_KIND and kind != "DaemonSet" and isinstance(inner, dict):
        yield inner


def _parse_tolerations(pod: JsonObject) -> Iterator[Toleration]:
    entries = pod.get("tolerations")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            texts = {name: str(entry.get(name) or "") for name in ("key", "operator", "value", "effect")}
            yield Toleration(**texts | {"operator": texts["operator"] or "Equal"})


def _is_shadowing(first: NodePool, later_pool: NodePool) -> bool:
    """Return whether *first*, which is tried before *later_pool*, takes every pod that *later_pool* takes."""
    if first.limits is not None or has_limits(first) or first.replicas is not None or later_pool.replicas is not None:
        return False
    first_requirements = first.requirements & build_label_requirements(first.labels)
    later_requirements = later_pool.requirements & build_label_requirements(later_pool.labels)
    return (
        all(taint in later_pool.taints for taint in first.taints)
        and all(_is_superset(requirement, later_requirements) for requirement in first_requirements)
        and all(
            requirement.key in WELL_KNOWN or requirement.key in first_requirements for requirement in later_requirements
        )
    )


def _is_superset(requirement: Requirement, other_requirements: Requirements) -> bool:
    """Return whether *requirement* allows all values that *other_requirements* allow."""
    other_requirement = other_requirements[requirement.key]
    return requirement.key in other_requirements and replace(
        requirement & other_requirement, min_values=None
    ) == replace(other_requirement, min_values=None)
