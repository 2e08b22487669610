"""The second deployment of the test: from a bundle, as Terraform and Argo CD deploy it.

Argo CD's part is `kubectl apply --server-side` of the overlay in the bundle. Terraform's part is the request that the
module in examples/terraform describes: its provider is not available offline.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from infra.stack.bundle_files import ARGO_CD_FOLDER, INDEX_FILENAME
from sim.playground.kubectl import CRDS_PATH, Manifest
from tests.contract.account_left import list_account_resources
from tests.controlplane.server_side_apply import (
    ARGO_CD_MANAGER,
    JOINER_MANAGER,
    ServerSideApplier,
    find_undocumented_fields,
    list_fields,
    read_documented_fields,
)
from tests.e2e.cdk import ExpectationFailed
from tests.e2e.check_step import LATE_SCHEDULE_ERROR, build_check
from tests.e2e.libraries import ROOT
from tests.e2e.stage import CLUSTER, NODE_CLASSES, NODE_POOLS, Stage
from tests.e2e_aws.steps.step import Step

BUCKET: Final = "joiner-releases"
SETTINGS: Final = "on-destroy: purge\ndisruption: active\ncluster-objects: external\n"
PODS: Final = 3


class BundleChecks:
    """Deploys a bundle to the stage, and checks that Argo CD and Joiner do not change each other's fields."""

    def __init__(self, stage: Stage, stack_name: str) -> None:
        """Deploy to *stage*, as the stack *stack_name*."""
        self._stage, self._stack_name = stage, stack_name
        self._folder = stage.folder / "bundle"
        self._initial_resources: set[str] = set()
        self._earlier_problems: set[str] = set()
        self._manifests: list[Manifest] = []

    def deploy(self) -> str:
        """Write the bundle, apply its cluster objects, then create its stack."""
        stage = self._stage
        self._initial_resources = set(list_account_resources(stage.account))
        self._earlier_problems = set(stage.running.list_problems())
        index = self._write_bundle()
        self._argo_cd.apply_kustomization(self._folder / ARGO_CD_FOLDER)
        stage.wait_until(stage.kubectl.has_crds, "the CRDs of the bundle are served")
        self._create_stack(index)
        _check(stage.get_outputs()["Installed"] == "no changes", "the installer writes no cluster object")
        stage.fire_all_schedules()
        return f"bundle {index['version']} {index['digest'][:12]}, {len(index['objects'])} cluster objects"

    def launch_nodes(self) -> str:
        """Let Argo CD apply a NodePool and an EC2NodeClass, and start pods that need nodes."""
        stage = self._stage
        text = (ROOT / "examples" / "getting-started.yaml").read_text(encoding="utf-8").replace("CLUSTER", CLUSTER)
        self._manifests = [manifest for manifest in yaml.safe_load_all(text) if manifest]
        self._argo_cd.apply_objects(self._manifests)
        for manifest in yaml.safe_load_all((ROOT / "examples" / "inflate.yaml").read_text(encoding="utf-8")):
            stage.kubectl.apply(manifest)
        stage.kubectl.scale("Deployment", "inflate", PODS)
        stage.wait_until(lambda: stage.has_running_pods(PODS), "all pods run")
        stage.wait_until(stage.is_consistent, "every instance has a Node and a NodeClaim")
        return f"{PODS} pods on {len(stage.list_joiner_nodes())} nodes"

    def check_field_managers(self) -> str:
        """Check that Joiner wrote only documented fields, and that a second apply of everything changes nothing."""
        stage = self._stage
        documented, count = read_documented_fields(), 0
        kinds = {"NodePool": NODE_POOLS, "EC2NodeClass": NODE_CLASSES}
        objects = [{**item, "kind": kind} for kind, path in kinds.items() for item in stage.kubectl.list_objects(path)]
        for item in objects:
            fields = list_fields(item, JOINER_MANAGER)
            count += len(fields)
            _check(bool(fields), f"Joiner has written to the {item['kind']}")
            _check(not find_undocumented_fields(item, documented), f"only documented fields: {sorted(fields)}")
            _check(not fields & list_fields(item, ARGO_CD_MANAGER), "no field has two managers")
        before = self._read_generations()
        self._argo_cd.apply_objects(self._manifests)
        self._argo_cd.apply_kustomization(self._folder / ARGO_CD_FOLDER)
        _check(self._read_generations() == before, "a second apply changes nothing")
        return f"Joiner has written {count} fields, none of them Argo CD's"

    def remove(self) -> str:
        """Delete the stack: nodes go, the cluster objects stay until their owner deletes them."""
        stage = self._stage
        journal_bucket = stage.get_outputs()["JoinerBucketName"]
        stage.kubectl.scale("Deployment", "inflate", 0)
        stage.account.get_client("cloudformation").delete_stack(StackName=self._stack_name)
        stage.wait_until(lambda: stage.get_stack_status() == "DELETE_COMPLETE", "the stack is deleted")
        _check(stage.list_instance_ids() == [] and stage.list_joiner_nodes() == [], "no instance and no node remains")
        names = {definition["metadata"]["name"] for definition in stage.kubectl.list_objects(CRDS_PATH)}
        index = self._read_index()
        expected = {entry["name"] for entry in index["objects"] if entry["kind"] == "CustomResourceDefinition"}
        _check(expected <= names, "the CRDs stay")
        for entry in self._argo_cd.build(self._folder / ARGO_CD_FOLDER):
            stage.kubectl.delete(entry)
        self._empty_bucket()
        remaining = set(list_account_resources(stage.account)) - self._initial_resources
        _check(remaining == {f"s3 {journal_bucket}"}, f"only the bucket with the journal remains: {remaining}")
        problems = set(stage.running.list_problems()) - self._earlier_problems
        denied = sorted(problem for problem in problems if LATE_SCHEDULE_ERROR not in problem)
        _check(not denied, f"no denied, abandoned or unexpected calls: {denied}")
        return "the cluster objects stayed; only the bucket with the journal remains"

    @property
    def _argo_cd(self) -> ServerSideApplier:
        kubeconfig = self._stage.folder / "kubeconfig-argo-cd"
        kubeconfig.write_text(self._stage.build_kubeconfig(), encoding="utf-8")
        return ServerSideApplier(kubeconfig)

    def _write_bundle(self) -> dict[str, Any]:
        """Run the command behind `make bundle` while the world continues; return the index."""
        stage = self._stage
        clusters = stage.folder / "clusters"
        clusters.mkdir()
        (clusters / f"{CLUSTER}.yaml").write_text(SETTINGS, encoding="utf-8")
        command = [sys.executable, "-m", "infra.stack.bundle", "--cluster", CLUSTER, "--clusters-folder", str(clusters)]
        folders = ["--to", str(self._folder), "--assets", str(stage.folder / "assets")]
        log = stage.folder / "cdk-bundle.log"
        with log.open("wb") as output:
            process = subprocess.Popen([*command, *folders], cwd=ROOT, stdout=output, stderr=output)
        stage.wait_until(lambda: process.poll() is not None, "make bundle ends")
        _check(process.returncode == 0, f"make bundle succeeds: {log.read_text(errors='replace')[-2000:]}")
        return self._read_index()

    def _read_index(self) -> dict[str, Any]:
        index: dict[str, Any] = msgspec.json.decode((self._folder / INDEX_FILENAME).read_bytes())
        return index

    def _create_stack(self, index: dict[str, Any]) -> None:
        """Upload the files and create the stack, as the Terraform module does."""
        stage = self._stage
        s3 = stage.account.get_client("s3")
        s3.create_bucket(Bucket=BUCKET)
        for asset in index["assets"]:
            body = Path(stage.folder, "assets", asset["file"]).read_bytes()
            s3.put_object(Bucket=BUCKET, Key=asset["key"], Body=body)
        template = index["stack"]["template"]["file"]
        key = f"joiner/{index['digest']}/{template}"
        s3.put_object(Bucket=BUCKET, Key=key, Body=(self._folder / template).read_bytes())
        stage.account.get_client("cloudformation").create_stack(
            StackName=self._stack_name,
            TemplateURL=f"https://{BUCKET}.s3.{stage.account.region}.amazonaws.com/{key}",
            Parameters=[{"ParameterKey": "AssetsBucket", "ParameterValue": BUCKET}],
            Capabilities=index["stack"]["capabilities"],
        )
        stage.wait_until(lambda: stage.get_stack_status() != "CREATE_IN_PROGRESS", "the stack is created")
        _check(stage.get_stack_status() == "CREATE_COMPLETE", f"the stack is complete: {stage.get_stack_status()}")

    def _empty_bucket(self) -> None:
        s3 = self._stage.account.get_client("s3")
        for item in s3.list_objects_v2(Bucket=BUCKET).get("Contents", ()):
            s3.delete_object(Bucket=BUCKET, Key=item["Key"])
        s3.delete_bucket(Bucket=BUCKET)

    def _read_generations(self) -> dict[str, tuple[int, object]]:
        """Return generation, labels and annotations of everything that Argo CD applies, by kind and name."""
        paths = (CRDS_PATH, NODE_POOLS, NODE_CLASSES)
        objects = [item for path in paths for item in self._stage.kubectl.list_objects(path)]
        return {
            item["metadata"]["name"]: (
                item["metadata"]["generation"],
                [entry["time"] for entry in item["metadata"]["managedFields"] if entry["manager"] == ARGO_CD_MANAGER],
            )
            for item in objects
        }


def build_bundle_steps(stage: Stage, stack_name: str) -> tuple[Step, ...]:
    """Return the steps of the deployment from a bundle, on a stage without a stack of Joiner."""
    checks = BundleChecks(stage, stack_name)
    is_deployed = ("bundle-deploy",)
    return (
        build_check("bundle-deploy", checks.deploy),
        build_check("bundle-nodes", checks.launch_nodes, requires=is_deployed),
        build_check("bundle-fields", checks.check_field_managers, requires=("bundle-nodes",)),
        build_check("bundle-removal", checks.remove, requires=is_deployed),
    )


def _check(claim: bool, description: str) -> None:  # noqa: FBT001 - it reads as a sentence
    """Check that *claim* holds.

    Raises:
        ExpectationFailed: it does not hold.
    """
    if not claim:
        raise ExpectationFailed(description)
