"""A kubectl-like client on the `Kube` port: apply, scale, delete, list."""

from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any, Final

import msgspec
import yaml

from shared.crds.definitions import read_crds
from shared.errors import Conflict, NotFound
from shared.ports.kubernetes import Kube
from sim.cluster.controller_runtime.object_conditions import is_true

CRDS_PATH: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NODES_PATH: Final = "/api/v1/nodes"
PODS_PATH: Final = "/api/v1/pods"
NODE_CLAIMS_PATH: Final = "/apis/karpenter.sh/v1/nodeclaims"
_CLUSTER_SCOPED_KINDS: Final = {
    *("APIService", "CSIDriver", "CSINode", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"),
    *("EC2NodeClass", "MutatingWebhookConfiguration", "Namespace", "Node", "NodeClaim", "NodePool"),
    *("PersistentVolume", "PriorityClass", "StorageClass", "ValidatingWebhookConfiguration"),
}
"""Kinds without a namespace."""
_IES_PLURAL_ENDINGS: Final = ("Policy", "Registry", "Capacity")

Manifest = dict[str, Any]


class KubectlClient:
    """Works with manifests, as a person with a kubeconfig does."""

    def __init__(self, kube: Kube) -> None:
        """Send requests through *kube*."""
        self.kube = kube

    def apply(self, manifest: Manifest) -> Manifest:
        """Create the object of *manifest*, or merge it into the existing object; return the stored object.

        Raises:
            NotFound: its kind is not served.
            Invalid: a validation rule rejects it.
        """
        path, body = get_collection_path(manifest), msgspec.json.encode(manifest)
        try:
            response_body = self.kube.create(path, body)
        except Conflict:
            response_body = self.kube.patch(f"{path}/{manifest['metadata']['name']}", body)
        stored_object: Manifest = msgspec.json.decode(response_body)
        return stored_object

    def apply_all(self, manifests: Iterable[Manifest]) -> None:
        """Apply each manifest, in order."""
        for manifest in manifests:
            self.apply(manifest)

    def scale(self, kind: str, name: str, replicas: int, namespace: str = "default") -> None:
        """Set the replicas of a Deployment, ReplicaSet or StatefulSet."""
        manifest = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"namespace": namespace}}
        body = msgspec.json.encode({"spec": {"replicas": replicas}})
        self.kube.patch(f"{get_collection_path(manifest)}/{name}", body)

    def delete(self, manifest: Manifest) -> None:
        """Delete the object of *manifest*; if it is already gone, that is no error."""
        try:
            self.kube.delete(f"{get_collection_path(manifest)}/{manifest['metadata']['name']}")
        except NotFound:
            return

    def list_objects(self, path: str, field_selector: str = "") -> list[Manifest]:
        """Return all objects of the collection at *path*, sorted by namespace, then name."""
        objects: list[Manifest] = []
        continue_token = ""
        while True:
            response_body = self.kube.list(path, field_selector=field_selector, continue_token=continue_token)
            page = msgspec.json.decode(response_body)
            objects += page["items"]
            continue_token = page["metadata"].get("continue", "")
            if not continue_token:
                return objects

    def apply_crds(self) -> None:
        """Apply our CustomResourceDefinitions."""
        self.apply_all(yaml.safe_load(crd_text) for crd_text in read_crds())

    def apply_rbac(self) -> None:
        """Apply the permissions of the functions: a ClusterRole and its binding to the group that a deployment uses."""
        text = files("shared.installer").joinpath("rbac.yaml").read_text(encoding="utf-8")
        self.apply_all(yaml.safe_load_all(text))

    def has_crds(self) -> bool:
        """Return whether our CRDs are Established and their collections can be listed: the former happens first."""
        stored_crds = {stored_crd["metadata"]["name"]: stored_crd for stored_crd in self.list_objects(CRDS_PATH)}
        our_crds = [yaml.safe_load(crd_text) for crd_text in read_crds()]
        return all(
            is_true(stored_crds.get(crd["metadata"]["name"], {}), "Established") and self._can_list(crd)
            for crd in our_crds
        )

    def _can_list(self, crd: Manifest) -> bool:
        spec = crd["spec"]
        try:
            self.kube.list(f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}", limit=1)
        except NotFound:
            return False
        return True


def get_collection_path(manifest: Mapping[str, Any]) -> str:
    """Return the path of the collection of *manifest*; the default namespace is `default`.

    >>> get_collection_path({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}})
    '/apis/apps/v1/namespaces/default/deployments'
    >>> get_collection_path({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "web"}})
    '/apis/karpenter.k8s.aws/v1/ec2nodeclasses'
    """
    api_version, kind = manifest["apiVersion"], manifest["kind"]
    api_path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    if kind in _CLUSTER_SCOPED_KINDS:
        return f"{api_path}/{_get_plural(kind)}"
    return f"{api_path}/namespaces/{manifest['metadata'].get('namespace', 'default')}/{_get_plural(kind)}"


def _get_plural(kind: str) -> str:
    lower_kind = kind.lower()
    if kind.endswith(_IES_PLURAL_ENDINGS):
        return f"{lower_kind[:-1]}ies"
    return f"{lower_kind}es" if lower_kind.endswith("s") else f"{lower_kind}s"
