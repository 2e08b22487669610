"""The Terraform module: its inputs, the template and the outputs agree, and Terraform itself evaluates its checks.

The providers of AWS and Kubernetes are not available offline. So `terraform` evaluates all files of the module except
the resources of these providers; their arguments are compared with the index of a bundle and with the template.
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hcl2.api import loads as parse_hcl

from infra.settings.settings import StackOptions
from infra.stack.bundle import write_bundle
from infra.stack.publish import BUCKET_PARAMETER, TEMPLATE_FILENAME
from tests.guide.pages import ROOT

MODULE: Final = ROOT / "examples" / "terraform"
TERRAFORM: Final = shutil.which("terraform") or shutil.which("tofu")
needs_terraform: Final = pytest.mark.skipif(TERRAFORM is None, reason="neither terraform nor tofu is on PATH")
PURE_FILES: Final = ("variables.tf", "bundle.tf")
"""The files without resources of a provider that is not built in."""
STAND_IN: Final = """
locals {
  region     = "eu-central-1"
  dns_suffix = "amazonaws.com"
  account    = "111122223333"
}

output "results" {
  value = {
    digest       = terraform_data.bundle.output
    stack_name   = local.stack_name
    template_key = local.template_key
    template_url = local.template_url
    assets       = { for key, asset in local.assets : key => asset.file }
  }
}
"""
"""Instead of account.tf, and outputs that show the computed values."""
INPUTS: Final[dict[str, Any]] = {"cluster": "prod", "assets_bucket": "releases"}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("terraform")
    write_bundle(StackOptions(cluster="prod"), root / "bundle", root / "assets", bundle=False)
    return root / "bundle"


@pytest.fixture
def changed_bundle(bundle: Path, tmp_path: Path) -> Callable[..., str]:
    """Return a function that copies the bundle, changes its index, and returns the folder of the copy."""

    def change(**changes: object) -> str:
        copy = tmp_path / "changed"
        shutil.copytree(bundle, copy)
        index = json.loads((copy / "bundle.json").read_text())
        (copy / "bundle.json").write_text(json.dumps({**index, **changes}))
        return str(copy)

    return change


def read_blocks(kind: str, folder: Path = MODULE) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the labels, joined by dots, and the content of each block of *kind* in the module in *folder*."""
    for path in sorted(folder.glob("*.tf")):
        for block in parse_hcl(path.read_text(encoding="utf-8")).get(kind, ()):
            [(label, content)] = block.items()
            if kind == "resource":
                [(name, content)] = content.items()
                label = f"{label}.{name}"
            yield label, content


def list_blocks(kind: str, folder: Path = MODULE) -> dict[str, dict[str, Any]]:
    return dict(read_blocks(kind, folder))


ARGUMENTS: Final = {
    "aws_cloudformation_stack": {
        *("capabilities", "depends_on", "iam_role_arn", "name", "parameters", "tags", "template_url", "timeouts"),
    },
    "aws_s3_object": {
        *("bucket", "content_type", "depends_on", "for_each", "key", "lifecycle", "source", "source_hash", "tags"),
    },
    "kubernetes_manifest": {"depends_on", "field_manager", "for_each", "lifecycle", "manifest"},
    "terraform_data": {"input", "lifecycle"},
}
"""Arguments that the providers document, of those that the module may use."""


@pytest.mark.parametrize("folder", [MODULE, MODULE / "cluster-objects"], ids=lambda folder: folder.name)
def test_resources_have_documented_arguments_only(folder: Path) -> None:
    for address, resource in read_blocks("resource", folder):
        assert resource.keys() <= ARGUMENTS[address.partition(".")[0]], address


def test_module_passes_every_parameter_of_the_template_and_no_other(bundle: Path) -> None:
    template = json.loads((bundle / TEMPLATE_FILENAME).read_text())
    stack = list_blocks("resource")["aws_cloudformation_stack.joiner"]
    parameters = {key: value for key, value in stack["parameters"].items() if not key.startswith("__")}
    assert parameters == {BUCKET_PARAMETER: "${var.assets_bucket}"}
    assert {name: value["Type"] for name, value in template["Parameters"].items()} == dict.fromkeys(
        parameters, "String"
    )
    variable = list_blocks("variable")["assets_bucket"]
    assert variable["type"] == "string"
    assert template["Parameters"][BUCKET_PARAMETER]["AllowedPattern"] in variable["validation"][0]["condition"]


def test_module_outputs_exist_in_the_template(bundle: Path) -> None:
    template = json.loads((bundle / TEMPLATE_FILENAME).read_text())
    values = "".join(output["value"] for _, output in read_blocks("output"))
    names = {part.partition('"')[0] for part in values.split('outputs["')[1:]}
    assert names == {"Installed", "JoinerBucketName", "JoinerInstanceProfile"}
    assert names <= template["Outputs"].keys()
    assert 'lookup(aws_cloudformation_stack.joiner.outputs, "WindowsInstanceProfile", null)' in values


def test_every_input_and_output_has_a_description_and_every_input_a_type() -> None:
    for folder in (MODULE, MODULE / "cluster-objects", MODULE / "example"):
        for kind in ("variable", "output"):
            for name, block in read_blocks(kind, folder):
                assert len(block["description"]) > 10, name
                assert kind == "output" or block["type"] in ("string", "${map(string)}"), name


def test_example_sets_inputs_that_the_module_has() -> None:
    example = list_blocks("module", MODULE / "example")["joiner"]
    inputs = example.keys() - {"source"}
    variables = list_blocks("variable")
    assert inputs <= variables.keys()
    assert {name for name, variable in variables.items() if "default" not in variable} <= inputs


def test_crds_are_never_destroyed_and_precede_other_objects() -> None:
    resources = list_blocks("resource", MODULE / "cluster-objects")
    [lifecycle] = resources["kubernetes_manifest.definitions"]["lifecycle"]
    assert lifecycle["prevent_destroy"] is True
    assert resources["kubernetes_manifest.others"]["depends_on"] == ["${kubernetes_manifest.definitions}"]


def test_previous_files_stay_until_the_stack_is_updated() -> None:
    resources = list_blocks("resource")
    for name in ("assets", "template"):
        [lifecycle] = resources[f"aws_s3_object.{name}"]["lifecycle"]
        assert lifecycle["create_before_destroy"] is True


@needs_terraform
def test_terraform_files_are_formatted() -> None:
    result = run_terraform(MODULE, "fmt", "-check", "-recursive", "-list=true")
    assert (result.returncode, result.stdout) == (0, "")


def run_terraform(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    assert TERRAFORM is not None
    return subprocess.run([TERRAFORM, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=120)


def apply_module(folder: Path, inputs: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """Apply the module without the resources of other providers, in *folder*."""
    folder.mkdir()
    for name in PURE_FILES:
        shutil.copy(MODULE / name, folder)
    (folder / "stand_in.tf").write_text(STAND_IN)
    (folder / "terraform.tfvars.json").write_text(json.dumps(inputs))
    initialization = run_terraform(folder, "init", "-no-color", "-input=false")
    assert initialization.returncode == 0, initialization.stderr
    return run_terraform(folder, "apply", "-no-color", "-input=false", "-auto-approve")


@needs_terraform
def test_terraform_computes_names_and_urls_from_the_bundle(bundle: Path, tmp_path: Path) -> None:
    inputs = {**INPUTS, "bundle": str(bundle), "assets_folder": str(bundle.with_name("assets"))}
    process = apply_module(tmp_path / "module", inputs)
    assert process.returncode == 0, process.stderr
    results = json.loads(run_terraform(tmp_path / "module", "output", "-json", "results").stdout)
    index = json.loads((bundle / "bundle.json").read_text())
    key = f"joiner/{index['digest']}/joiner.template.json"
    assert results == {
        "digest": index["digest"],
        "stack_name": "joiner-prod",
        "template_key": key,
        "template_url": f"https://releases.s3.eu-central-1.amazonaws.com/{key}",
        "assets": {asset["key"]: asset["file"] for asset in index["assets"]},
    }


@needs_terraform
@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"cluster": "a b"}, "cluster must be the name of an EKS cluster"),
        ({"assets_bucket": "s3://releases"}, "assets_bucket must be the name of an S3 bucket"),
        ({"bundle": "/nowhere"}, "bundle must be a folder with bundle.json"),
        ({"stack_name": "1-stack"}, "stack_name must start with a letter"),
        ({"iam_role_arn": "deployer"}, "iam_role_arn must be the ARN of an IAM role"),
        ({"cluster": "dev"}, "is the bundle of the cluster prod"),
    ],
)
def test_terraform_rejects_invalid_inputs(inputs: dict[str, Any], message: str, bundle: Path, tmp_path: Path) -> None:
    process = apply_module(tmp_path / "module", {**INPUTS, "bundle": str(bundle), **inputs})
    assert process.returncode == 1
    assert message in " ".join(process.stderr.replace("│", "").split())


@needs_terraform
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "Other"}, "bundle.json has another format"),
        ({"account": "999999999999"}, "The bundle is for the account 999999999999"),
        ({"region": "us-east-1"}, "The bundle is for the region us-east-1"),
        (
            {"stack": {"name": "joiner-prod", "template": {"file": "joiner.template.json", "sha256": "0"}}},
            "was changed after `make bundle` wrote it",
        ),
    ],
)
def test_terraform_rejects_a_bundle_of_another_place_or_with_changes(
    changes: dict[str, object], message: str, changed_bundle: Callable[..., str], tmp_path: Path
) -> None:
    process = apply_module(tmp_path / "module", {**INPUTS, "bundle": changed_bundle(**changes)})
    assert process.returncode == 1
    assert message in " ".join(process.stderr.replace("│", "").split())
