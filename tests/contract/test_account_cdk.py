"""The unmodified `cdk` of this repository, and an account that it takes for AWS."""

import io
import json
import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.contract.account_left import lying_in
from tests.contract.account_stage import TRUST, Json, Stage

pytestmark = pytest.mark.loopback

ROOT = Path(__file__).resolve().parents[2]
ASSETS = "cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}"
ROLES = "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/cdk-hnb659fds"
PLACE = "-${AWS::AccountId}-${AWS::Region}"
VERSION = "/cdk-bootstrap/hnb659fds/version"
CODE = "def handler(event, context): ...\n"


def assembly(folder: Path, name: str, resources: Json) -> Path:
    """Write what `cdk synth` would, with one file asset, `code.zip`, and the template."""
    where = folder / name
    (where / "code").mkdir(parents=True)
    (where / "code" / "index.py").write_text(f"{CODE}# {name}\n")
    (where / "s.template.json").write_text(json.dumps({"Resources": resources}))
    files = {
        "code": {"source": {"path": "code", "packaging": "zip"}, "destinations": {"here": to(f"{name}.zip")}},
        "template": {
            "source": {"path": "s.template.json", "packaging": "file"},
            "destinations": {"here": to(f"{name}.json")},
        },
    }
    (where / "s.assets.json").write_text(json.dumps({"version": "38.0.0", "files": files, "dockerImages": {}}))
    needs = {"requiresBootstrapStackVersion": 6, "bootstrapStackVersionSsmParameter": VERSION}
    stack = {
        "templateFile": "s.template.json",
        "assumeRoleArn": f"{ROLES}-deploy-role{PLACE}",
        "cloudFormationExecutionRoleArn": f"{ROLES}-cfn-exec-role{PLACE}",
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
    (where / "manifest.json").write_text(json.dumps({"version": "38.0.0", "artifacts": artifacts}))
    return where


def to(key: str) -> Json:
    return {"bucketName": ASSETS, "objectKey": key, "assumeRoleArn": f"{ROLES}-file-publishing-role{PLACE}"}


def resources(name: str) -> Json:
    """Answer a function of the asset called *name*, and a custom resource that it would answer."""
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


def cdk(stage: Stage, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it as an operator does, with nothing but the address of the account."""
    own = {"PATH": os.environ["PATH"], "HOME": str(home), "CDK_HOME": str(home), "CDK_DISABLE_VERSION_CHECK": "1"}
    command = ["npx", "--no-install", "cdk", *arguments]
    environment = {**own, **stage.account.environment()}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=1800)


def test_cdk_bootstraps_deploys_changes_takes_back_and_destroys(stage: Stage, tmp_path: Path) -> None:
    first, second = (assembly(tmp_path, name, resources(name)) for name in ("one", "two"))
    broken = assembly(tmp_path, "three", resources("three"))

    def run(*arguments: str, app: Path = first) -> str:
        done = cdk(stage, tmp_path, *arguments, "--app", str(app))
        told = f"{done.returncode}: {done.stdout}{done.stderr}"
        assert done.returncode == (1 if app is broken else 0), told
        return told

    assert "bootstrapped" in run("bootstrap", "aws://123456789012/us-east-1")
    bootstrapped = lying_in(stage.account)

    run("deploy", "--require-approval", "never")
    assert stage.settled("s")["RoleARN"].endswith("role/cdk-hnb659fds-cfn-exec-role-123456789012-us-east-1")
    assert [one["RequestType"] for one in stage.asked] == ["Create"]
    assert code(stage).endswith(b"# one\n")

    told = run("diff", app=second)
    assert "[~] AWS::Lambda::Function Function" in told
    assert code(stage).endswith(b"# one\n")

    run("deploy", "--require-approval", "never", app=second)
    assert [one["RequestType"] for one in stage.asked] == ["Create", "Update"]
    assert code(stage).endswith(b"# two\n")

    stage.answer = lambda said: {"Status": "FAILED"} if said["ResourceProperties"]["Name"] == "three" else {}
    assert "Received response status [FAILED] from custom resource" in run(
        "deploy", "--require-approval", "never", app=broken
    )
    assert stage.settled("s")["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert code(stage).endswith(b"# two\n")

    run("destroy", "--force")
    assert stage.asked[-1]["RequestType"] == "Delete"
    assert lying_in(stage.account) == bootstrapped


def code(stage: Stage) -> bytes:
    """Answer the function's own code."""
    [one] = stage.client("lambda").list_functions()["Functions"]
    return zipfile.ZipFile(io.BytesIO(stage.account.function(one["FunctionName"]).code)).read("index.py")
