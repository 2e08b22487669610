"""A bundle that Argo CD applies, on a real API server: no conflict with the installer or with Joiner."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from infra.settings.settings import StackOptions
from infra.stack.bundle_files import ARGO_CD_FOLDER, OBJECTS_FOLDER, build_bundle
from infra.stack.bundle_output import write_folder
from shared.apply.kubernetes.writes import patch_metadata, patch_status, restart_deployment, scale_workload
from shared.installer.manifests import build_manifest_path
from shared.kubernetes.client import KubeClient
from shared.model.core.labels import NODECLASS_FINALIZER
from shared.model.decisions.action import PatchMetadata, PatchStatus, RestartDeployment, ScaleWorkload
from tests.contract.kube_front import wait_until
from tests.contract.kubernetes.test_crds import make_node_class, make_node_pool
from tests.controlplane.plane import API_ONLY, ControlPlane
from tests.controlplane.server_side_apply import (
    ARGO_CD_MANAGER,
    JOINER_MANAGER,
    ApplyFailed,
    ServerSideApplier,
    decode_object,
    find_undocumented_fields,
    list_fields,
    read_documented_fields,
)
from tests.infra.installations import parse_release_manifests
from tests.infra.kustomize import build_overlay
from tests.kubernetes.cli.test_installer import is_served, make_stack

pytestmark = [pytest.mark.loopback, pytest.mark.controlplane]

TEMPLATE: Final = json.dumps({"Parameters": {}, "Outputs": {}, "Resources": {}}).encode()
POOL: Final = "/apis/karpenter.sh/v1/nodepools/a"
CLASS: Final = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses/a"
DEPLOYMENT: Final = "/apis/apps/v1/namespaces/default/deployments/web"
WEB: Final[dict[str, Any]] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web"}]},
        },
    },
}


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A cluster without any installation."""
    with ControlPlane(parts=API_ONLY) as plane:
        yield plane


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    write_folder(folder, build_bundle(StackOptions(cluster="prod"), TEMPLATE, []))
    return folder


@pytest.fixture(scope="module")
def argo_cd(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> ServerSideApplier:
    kubeconfig = tmp_path_factory.mktemp("kubeconfig") / "config"
    kubeconfig.write_text(plane.build_kubeconfig(), encoding="utf-8")
    return ServerSideApplier(kubeconfig)


@pytest.fixture(scope="module")
def kube(plane: ControlPlane, argo_cd: ServerSideApplier, bundle: Path) -> KubeClient:
    """A client of the cluster, in which Argo CD has applied the bundle."""
    client = plane.get_client()
    argo_cd.apply_kustomization(bundle / ARGO_CD_FOLDER)
    for manifest in parse_release_manifests():
        if manifest["kind"] == "CustomResourceDefinition":
            wait_until(lambda one=manifest: is_served(client, one))  # type: ignore[misc] # bound now
    return client


def read_objects(kube: KubeClient) -> dict[str, dict[str, Any]]:
    """Return the objects of the bundle without their status, which the API server writes."""
    paths = map(build_manifest_path, parse_release_manifests())
    documents = {path: decode_object(kube.read(path)) for path in paths}
    for document in documents.values():
        document.pop("status", None)
        metadata = document["metadata"]
        del metadata["resourceVersion"]
        metadata["managedFields"] = [entry for entry in metadata["managedFields"] if "subresource" not in entry]
    return documents


@pytest.mark.parametrize("folder", [OBJECTS_FOLDER, ARGO_CD_FOLDER])
def test_kustomize_builds_the_objects_that_the_other_tests_use(
    folder: str, argo_cd: ServerSideApplier, bundle: Path
) -> None:
    def get_key(manifest: dict[str, Any]) -> tuple[str, str]:
        return manifest["kind"], manifest["metadata"]["name"]

    objects = argo_cd.build(bundle / folder)
    assert sorted(objects, key=get_key) == sorted(build_overlay(bundle / folder), key=get_key)


def test_second_apply_changes_nothing(kube: KubeClient, argo_cd: ServerSideApplier, bundle: Path) -> None:
    before = read_objects(kube)
    output = argo_cd.apply_kustomization(bundle / ARGO_CD_FOLDER)
    assert output.count(" serverside-applied\n") == len(before)
    assert read_objects(kube) == before
    for document in before.values():
        assert {entry["manager"] for entry in document["metadata"]["managedFields"]} == {ARGO_CD_MANAGER}


@pytest.mark.parametrize("properties", [{}, {"ClusterObjects": "external"}], ids=["stack", "external"])
def test_stack_accepts_the_applied_objects_and_writes_nothing(properties: dict[str, str], kube: KubeClient) -> None:
    before = read_objects(kube)
    assert make_stack(kube).ask("Create", **properties) == ("SUCCESS", "no changes")
    assert read_objects(kube) == before


def test_argo_cd_and_joiner_write_different_fields(kube: KubeClient, argo_cd: ServerSideApplier) -> None:
    manifests = [make_node_class("a"), make_node_pool("a", limits={"cpu": "100"})]
    argo_cd.apply_objects(manifests)
    hashes = (("karpenter.k8s.aws/ec2nodeclass-hash", "1"), ("karpenter.k8s.aws/ec2nodeclass-hash-version", "v4"))
    patch_metadata(
        PatchMetadata(kind="EC2NodeClass", name="a", annotations=hashes, finalizers=(NODECLASS_FINALIZER,)), kube
    )
    hashes = (("karpenter.sh/nodepool-hash", "1"), ("joiner.dev/early-ends", "[]"))
    patch_metadata(PatchMetadata(kind="NodePool", name="a", annotations=hashes), kube)
    patch_status(PatchStatus(kind="NodePool", name="a", status='{"resources": {"cpu": "4"}}'), kube)
    written_objects = {path: decode_object(kube.read(path)) for path in (POOL, CLASS)}
    documented = read_documented_fields()
    for manifest in written_objects.values():
        assert list_fields(manifest, JOINER_MANAGER)
        assert not list_fields(manifest, JOINER_MANAGER) & list_fields(manifest, ARGO_CD_MANAGER)
        assert find_undocumented_fields(manifest, documented) == set()
    argo_cd.apply_objects(manifests)
    assert {path: decode_object(kube.read(path)) for path in written_objects} == written_objects


def scale_and_restart(kube: KubeClient, replicas: int) -> dict[str, Any]:
    """Scale the Deployment as a schedule does, and restart it as a surge drain does; return it."""
    version = decode_object(kube.read(DEPLOYMENT))["metadata"]["resourceVersion"]
    scale = ScaleWorkload(
        kind="Deployment", namespace="default", name="web", resource_version=version, replicas=replicas, memory="3"
    )
    scale_workload(scale, kube)
    version = decode_object(kube.read(DEPLOYMENT))["metadata"]["resourceVersion"]
    restart = f"command at {replicas}"
    restart_deployment(
        RestartDeployment(namespace="default", name="web", resource_version=version, restart=restart), kube
    )
    return decode_object(kube.read(DEPLOYMENT))


def test_scaled_workload_keeps_its_replicas_only_if_argo_cd_does_not_apply_them(
    kube: KubeClient, argo_cd: ServerSideApplier
) -> None:
    """The API server records no manager of `spec.replicas` when a workload is scaled to zero."""
    spec = {key: value for key, value in WEB["spec"].items() if key != "replicas"}
    argo_cd.apply_objects([WEB])
    for replicas in (1, 0):
        scaled = scale_and_restart(kube, replicas)
        assert ("spec.replicas" in list_fields(scaled, JOINER_MANAGER)) == (replicas > 0)
        assert find_undocumented_fields(scaled, read_documented_fields()) == set()
        argo_cd.apply_objects([{**WEB, "spec": spec}])
        assert decode_object(kube.read(DEPLOYMENT))["spec"] == scaled["spec"]
    argo_cd.apply_objects([WEB])
    assert decode_object(kube.read(DEPLOYMENT))["spec"]["replicas"] == 3
    scale_and_restart(kube, 1)
    with pytest.raises(ApplyFailed, match=r'conflict with "joiner".*\.spec\.replicas'):
        argo_cd.apply_objects([WEB])
