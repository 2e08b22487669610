"""Classifies paths of the Kubernetes API, and builds the path of one page of a collection."""

import re
from typing import Final
from urllib.parse import urlencode

from shared.model.decisions.action import Kind

_OBJECT_PATTERN: Final = re.compile(
    r"(?:/api/[^/]+|/apis/[^/]+/[^/]+)"
    r"(?:/namespaces/[^/]+/[^/]+/[^/]+|/(?!namespaces/[^/]+/)[^/]+/[^/]+)"
)


def is_object(path: str) -> bool:
    """Return whether *path* names one object, not a collection or a subresource.

    >>> [is_object(f"/api/v1/{end}") for end in ("namespaces/shop", "namespaces/shop/pods/cart", "nodes/a")]
    [True, True, True]
    >>> [is_object(f"/api/v1/{end}") for end in ("namespaces", "namespaces/shop/pods", "nodes", "nodes/a/status")]
    [False, False, False, False]
    """
    return bool(_OBJECT_PATTERN.fullmatch(path))


def build_list_path(path: str, *, label_selector: str, field_selector: str, limit: int, continue_token: str) -> str:
    """Return *path* with the query for one page; empty parameters and a *limit* of 0 are omitted.

    >>> build_list_path("/api/v1/pods", label_selector="a=b", field_selector="", limit=2, continue_token="")
    '/api/v1/pods?labelSelector=a%3Db&limit=2'
    >>> build_list_path("/api/v1/pods", label_selector="", field_selector="", limit=0, continue_token="")
    '/api/v1/pods'
    """
    query = {
        "labelSelector": label_selector,
        "fieldSelector": field_selector,
        "limit": str(limit) if limit else "",
        "continue": continue_token,
    }
    query_text = urlencode({name: value for name, value in query.items() if value})
    return f"{path}?{query_text}" if query_text else path


CRD_KIND: Final = "CustomResourceDefinition"
COLLECTION_PATHS: Final[dict[str, str]] = {
    "Node": "/api/v1/nodes",
    "NodeClaim": "/apis/karpenter.sh/v1/nodeclaims",
    "NodePool": "/apis/karpenter.sh/v1/nodepools",
    "EC2NodeClass": "/apis/karpenter.k8s.aws/v1/ec2nodeclasses",
    "NodeOverlay": "/apis/karpenter.sh/v1alpha1/nodeoverlays",
    "ProvisioningRequest": "/apis/autoscaling.x-k8s.io/v1/provisioningrequests",
    "CapacityBuffer": "/apis/autoscaling.x-k8s.io/v1beta1/capacitybuffers",
}


def build_object_path(kind: Kind, name: str, namespace: str = "") -> str:
    """Return the API path of the object *name*."""
    collection = COLLECTION_PATHS[kind]
    if namespace:
        version, _, plural = collection.rpartition("/")
        collection = f"{version}/namespaces/{namespace}/{plural}"
    return f"{collection}/{name}"
