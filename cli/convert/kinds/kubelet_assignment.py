"""Assignment of the pools' kubelet configurations to node classes: pools may share a class but not a kubelet."""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from cli.convert.kinds.node_pools import ConvertedPool
from cli.convert.reading.remarks import RemarkCollector

JsonObject = dict[str, Any]


class KubeletAssignment:
    """Node classes with kubelet configurations, and the pools that reference them."""

    def __init__(
        self,
        node_class_by_name: Mapping[str, JsonObject],
        kubelet_by_class: Mapping[str, JsonObject],
        copy_name_by_pool: Mapping[str, str],
    ) -> None:
        """Set the assignment.

        *kubelet_by_class* holds the new kubelet configuration by class name; *copy_name_by_pool* holds the name of the
        class copy by pool key.
        """
        self._node_class_by_name, self._kubelet_by_class, self._copy_name_by_pool = (
            node_class_by_name,
            kubelet_by_class,
            copy_name_by_pool,
        )

    def build_node_class(self, value: JsonObject, remarks: RemarkCollector) -> list[JsonObject]:
        """Return the class, with a kubelet configuration if its pools agree."""
        kubelet = self._kubelet_by_class.get(str(value["metadata"].get("name")))
        if kubelet is None:
            return [value]
        remarks.add_change(("spec", "kubelet"), "moved here from the NodePools that use this class")
        return [_with_kubelet(value, kubelet)]

    def build_pool(self, pool: ConvertedPool, remarks: RemarkCollector) -> list[JsonObject]:
        """Return the pool, preceded by its former inline class, or by the class copy that only this pool uses."""
        inline_classes = (
            [] if pool.inline_node_class is None else self.build_node_class(pool.inline_node_class, RemarkCollector())
        )
        if pool.kubelet is None:
            return [*inline_classes, pool.value]
        path = pool.kubelet_path
        node_class = self._node_class_by_name.get(pool.class_name)
        if node_class is None:
            remarks.add_refusal(
                path, f"moved to the EC2NodeClass in v1, but {pool.class_name} is not in the input: add its file"
            )
            return []
        name = self._copy_name_by_pool.get(_get_pool_key(pool))
        if name is None:
            remarks.add_change(path, f"moved to spec.kubelet of EC2NodeClass {pool.class_name}")
            return [*inline_classes, pool.value]
        remarks.add_change(
            path,
            f"moved to spec.kubelet of {name}, a copy of {pool.class_name}, whose other NodePools have other values",
        )
        value = deepcopy(pool.value)
        ConvertedPool(value=value).spec["nodeClassRef"]["name"] = name
        class_copy = _with_kubelet(node_class, pool.kubelet)
        class_copy["metadata"] = class_copy["metadata"] | {"name": name}
        return [*inline_classes, class_copy, value]


def assign_kubelets(pools: Sequence[ConvertedPool], node_class_by_name: Mapping[str, JsonObject]) -> KubeletAssignment:
    """Assign each kubelet configuration.

    A class gets one if all its pools have the same; otherwise, each pool with a kubelet configuration gets a class
    copy.
    """
    kubelet_by_class: dict[str, JsonObject] = {}
    copy_name_by_pool: dict[str, str] = {}
    for name, node_class in sorted(node_class_by_name.items()):
        class_pools = sorted((pool for pool in pools if pool.class_name == name), key=_get_pool_key)
        pool_kubelets = [pool.kubelet for pool in class_pools]
        configured_pools = [pool for pool in class_pools if pool.kubelet is not None]
        class_kubelet = node_class.get("spec", {}).get("kubelet")
        if (
            configured_pools
            and all(pool_kubelet == pool_kubelets[0] for pool_kubelet in pool_kubelets)
            and class_kubelet in (None, pool_kubelets[0])
        ):
            kubelet_by_class[name] = configured_pools[0].kubelet or {}
        else:
            copy_name_by_pool |= {
                _get_pool_key(pool): _find_free_name(f"{name}-{pool.name}", node_class_by_name)
                for pool in configured_pools
            }
    return KubeletAssignment(node_class_by_name, kubelet_by_class, copy_name_by_pool)


def _get_pool_key(pool: ConvertedPool) -> str:
    return f"{pool.value['kind']}/{pool.name}"


def _find_free_name(name: str, used_names: Iterable[str]) -> str:
    while name in used_names:
        name += "-kubelet"
    return name


def _with_kubelet(value: JsonObject, kubelet: JsonObject) -> JsonObject:
    return value | {"spec": value["spec"] | {"kubelet": kubelet}}
