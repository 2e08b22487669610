"""Where a pod's claims let it go, and what must be bound before it can."""

from typing import Final

import msgspec

from sim.cluster.api import ApiServer
from sim.cluster.controllers.informer import Informer
from sim.cluster.scheduler_filter import Refusal
from sim.cluster.scheduler_match import Obj, node_selector
from sim.cluster.scheduler_nodes import NodeInfo
from sim.cluster.scheduler_shape import Shape, amount

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_ELSEWHERE: Final = Refusal(reasons=("node(s) didn't match PersistentVolume's node affinity",), for_good=True)
_NOTHING_TO_BIND: Final = Refusal(reasons=("node(s) didn't find available persistent volumes to bind",), for_good=True)
_FULL: Final = Refusal(reasons=("node(s) exceed max volume count",), for_good=False)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One pod's claims: volumes that exist, claims that wait for their first consumer, or why there is no plan."""

    problem: str = ""
    bound: tuple[Obj, ...] = ()
    late: tuple[Obj, ...] = ()


def claim_names(pod: Obj, shape: Shape) -> tuple[str, ...]:
    """Answer the names of all claims of *pod*, those of its ephemeral volumes too."""
    return (*shape.claims, *(f"{pod['metadata']['name']}-{volume}" for volume in shape.ephemeral_claims))


def volume_allows(volume: Obj, node: NodeInfo) -> bool:
    """Say whether the node affinity of PersistentVolume *volume* lets it be used on *node*."""
    required = ((volume["spec"].get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms")
    return required is None or node_selector(required)(node.name, node.labels)


class Volumes:
    """The claims, volumes and classes of the cluster."""

    def __init__(self, api: ApiServer) -> None:
        """Follow *api*."""
        self.claims = Informer(api, "persistentvolumeclaims")
        self.volumes = Informer(api, "persistentvolumes")
        self.classes = Informer(api, "storageclasses.storage.k8s.io")
        self.csi_nodes = Informer(api, "csinodes.storage.k8s.io")

    def plan(self, pod: Obj, shape: Shape) -> Plan:
        """Answer what the claims of *pod* ask for."""
        bound, late = [], []
        for name in claim_names(pod, shape):
            claim = self.claims.get(name, shape.namespace)
            if claim is None:
                return Plan(problem=f'persistentvolumeclaim "{name}" not found')
            if claim["metadata"].get("deletionTimestamp"):
                return Plan(problem=f'persistentvolumeclaim "{name}" is being deleted')
            volume_name = claim["spec"].get("volumeName")
            if volume_name:
                volume = self.volumes.get(volume_name)
                if volume is None:
                    return Plan(problem=f'persistentvolume "{volume_name}" not found')
                bound.append(volume)
            elif self.waits_for_consumer(claim):
                late.append(claim)
            else:
                return Plan(problem="pod has unbound immediate PersistentVolumeClaims")
        return Plan(bound=tuple(bound), late=tuple(late))

    def storage_class(self, claim: Obj) -> Obj | None:
        """Answer the class of *claim*, if it has one that exists."""
        return self.classes.get(claim["spec"].get("storageClassName") or "")

    def waits_for_consumer(self, claim: Obj) -> bool:
        """Say whether *claim* is bound only when a pod that uses it has a node."""
        found = self.storage_class(claim)
        return found is not None and found.get("volumeBindingMode") == "WaitForFirstConsumer"

    def refusal(self, plan: Plan, node: NodeInfo) -> Refusal | None:
        """Answer why *node* cannot have the volumes of *plan*; None if it can."""
        if self._too_many(plan, node):
            return _FULL
        if not all(volume_allows(volume, node) for volume in plan.bound):
            return _ELSEWHERE
        return None if all(self._can_bind(claim, node) for claim in plan.late) else _NOTHING_TO_BIND

    def _can_bind(self, claim: Obj, node: NodeInfo) -> bool:
        selected = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
        if selected:
            return bool(selected == node.name)
        if self.existing_volume(claim, node) is not None:
            return True
        storage_class = self.storage_class(claim)
        if storage_class is None or storage_class.get("provisioner") == "kubernetes.io/no-provisioner":
            return False
        allowed = storage_class.get("allowedTopologies")
        return not allowed or any(_topology_allows(term, node) for term in allowed)

    def existing_volume(self, claim: Obj, node: NodeInfo) -> Obj | None:
        """Answer the smallest available volume that satisfies *claim* on *node*, the first by name among equals."""
        fits = [v for v in self.volumes.all() if _satisfies(v, claim) and volume_allows(v, node)]
        return min(fits, key=lambda v: (_size(v["spec"]["capacity"]), v["metadata"]["name"]), default=None)

    def _too_many(self, plan: Plan, node: NodeInfo) -> bool:
        csi_node = self.csi_nodes.get(node.name)
        if csi_node is None:
            return False
        drivers = {entry["name"]: entry for entry in csi_node["spec"].get("drivers") or []}
        wanted = [self._driver(volume, None) for volume in plan.bound if not self._is_here(volume, node)]
        wanted += [self._driver(None, claim) for claim in plan.late]
        return any(self._exceeds(drivers[name], wanted.count(name), node) for name in set(wanted) & drivers.keys())

    def _exceeds(self, driver: Obj, more: int, node: NodeInfo) -> bool:
        limit = (driver.get("allocatable") or {}).get("count")
        if limit is None:
            return False
        claims = (self.claims.get(*reversed(key.split("/", 1))) for key, count in node.claims.items() if count)
        used = sum(1 for claim in claims if claim is not None and self._driver_of_claim(claim) == driver["name"])
        return used + more > int(limit)

    def _is_here(self, volume: Obj, node: NodeInfo) -> bool:
        claim = volume["spec"].get("claimRef") or {}
        return bool(node.claims.get(f"{claim.get('namespace')}/{claim.get('name')}"))

    def _driver_of_claim(self, claim: Obj) -> str:
        return self._driver(self.volumes.get(claim["spec"].get("volumeName") or ""), claim)

    def _driver(self, volume: Obj | None, claim: Obj | None) -> str:
        if volume is not None:
            return str((volume["spec"].get("csi") or {}).get("driver", ""))
        storage_class = None if claim is None else self.storage_class(claim)
        return "" if storage_class is None else str(storage_class.get("provisioner", ""))


def _topology_allows(term: Obj, node: NodeInfo) -> bool:
    return all(node.labels.get(entry["key"]) in entry["values"] for entry in term.get("matchLabelExpressions") or [])


def _satisfies(volume: Obj, claim: Obj) -> bool:
    spec, wanted = volume["spec"], claim["spec"]
    holder = spec.get("claimRef")
    mine = holder is not None and (holder.get("namespace"), holder.get("name")) == (
        claim["metadata"].get("namespace"),
        claim["metadata"]["name"],
    )
    return (
        (holder is None or mine)
        and (spec.get("storageClassName") or "") == (wanted.get("storageClassName") or "")
        and set(wanted.get("accessModes") or ()) <= set(spec.get("accessModes") or ())
        and _size(spec.get("capacity")) >= _size((wanted.get("resources") or {}).get("requests"))
    )


def _size(quantities: Obj | None) -> int:
    return amount("storage", (quantities or {}).get("storage", "0"))
