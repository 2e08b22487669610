"""Which node class gets the kubelet's configuration of which pool: pools share classes, but not always a kubelet."""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from cli.conversion.pools import Pool
from cli.conversion.remarks import Remarks

Object = dict[str, Any]


class Homed:
    """Node classes with kubelets, and pools that name them."""

    def __init__(self, known: Mapping[str, Object], kubelets: Mapping[str, Object], copied: Mapping[str, str]) -> None:
        """*known*: classes by name; *kubelets*: what these get; *copied*: pools that get a copy, with its name."""
        self._known, self._kubelets, self._copied = known, kubelets, copied

    def of_class(self, value: Object, remarks: Remarks) -> list[Object]:
        """Answer the class, with a kubelet if its pools agree on one."""
        own = self._kubelets.get(str(value["metadata"].get("name")))
        if own is None:
            return [value]
        remarks.changed(("spec", "kubelet"), "comes from the pools that name this class")
        return [_with(value, own)]

    def of_pool(self, pool: Pool, remarks: Remarks) -> list[Object]:
        """Answer the pool, behind the class that it had inline, or that is a copy for it alone."""
        made = [] if pool.node_class is None else self.of_class(pool.node_class, Remarks())
        if pool.kubelet is None:
            return [*made, pool.value]
        path = pool.kubelet_path
        old = self._known.get(pool.class_name)
        if old is None:
            remarks.refuse(
                path,
                f"belongs to the node class now, and EC2NodeClass {pool.class_name} is not among what is read: name "
                "its file too",
            )
            return []
        name = self._copied.get(_key(pool))
        if name is None:
            remarks.changed(path, f"is spec.kubelet of EC2NodeClass {pool.class_name} now")
            return [*made, pool.value]
        remarks.changed(
            path, f"is spec.kubelet of EC2NodeClass {name} now, a copy: other pools of {pool.class_name} say otherwise"
        )
        value = deepcopy(pool.value)
        Pool(value=value).spec["nodeClassRef"]["name"] = name
        copy = _with(old, pool.kubelet)
        copy["metadata"] = copy["metadata"] | {"name": name}
        return [*made, copy, value]


def homes(some: Sequence[Pool], known: Mapping[str, Object]) -> Homed:
    """Decide: a class gets a kubelet if all its pools say the same, else those that say anything get copies."""
    kubelets: dict[str, Object] = {}
    copied: dict[str, str] = {}
    for name, old in sorted(known.items()):
        users = sorted((one for one in some if one.class_name == name), key=_key)
        wanted = [one.kubelet for one in users]
        speaking = [one for one in users if one.kubelet is not None]
        own = old.get("spec", {}).get("kubelet")
        if speaking and all(one == wanted[0] for one in wanted) and own in (None, wanted[0]):
            kubelets[name] = speaking[0].kubelet or {}
        else:
            copied |= {_key(one): _free(f"{name}-{one.name}", known) for one in speaking}
    return Homed(known, kubelets, copied)


def _key(pool: Pool) -> str:
    return f"{pool.value['kind']}/{pool.name}"


def _free(name: str, taken: Iterable[str]) -> str:
    while name in taken:
        name += "-kubelet"
    return name


def _with(value: Object, kubelet: Object) -> Object:
    return value | {"spec": value["spec"] | {"kubelet": kubelet}}
