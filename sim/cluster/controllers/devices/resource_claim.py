"""The resource claim controller: creates the claims of pods from templates, and releases claims that no pod uses."""

from typing import Final

from shared.errors import Fault
from sim.cluster.api_server.api_resources import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.controller_runtime.informer import Informer, NamespacedName, Obj, get_object_key
from sim.cluster.controller_runtime.object_conditions import is_terminal
from sim.cluster.controller_runtime.work_queue import WorkQueue
from sim.time.virtual_clock import Clock

POD_CLAIM_NAME_ANNOTATION: Final = "resource.kubernetes.io/pod-claim-name"


class ResourceClaimController:
    """Keeps the ResourceClaims of pods."""

    def __init__(self, clock: Clock, api: ApiServer, pods: Informer) -> None:
        """Watch *pods*, the templates and the claims of *api*."""
        self._api, self._pods = api, pods
        self._templates, self._claims = Informer(api, RESOURCE_CLAIM_TEMPLATES), Informer(api, RESOURCE_CLAIMS)
        self._queue: WorkQueue[NamespacedName] = WorkQueue(clock, self._sync_pod, "resource claim controller")
        self._claim_queue: WorkQueue[NamespacedName] = WorkQueue(clock, self._sync_claim, "resource claim release")
        self._templates.add_event_handler(lambda *_: self._enqueue_pods())
        self._claims.add_event_handler(lambda _event, _old, new: self._claim_queue.add(get_object_key(new)))
        pods.add_event_handler(self._handle_pod)

    def _handle_pod(self, event: str, _old: Obj | None, new: Obj) -> None:
        if not new["spec"].get("resourceClaims"):
            return
        if event == "DELETED" or is_terminal(new):
            for claim in self._claims.list_all():
                self._claim_queue.add(get_object_key(claim))
        else:
            self._queue.add(get_object_key(new))

    def _enqueue_pods(self) -> None:
        for pod in self._pods.list_all():
            if pod["spec"].get("resourceClaims"):
                self._queue.add(get_object_key(pod))

    def _sync_pod(self, key: NamespacedName) -> None:
        """Create the missing claims of a pod."""
        pod = self._pods.get(key[1], key[0])
        if pod is None or pod["metadata"].get("deletionTimestamp") or is_terminal(pod):
            return
        statuses = {item["name"]: item for item in pod["status"].get("resourceClaimStatuses") or []}
        for pod_claim in pod["spec"]["resourceClaims"]:
            if not isinstance(pod_claim, dict):
                continue  # a pod of a later version, restored without validation
            template_name = pod_claim.get("resourceClaimTemplateName")
            if not template_name or pod_claim["name"] in statuses:
                continue
            template = self._templates.get(template_name, key[0])
            if template is None:
                continue
            claim = self._create_claim(pod, pod_claim["name"], template)
            statuses[pod_claim["name"]] = {"name": pod_claim["name"], "resourceClaimName": claim["metadata"]["name"]}
            patch = {"status": {"resourceClaimStatuses": list(statuses.values())}}
            self._api.patch("pods", key[1], patch, key[0], "status")

    def _create_claim(self, pod: Obj, claim_name: str, template: Obj) -> Obj:
        metadata = pod["metadata"]
        reference = {key: metadata[key] for key in ("name", "uid")}
        owner = {"apiVersion": "v1", "kind": "Pod", **reference, "controller": True}
        new_metadata: Obj = {
            "name": f"{metadata['name']}-{claim_name}",
            "annotations": {POD_CLAIM_NAME_ANNOTATION: claim_name},
            "ownerReferences": [owner],
        }
        claim = {"metadata": new_metadata, "spec": template["spec"]["spec"]}
        return self._api.create(RESOURCE_CLAIMS, claim, metadata["namespace"])

    def _sync_claim(self, key: NamespacedName) -> None:
        """Remove pods that are gone from status.reservedFor; a claim that nothing uses loses its allocation."""
        claim = self._claims.get(key[1], key[0])
        status = (claim or {}).get("status") or {}
        reserved_for = status.get("reservedFor") or []
        remaining = [item for item in reserved_for if self._is_using(item, key[0])]
        if claim is None or remaining == reserved_for:
            return
        patch: Obj = {"reservedFor": remaining} | ({} if remaining else {"allocation": None})
        try:
            self._api.patch(RESOURCE_CLAIMS, key[1], {"status": patch}, key[0], "status")
        except Fault:
            self._claim_queue.add(key)

    def _is_using(self, consumer: Obj, namespace: str) -> bool:
        pod = self._pods.get(consumer["name"], namespace)
        return pod is not None and pod["metadata"]["uid"] == consumer["uid"] and not is_terminal(pod)
