"""What the ResourceClaims of pods request: from the claim if it exists, else from its template.

A claim that is allocated and reserved for a pod that stays where it is restricts the other pods of the claim to its
nodes. Otherwise kube-scheduler allocates the claim again: the claims of pods that move, and of pending pods.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Final

import msgspec
from msgspec.structs import replace

from shared.model.cluster import ClusterSnapshot
from shared.model.core.devices import ClaimSpec, DeviceClass, DeviceRequest, PodClaim
from shared.model.core.labels import HOSTNAME
from shared.model.core.requirements import ANYTHING, Requirement, Requirements
from shared.model.kubernetes.pod import Pod

MAX_CONSUMERS: Final = 256
"""For how many pods a claim can be reserved (resource.k8s.io: ResourceClaimReservedForMaxSize)."""
SETTING: Final = "dynamic-resource-allocation"


class DeviceDemand(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """The claims of a pod that are still to be allocated; requests have the selectors of their device class too."""

    shared: tuple[tuple[str, ClaimSpec], ...] = ()
    """ResourceClaims that other pods can use as well, by name: allocated once."""
    generated: tuple[ClaimSpec, ...] = ()
    """Claims that are created for each pod from a template."""

    @property
    def specs(self) -> tuple[ClaimSpec, ...]:
        """All claims of the pod."""
        return (*(spec for _, spec in self.shared), *self.generated)


class PodClaims:
    """The objects of dynamic resource allocation in a cluster, for the pods of one plan."""

    def __init__(self, cluster: ClusterSnapshot, queue: Iterable[Pod]) -> None:
        """*queue*: the pods that are to be placed."""
        self.is_enabled = cluster.has_dynamic_resources
        self._claims = {claim.name: claim for claim in cluster.resource_claims}
        self._templates = {
            f"{template.meta.namespace}/{template.meta.name}": template.spec
            for template in cluster.resource_claim_templates
        }
        self._classes = {device_class.meta.name: device_class for device_class in cluster.device_classes}
        self._host_by_node = {node.name: node.meta.get_label(HOSTNAME) or node.name for node in cluster.nodes}
        queued_pods = [pod for pod in queue if pod.spec.resource_claims] if self.is_enabled else []
        self._is_pending_by_pod = {pod.name: not pod.node_name for pod in queued_pods}
        self._pending_claims = frozenset(
            f"{pod.meta.namespace}/{claim_name}"
            for pod in queued_pods
            for pod_claim in pod.spec.resource_claims
            for claim_name in (pod_claim.claim or dict(pod.claim_names).get(pod_claim.name, ""),)
            if claim_name and not pod.node_name
        )
        active_pods = {pod.name for pod in cluster.pods} if queued_pods else set[str]()
        self._staying_consumers = {
            claim.name: [name for name in claim.consumers if self._is_staying(name, active_pods)]
            for claim in (self._claims.values() if queued_pods else ())
        }

    @property
    def has_demand(self) -> bool:
        """Whether a pod of the queue has claims."""
        return bool(self._is_pending_by_pod)

    def list_released_claims(self) -> frozenset[str]:
        """Return the allocated claims of pending pods of the queue that nothing else uses: their devices are free."""
        return frozenset(
            name
            for name, claim in self._claims.items()
            if (claim.consumers or name in self._pending_claims)
            and not self._staying_consumers.get(name, claim.consumers)
            and all(self._is_pending_by_pod.get(consumer, True) for consumer in claim.consumers)
        )

    def find_error(self, pod: Pod) -> str:
        """Return why the claims of *pod* cannot be planned, with the fix; "" if they can."""
        return next((error for claim in pod.spec.resource_claims if (error := self._find_claim_error(pod, claim))), "")

    def build_demand(self, pod: Pod) -> DeviceDemand | None:
        """Return the claims of *pod* that are to be allocated; None if there are none."""
        shared_specs: dict[str, ClaimSpec] = {}
        generated_specs: list[ClaimSpec] = []
        for pod_claim in pod.spec.resource_claims:
            name, spec = self._resolve(pod, pod_claim)
            if spec is None or self._is_pinned(name) or not spec.requests:
                continue
            if pod_claim.claim:
                shared_specs[name] = self.add_class_selectors(spec)
            else:
                generated_specs.append(self.add_class_selectors(spec))
        if not shared_specs and not generated_specs:
            return None
        return DeviceDemand(shared=tuple(shared_specs.items()), generated=tuple(generated_specs))

    def restrict_alternatives(self, pod: Pod, alternatives: tuple[Requirements, ...]) -> tuple[Requirements, ...]:
        """Return *alternatives*, of which any is enough, restricted to the nodes of the pod's allocated claims."""
        choices = [alternatives, *self._list_pinned_terms(pod)]
        joint_requirements = (_intersect(combination) for combination in product(*choices))
        return tuple(dict.fromkeys(requirements for requirements in joint_requirements if requirements is not None))

    def _is_staying(self, consumer: str, active_pods: set[str]) -> bool:
        """Return whether *consumer* keeps the claim: a pod that is not in the queue, or no pod at all."""
        if " " in consumer:
            return True
        return consumer in active_pods and consumer not in self._is_pending_by_pod

    def _is_pinned(self, name: str) -> bool:
        claim = self._claims.get(name)
        return claim is not None and claim.allocation is not None and bool(self._staying_consumers.get(name))

    def _list_pinned_terms(self, pod: Pod) -> Iterator[tuple[Requirements, ...]]:
        for pod_claim in pod.spec.resource_claims:
            name, _ = self._resolve(pod, pod_claim)
            claim = self._claims.get(name)
            if claim is None or claim.allocation is None or not self._is_pinned(name):
                continue
            terms = claim.allocation.terms or (ANYTHING,)
            if claim.allocation.node_names:
                hosts = frozenset(self._host_by_node.get(node, node) for node in claim.allocation.node_names)
                host_requirements = Requirements(items=(Requirement(key=HOSTNAME, values=hosts),))
                terms = tuple(term & host_requirements for term in terms)
            yield terms

    def _resolve(self, pod: Pod, pod_claim: PodClaim) -> tuple[str, ClaimSpec | None]:
        """Return the name of the claim ("" if it does not exist yet), and its spec; None if there is none."""
        namespace = pod.meta.namespace
        generated_name = dict(pod.claim_names).get(pod_claim.name, "")
        name = f"{namespace}/{pod_claim.claim or generated_name}" if pod_claim.claim or generated_name else ""
        template_spec = self._templates.get(f"{namespace}/{pod_claim.template}") if pod_claim.template else None
        if template_spec is not None and (pod.node_name or name not in self._claims):
            return "", template_spec  # a pod that moves gets a new claim
        claim = self._claims.get(name)
        return name, None if claim is None else claim.spec

    def _find_claim_error(self, pod: Pod, pod_claim: PodClaim) -> str:
        name, spec = self._resolve(pod, pod_claim)
        claim = self._claims.get(name)
        if spec is None:
            kind, missing_name = (
                ("ResourceClaim", pod_claim.claim) if pod_claim.claim else ("ResourceClaimTemplate", pod_claim.template)
            )
            return f"{kind} {missing_name} does not exist: create it"
        text = describe_pod_claim(pod_claim)
        if claim is not None and claim.meta.deleted_at is not None:
            return f"{text} is being deleted"
        if self._is_pinned(name):
            is_full = claim is not None and len(claim.consumers) >= MAX_CONSUMERS and pod.name not in claim.consumers
            return f"{text} is in use by {MAX_CONSUMERS} pods, the maximum: use another claim" if is_full else ""
        if spec.unsupported:
            return f"{text}: {spec.unsupported} is not supported by Joiner: remove the field, or add nodes yourself"
        return self._find_class_error(text, spec)

    def _find_class_error(self, text: str, spec: ClaimSpec) -> str:
        for request in (alternative for alternatives in spec.requests for alternative in alternatives):
            device_class = self._classes.get(request.device_class)
            if device_class is None:
                return f"{text}: DeviceClass {request.device_class} of request {request.name} does not exist: create it"
            if device_class.unsupported:
                return f"DeviceClass {request.device_class}: {device_class.unsupported} is not supported by Joiner"
        return ""

    def add_class_selectors(self, spec: ClaimSpec) -> ClaimSpec:
        """Return *spec* whose requests have the selectors of their device class too; all classes must exist."""
        return replace(
            spec,
            requests=tuple(
                tuple(_add_selectors(request, self._classes) for request in alternatives)
                for alternatives in spec.requests
            ),
        )


def describe_pod_claim(pod_claim: PodClaim) -> str:
    """Return kind and name of what *pod_claim* refers to."""
    return f"ResourceClaim {pod_claim.claim}" if pod_claim.claim else f"ResourceClaimTemplate {pod_claim.template}"


def _add_selectors(request: DeviceRequest, classes: Mapping[str, DeviceClass]) -> DeviceRequest:
    return replace(request, selectors=(*classes[request.device_class].selectors, *request.selectors))


def _intersect(combination: Iterable[Requirements]) -> Requirements | None:
    intersection = ANYTHING
    for requirements in combination:
        if intersection.find_conflict(requirements):
            return None
        intersection &= requirements
    return intersection
