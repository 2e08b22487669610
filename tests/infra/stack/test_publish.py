"""The stack for deployments without the CDK: one template, its zip files, one parameter."""

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.settings.settings import StackOptions
from infra.stack import publish


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    stack_folder = tmp_path_factory.mktemp("dist") / "joiner"
    publish.publish_stack(stack_folder, StackOptions(cluster="prod"), bundle=False)
    return stack_folder


@pytest.fixture(scope="module")
def template(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / publish.TEMPLATE_FILENAME).read_text())
    return document


def iterate_assets(value: object) -> Iterator[tuple[object, str]]:
    """Yield bucket and key of every asset that *value* names."""
    if isinstance(value, dict):
        if "S3Bucket" in value:
            yield value["S3Bucket"], value["S3Key"]
        for inner in value.values():
            yield from iterate_assets(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from iterate_assets(inner)


def test_every_template_asset_has_a_zip_file(folder: Path, template: dict[str, Any]) -> None:
    assets = set(iterate_template_assets(template))
    assert {bucket for bucket, _ in assets} == {f"${{{publish.BUCKET_PARAMETER}}}"}
    keys = {key for _, key in assets}
    assert {f"{publish.KEY_PREFIX}{path.name}" for path in folder.glob("*.zip")} == keys
    for path in folder.glob("*.zip"):
        assert zipfile.ZipFile(path).testzip() is None


def iterate_template_assets(template: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for bucket, key in iterate_assets(template["Resources"]):
        assert isinstance(bucket, dict), bucket
        yield bucket["Fn::Sub"], key


def test_template_needs_no_cdk_bootstrap(template: dict[str, Any]) -> None:
    assert list(template["Parameters"]) == [publish.BUCKET_PARAMETER]
    assert "Rules" not in template
    assert "cdk-hnb659fds" not in json.dumps(template)


def test_template_names_the_cluster_and_passes_cfn_lint(folder: Path, template: dict[str, Any]) -> None:
    assert "cluster prod" in template["Description"]
    command = [str(Path(sys.executable).parent / "cfn-lint"), "--ignore-checks", "W3005", "--"]
    completed = subprocess.run(
        [*command, str(folder / publish.TEMPLATE_FILENAME)], capture_output=True, text=True, check=False
    )
    assert (completed.returncode, completed.stdout) == (0, "")


def test_equal_sources_produce_identical_zip_files(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "inner").mkdir(parents=True)
    (source / "inner" / "a.py").write_text("a = 1\n")
    (source / "b.py").write_text("b = 2\n")
    for name in ("one.zip", "two.zip"):
        publish._write_zip(source, tmp_path / name)  # noqa: SLF001 - the whole of it takes seconds
        (source / "b.py").touch()
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    assert zipfile.ZipFile(tmp_path / "one.zip").namelist() == ["b.py", "inner/a.py"]


def test_invalid_setting_is_reported_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "prod.yaml").write_text("mode: often\n")
    arguments = ["-o", str(tmp_path / "dist"), "--clusters-folder", str(tmp_path), "--cluster", "prod"]
    assert publish.main(arguments) == 2
    assert f"{tmp_path}/prod.yaml: line 1: mode is 'often': must be active or plan" in capsys.readouterr().err
    assert not (tmp_path / "dist").exists()


def test_published_template_deploys_versions_with_canaries(template: dict[str, Any]) -> None:
    aliases = [resource for resource in template["Resources"].values() if resource["Type"] == "AWS::Lambda::Alias"]
    assert sum("CodeDeployLambdaAliasUpdate" in alias.get("UpdatePolicy", {}) for alias in aliases) == len(aliases) - 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "make dist: no cluster is selected: run `make dist CLUSTER=NAME`"),
        (["--cluster", "a,b"], "'a,b' is not the name of a cluster"),
    ],
)
def test_template_is_for_exactly_one_cluster(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert publish.main(["-o", str(tmp_path / "dist"), *arguments]) == 2
    assert message in capsys.readouterr().err
