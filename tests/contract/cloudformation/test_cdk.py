"""The unmodified `cdk` of this repository, against an account that stands in for AWS."""

import io
import json
import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from cli.doctor.preflight.runtime_versions import SUPPORTED_NODE_MAJORS, read_node_version
from tests.contract.account_left import list_account_resources
from tests.contract.account_stage import TRUST, Json, Stage

pytestmark = pytest.mark.loopback

ROOT = Path(__file__).resolve().parents[3]
ASSETS = "cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}"
ROLES = "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/cdk-hnb659fds"
BOOTSTRAP_NAME_SUFFIX = "-${AWS::AccountId}-${AWS::Region}"
BOOTSTRAP_VERSION_PARAMETER = "/cdk-bootstrap/hnb659fds/version"
CODE = "def handler(event, context): ...\n"


def write_assembly(folder: Path, name: str, resources: Json) -> Path:
    """Write a cloud assembly like that of `cdk synth`, with one file asset, `code.zip`, and the template."""
    path = folder / name
    (path / "code").mkdir(parents=True)
    (path / "code" / "index.py").write_text(f"{CODE}# {name}\n")
    (path / "s.template.json").write_text(json.dumps({"Resources": resources}))
    files = {
        "code": {
            "source": {"path": "code", "packaging": "zip"},
            "destinations": {"here": make_destination(f"{name}.zip")},
        },
        "template": {
            "source": {"path": "s.template.json", "packaging": "file"},
            "destinations": {"here": make_destination(f"{name}.json")},
        },
    }
    (path / "s.assets.json").write_text(json.dumps({"version": "38.0.0", "files": files, "dockerImages": {}}))
    needs = {"requiresBootstrapStackVersion": 6, "bootstrapStackVersionSsmParameter": BOOTSTRAP_VERSION_PARAMETER}
    stack = {
        "templateFile": "s.template.json",
        "assumeRoleArn": f"{ROLES}-deploy-role{BOOTSTRAP_NAME_SUFFIX}",
        "cloudFormationExecutionRoleArn": f"{ROLES}-cfn-exec-role{BOOTSTRAP_NAME_SUFFIX}",
        "stackTemplateAssetObjectUrl": f"s3://{ASSETS}/{name}.json",
        "additionalDependencies": ["s.assets"],
        **needs,
    }
    artifacts = {
        "s.assets": {"type": "cdk:asset-manifest", "properties": {"file": "s.assets.json", **needs}},
        "s": {
            "type": "aws:cloudformation:stack",
            "environment": "aws://unknown-account/unknown-region",
            "properties": stack,
            "dependencies": ["s.assets"],
            "displayName": "s",
        },
    }
    (path / "manifest.json").write_text(json.dumps({"version": "38.0.0", "artifacts": artifacts}))
    return path


def make_destination(key: str) -> Json:
    return {
        "bucketName": ASSETS,
        "objectKey": key,
        "assumeRoleArn": f"{ROLES}-file-publishing-role{BOOTSTRAP_NAME_SUFFIX}",
    }


def make_resources(name: str) -> Json:
    """Return a function with the asset called *name*, and a custom resource that the function answers."""
    function = {
        "Code": {"S3Bucket": {"Fn::Sub": ASSETS}, "S3Key": f"{name}.zip"},
        "Handler": "index.handler",
        "Role": {"Fn::GetAtt": ["Role", "Arn"]},
        "Runtime": "python3.13",
    }
    return {
        "Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST}},
        "Function": {"Type": "AWS::Lambda::Function", "Properties": function},
        "Thing": {
            "Type": "Custom::Thing",
            "Properties": {"ServiceToken": {"Fn::GetAtt": ["Function", "Arn"]}, "Name": name},
        },
    }


def run_cdk(stage: Stage, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `cdk` as an operator does, with nothing but the endpoint and credentials of the account."""
    variables = {"PATH": os.environ["PATH"], "HOME": str(home), "CDK_HOME": str(home), "CDK_DISABLE_VERSION_CHECK": "1"}
    command = ["npx", "--no-install", "cdk", *arguments]
    environment = {**variables, **stage.account.build_environment()}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=1800)


def test_cdk_bootstraps_deploys_updates_rolls_back_and_destroys_a_stack(stage: Stage, tmp_path: Path) -> None:
    first, second = (write_assembly(tmp_path, name, make_resources(name)) for name in ("one", "two"))
    broken = write_assembly(tmp_path, "three", make_resources("three"))

    def run(*arguments: str, app: Path = first) -> str:
        process = run_cdk(stage, tmp_path, *arguments, "--app", str(app))
        output = f"{process.returncode}: {process.stdout}{process.stderr}"
        assert process.returncode == (1 if app is broken else 0), output
        return output

    assert "bootstrapped" in run("bootstrap", "aws://123456789012/us-east-1")
    bootstrapped = list_account_resources(stage.account)

    run("deploy", "--require-approval", "never")
    assert stage.wait_until_settled("s")["RoleARN"].endswith("role/cdk-hnb659fds-cfn-exec-role-123456789012-us-east-1")
    assert [request["RequestType"] for request in stage.custom_resource_requests] == ["Create"]
    assert read_function_code(stage).endswith(b"# one\n")

    diff = run("diff", app=second)
    assert "[~] AWS::Lambda::Function Function" in diff
    assert read_function_code(stage).endswith(b"# one\n")

    run("deploy", "--require-approval", "never", app=second)
    assert [request["RequestType"] for request in stage.custom_resource_requests] == ["Create", "Update"]
    assert read_function_code(stage).endswith(b"# two\n")

    stage.respond = lambda request: {"Status": "FAILED"} if request["ResourceProperties"]["Name"] == "three" else {}
    assert "Received response status [FAILED] from custom resource" in run(
        "deploy", "--require-approval", "never", app=broken
    )
    assert stage.wait_until_settled("s")["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert read_function_code(stage).endswith(b"# two\n")

    run("destroy", "--force")
    assert stage.custom_resource_requests[-1]["RequestType"] == "Delete"
    assert list_account_resources(stage.account) == bootstrapped


def test_cdk_synth_prints_only_lines_of_the_cdk(tmp_path: Path) -> None:
    npmrc = tmp_path / "npmrc"
    npmrc.touch()
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "JSII_", "PYTHON"))}
    variables |= {"CDK_HOME": str(tmp_path), "CDK_DISABLE_VERSION_CHECK": "1", "NPM_CONFIG_USERCONFIG": str(npmrc)}
    if int(read_node_version().partition(".")[0]) not in SUPPORTED_NODE_MAJORS:
        variables["JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION"] = "20"
        variables["JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION"] = "1"
    command = [
        "npx",
        "--no-install",
        "cdk",
        "synth",
        "-c",
        "cluster=example",
        "--quiet",
        "--output",
        str(tmp_path / "out"),
    ]
    process = subprocess.run(
        command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False, timeout=1800
    )
    assert process.returncode == 0, process.stderr
    lines = f"{process.stdout}{process.stderr}".splitlines()
    assert [line for line in lines if line.strip() and not line.startswith("Bundling asset ")] == []


def read_function_code(stage: Stage) -> bytes:
    """Return the code of the only function."""
    [function] = stage.get_client("lambda").list_functions()["Functions"]
    return zipfile.ZipFile(io.BytesIO(stage.account.get_function(function["FunctionName"]).code)).read("index.py")
