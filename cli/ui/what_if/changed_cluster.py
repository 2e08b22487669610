"""A cluster with edited NodePools and prices."""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from cli.cluster.live_cluster import group_running_labels
from cli.convert.reading.remarks import format_path
from cli.convert.validation.converted_objects import get_unknown_field_hint
from cli.convert.validation.schema_checks import find_unknown_fields
from cli.inputs.documents import iterate_objects, parse_documents
from cli.inputs.manifests import Manifests, parse_manifests
from cli.replay.changes import merge_node_pool
from shared.model.cloud_provider.instance_type import Catalog, InstanceType, Offering
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import join_names
from shared.take.manifests.snapshot_from_manifests import build_snapshot_from_documents

_EDITOR: Final = "NodePool editor"
_MAX_LISTED_NAMES: Final = 5
_MAX_PRICE_USD: Final = 10_000.0


class WhatIfCluster(msgspec.Struct, frozen=True, kw_only=True):
    """The changed cluster; with errors it is unchanged."""

    cluster: ClusterSnapshot
    errors: tuple[str, ...] = ()
    """Each names the object, the field and the fix."""


def apply_node_pools(cluster: ClusterSnapshot, texts: Mapping[str, str]) -> WhatIfCluster:
    """Return *cluster* with exactly the NodePools of the YAML *texts*, which are by the name of the NodePool."""
    errors: list[str] = []
    documents = [
        document
        for name, text in texts.items()
        for document in parse_documents(f"NodePool {name}", text.encode(), errors.append)
    ]
    manifests = parse_manifests(iterate_objects(documents, errors.append), errors.append, group_running_labels(cluster))
    applied = build_snapshot_from_documents(manifests.objects, cluster.taken_at)
    errors += [
        f"{_describe_object(manifests.locations, problem.kind, problem.name)}: {problem.message}"
        for problem in applied.problems
    ]
    errors += _find_foreign_objects(manifests.locations)
    errors += _find_unknown_fields(manifests)
    errors += _find_missing_node_classes(cluster, applied)
    if errors:
        return WhatIfCluster(cluster=cluster, errors=tuple(dict.fromkeys(errors)))
    node_pools = tuple(merge_node_pool(node_pool, cluster) for node_pool in applied.node_pools)
    return WhatIfCluster(cluster=replace(cluster, node_pools=node_pools))


def _describe_object(locations: Mapping[tuple[str, str], str], kind: str, name: str) -> str:
    """Return kind and name, after the name of the editor if that of another NodePool contains the object."""
    location = locations.get((kind, name), _EDITOR)
    description = f"{kind} {name}"
    return description if location.rpartition(":")[0] == description else f"{location}: {description}"


def _find_foreign_objects(locations: Mapping[tuple[str, str], str]) -> Iterator[str]:
    for (kind, name), location in locations.items():
        if kind != "NodePool":
            yield f"{location}: {kind} {name}: only NodePools can be changed here: remove this object"


def _find_unknown_fields(manifests: Manifests) -> Iterator[str]:
    """Yield an error for each field that NodePools do not have: otherwise, a misspelled field would be ignored."""
    for node_pool in manifests.objects:
        if isinstance(node_pool, dict) and node_pool["kind"] == "NodePool":
            name = node_pool["metadata"]["name"]
            description = _describe_object(manifests.locations, "NodePool", name)
            for path, close in find_unknown_fields(node_pool):
                hint = get_unknown_field_hint(path, close)
                yield f"{description}: {format_path(path)}: unknown field: {hint}"


def _find_missing_node_classes(cluster: ClusterSnapshot, applied: ClusterSnapshot) -> Iterator[str]:
    names = sorted(node_class.name for node_class in cluster.node_classes)
    for node_pool in applied.node_pools:
        if names and node_pool.node_class.name not in names:
            yield (
                f"NodePool {node_pool.name}: spec.template.spec.nodeClassRef.name: there is no EC2NodeClass "
                f"{node_pool.node_class.name}: write one of {join_names(names, _MAX_LISTED_NAMES)}"
            )


def apply_prices(cluster: ClusterSnapshot, prices: Mapping[str, float]) -> WhatIfCluster:
    """Return *cluster* with other prices.

    *prices* are USD per hour by instance type, like ``m5.large``, or by instance type and capacity type, like
    ``m5.large/spot``.
    """
    catalog = cluster.catalog
    if not prices or catalog is None:
        return WhatIfCluster(cluster=cluster)
    known_names = {instance_type.name for types in _list_views(catalog) for instance_type in types}
    errors = [
        f"prices: {key}: there is no instance type {key.partition('/')[0]} in the catalog: correct the name"
        for key in prices
        if key.partition("/")[0] not in known_names
    ]
    errors += [
        f"prices: {key}: {usd} is not a price: write USD per hour, such as 0.08"
        for key, usd in prices.items()
        if not 0 < usd < _MAX_PRICE_USD
    ]
    if errors:
        return WhatIfCluster(cluster=cluster, errors=tuple(errors))
    changed_catalog = replace(
        catalog,
        instance_types=_change_types(catalog.instance_types, prices),
        by_node_class=tuple((name, _change_types(types, prices)) for name, types in catalog.by_node_class),
        by_node_pool=tuple((name, _change_types(types, prices)) for name, types in catalog.by_node_pool),
    )
    return WhatIfCluster(cluster=replace(cluster, catalog=changed_catalog))


def _list_views(catalog: Catalog) -> Iterator[tuple[InstanceType, ...]]:
    yield catalog.instance_types
    yield from (types for _, types in catalog.by_node_class)


def _change_types(instance_types: tuple[InstanceType, ...], prices: Mapping[str, float]) -> tuple[InstanceType, ...]:
    return tuple(
        replace(
            instance_type,
            offerings=tuple(_change_offering(instance_type.name, item, prices) for item in instance_type.offerings),
        )
        if any(key.partition("/")[0] == instance_type.name for key in prices)
        else instance_type
        for instance_type in instance_types
    )


def _change_offering(instance_type: str, offering: Offering, prices: Mapping[str, float]) -> Offering:
    usd = prices.get(f"{instance_type}/{offering.capacity_type}", prices.get(instance_type))
    return offering if usd is None else replace(offering, price_usd_per_hour=usd)
