"""What a person does with kubectl, through the `Kube` port: apply, scale, delete, look."""

from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any, Final

import msgspec
import yaml

from shared.errors import Conflict, Gone
from shared.kube.definitions import definitions
from shared.ports import Kube

DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NODES: Final = "/api/v1/nodes"
PODS: Final = "/api/v1/pods"
NODE_CLAIMS: Final = "/apis/karpenter.sh/v1/nodeclaims"
_OF_THE_CLUSTER: Final = {
    "APIService",
    "CSIDriver",
    "CSINode",
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "EC2NodeClass",
    "MutatingWebhookConfiguration",
    "Namespace",
    "Node",
    "NodeClaim",
    "NodePool",
    "PersistentVolume",
    "PriorityClass",
    "StorageClass",
    "ValidatingWebhookConfiguration",
}
"""Kinds without a namespace."""
_IES: Final = ("Policy", "Registry", "Capacity")

Manifest = dict[str, Any]


class Desk:
    """Somebody with a kubeconfig."""

    def __init__(self, kube: Kube) -> None:
        """Work through *kube*."""
        self.kube = kube

    def apply(self, manifest: Manifest) -> Manifest:
        """Create what *manifest* describes, or merge it into what is there; answer what is stored.

        Raises:
            Gone: its kind is not served.
            Invalid: a rule refuses it.
        """
        path, body = collection_of(manifest), msgspec.json.encode(manifest)
        try:
            stored = self.kube.create(path, body)
        except Conflict:
            stored = self.kube.patch(f"{path}/{manifest['metadata']['name']}", body)
        answer: Manifest = msgspec.json.decode(stored)
        return answer

    def apply_all(self, manifests: Iterable[Manifest]) -> None:
        """`apply` each, in order."""
        for manifest in manifests:
            self.apply(manifest)

    def scale(self, kind: str, name: str, replicas: int, namespace: str = "default") -> None:
        """Set the replicas of a Deployment, ReplicaSet or StatefulSet."""
        manifest = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"namespace": namespace}}
        body = msgspec.json.encode({"spec": {"replicas": replicas}})
        self.kube.patch(f"{collection_of(manifest)}/{name}", body)

    def delete(self, manifest: Manifest) -> None:
        """Delete what *manifest* names; that it is gone already is no error."""
        try:
            self.kube.delete(f"{collection_of(manifest)}/{manifest['metadata']['name']}")
        except Gone:
            return

    def look(self, path: str, field_selector: str = "") -> list[Manifest]:
        """Answer all objects of the collection at *path*, by namespace, then name."""
        found: list[Manifest] = []
        token = ""
        while True:
            answer = self.kube.list(path, field_selector=field_selector, continue_token=token)
            page = msgspec.json.decode(answer)
            found += page["items"]
            token = page["metadata"].get("continue", "")
            if not token:
                return found

    def define(self) -> None:
        """Apply our CustomResourceDefinitions."""
        self.apply_all(yaml.safe_load(each) for each in definitions())

    def grant(self) -> None:
        """Apply what the functions may do: a ClusterRole, bound to the group that a deployment puts them in."""
        text = files("shared.kube").joinpath("rbac.yaml").read_text(encoding="utf-8")
        self.apply_all(yaml.safe_load_all(text))

    def is_defined(self) -> bool:
        """Whether our definitions are Established and their collections answer: the one comes before the other."""
        found = {one["metadata"]["name"]: one for one in self.look(DEFINITIONS)}
        ours = [yaml.safe_load(each) for each in definitions()]
        return all(_is_established(found.get(one["metadata"]["name"], {})) and self._answers(one) for one in ours)

    def _answers(self, definition: Manifest) -> bool:
        spec = definition["spec"]
        try:
            self.kube.list(f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}", limit=1)
        except Gone:
            return False
        return True


def collection_of(manifest: Mapping[str, Any]) -> str:
    """Answer the path of the collection that *manifest* belongs to; without a namespace: `default`.

    >>> collection_of({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}})
    '/apis/apps/v1/namespaces/default/deployments'
    >>> collection_of({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "web"}})
    '/apis/karpenter.k8s.aws/v1/ec2nodeclasses'
    """
    version, kind = manifest["apiVersion"], manifest["kind"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    if kind in _OF_THE_CLUSTER:
        return f"{root}/{_plural(kind)}"
    return f"{root}/namespaces/{manifest['metadata'].get('namespace', 'default')}/{_plural(kind)}"


def _plural(kind: str) -> str:
    small = kind.lower()
    if kind.endswith(_IES):
        return f"{small[:-1]}ies"
    return f"{small}es" if small.endswith("s") else f"{small}s"


def _is_established(definition: Mapping[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
