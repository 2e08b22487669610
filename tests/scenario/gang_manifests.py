"""Objects of Kueue and scheduler-plugins, and definitions of their kinds without a schema."""

from typing import Final

from tests.scenario.worlds import Json, make_deployment

REQUESTS: Final = "provisioningrequests.autoscaling.x-k8s.io"
NODE_PER_POD: Final = "3"
"""An m5.xlarge has room for one pod with this many CPUs."""


def make_definition(group: str, version: str, kind: str) -> Json:
    """Return a CustomResourceDefinition that allows every field."""
    singular = kind.lower()
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    served_version = {
        "name": version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": schema,
    }
    names = {"kind": kind, "plural": f"{singular}s", "singular": singular}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{singular}s.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [served_version]},
    }


def make_request(count: int) -> list[Json]:
    """Return a ProvisioningRequest and its PodTemplate."""
    template = make_deployment(1, cpu=NODE_PER_POD)["spec"]["template"]
    metadata = {"name": "train", "namespace": "default"}
    request = {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": metadata,
        "spec": {
            "provisioningClassName": "best-effort-atomic-scale-up.autoscaling.x-k8s.io",
            "podSets": [{"podTemplateRef": {"name": "train"}, "count": count}],
        },
    }
    return [{"apiVersion": "v1", "kind": "PodTemplate", "metadata": metadata, "template": template}, request]


def make_pod_group(min_member: int) -> Json:
    """Return a PodGroup of scheduler-plugins."""
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"minMember": min_member},
    }
