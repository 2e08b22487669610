"""The bundle for GitOps: its files, checksums and kustomize bases, and the command that writes it."""

import hashlib
import json
import runpy
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.functions.installer import build_manifests
from infra.settings.load import load_options
from infra.settings.settings import StackOptions
from infra.stack import bundle, bundle_files
from infra.stack.bundle_files import ARGO_CD_FOLDER, INDEX_FILENAME, OBJECTS_FOLDER, build_bundle
from infra.stack.bundle_output import write_archive, write_folder
from infra.stack.publish import TEMPLATE_FILENAME, read_version
from shared.installer.external_objects import ObjectComparison, compare_objects
from shared.installer.manifests import build_manifest_path, parse_manifests
from shared.installer.plan import InstalledState, InstallPlan, plan_install
from tests.infra.kustomize import build_overlay

TEMPLATE = json.dumps(
    {"Parameters": {"AssetsBucket": {"Type": "String"}}, "Outputs": {"JoinerBucketName": {}}, "Resources": {}}
).encode()
OPTIONS = StackOptions(cluster="prod")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with `bundle` and `assets`, written from the real template."""
    root = tmp_path_factory.mktemp("dist")
    bundle.write_bundle(OPTIONS, root / "bundle", root / "assets", bundle=False)
    return root


@pytest.fixture
def zip_files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "b.zip", tmp_path / "a.zip"]
    for path in paths:
        path.write_bytes(path.name.encode())
    return paths


def read_index(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "bundle" / INDEX_FILENAME).read_text())
    return document


def iterate_files(folder: Path) -> Iterator[str]:
    return (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_index_describes_template_zip_files_and_objects(folder: Path) -> None:
    index = read_index(folder)
    assert (index["cluster"], index["version"], index["clusterObjects"]) == ("prod", read_version(), "stack")
    assert index["stack"]["name"] == "joiner-prod"
    assert index["stack"]["parameters"] == {"AssetsBucket": "String"}
    template = json.loads((folder / "bundle" / TEMPLATE_FILENAME).read_text())
    assert index["stack"]["outputs"] == sorted(template["Outputs"])
    named_keys = {key for key in json.dumps(template).split('"') if key.startswith("joiner/") and key.endswith(".zip")}
    assert {asset["key"] for asset in index["assets"]} == named_keys
    for root, entries in (("assets", index["assets"]), ("bundle", [index["stack"]["template"], *index["objects"]])):
        for entry in entries:
            content = (folder / root / entry["file"]).read_bytes()
            assert (entry["sha256"], entry["bytes"]) == (hashlib.sha256(content).hexdigest(), len(content))


def test_checksums_cover_every_file_of_the_bundle(folder: Path) -> None:
    lines = (folder / "bundle" / "SHA256SUMS").read_text().splitlines()
    checksums = {path: checksum for checksum, _, path in (line.partition("  ") for line in lines)}
    assert {*checksums, "SHA256SUMS"} == set(iterate_files(folder / "bundle"))
    for path, checksum in checksums.items():
        assert checksum == hashlib.sha256((folder / "bundle" / path).read_bytes()).hexdigest()


def test_bundle_objects_are_those_of_the_installer(folder: Path) -> None:
    objects = build_overlay(folder / "bundle" / OBJECTS_FOLDER)
    assert objects == list(parse_manifests(build_manifests(OPTIONS)))


def test_installer_writes_nothing_where_argo_cd_applied_the_bundle(folder: Path) -> None:
    manifests = parse_manifests(build_manifests(OPTIONS))
    applied = build_overlay(folder / "bundle" / ARGO_CD_FOLDER)
    live = {build_manifest_path(manifest): manifest for manifest in applied}
    assert plan_install(manifests, InstalledState(live=live)) == InstallPlan()
    assert compare_objects(manifests, live) == ObjectComparison()


def test_argo_cd_creates_crds_first_and_never_deletes_them(folder: Path) -> None:
    waves: dict[str, list[int]] = {}
    for manifest in build_overlay(folder / "bundle" / ARGO_CD_FOLDER):
        annotations = manifest["metadata"]["annotations"]
        waves.setdefault(manifest["kind"], []).append(int(annotations["argocd.argoproj.io/sync-wave"]))
        options = annotations.get("argocd.argoproj.io/sync-options", "")
        expected = "Prune=false,Delete=false" if manifest["kind"] == "CustomResourceDefinition" else ""
        assert options == expected
    crd_waves = waves.pop("CustomResourceDefinition")
    assert waves.keys() == {"PriorityLevelConfiguration", "FlowSchema", "ClusterRole", "ClusterRoleBinding"}
    assert max(crd_waves) < min(wave for kind_waves in waves.values() for wave in kind_waves)
    assert max(wave for kind_waves in waves.values() for wave in kind_waves) < 0


@pytest.mark.parametrize("setting", ["gangs", "dynamic-resource-allocation", "surge-drain"])
def test_settings_select_the_optional_permissions(setting: str, zip_files: list[Path]) -> None:
    plain, extended = (
        build_bundle(load_options({"cluster": "prod", setting: value}), TEMPLATE, zip_files) for value in ("off", "on")
    )
    assert json.loads(plain[INDEX_FILENAME])["optionalPermissions"] == []
    assert json.loads(extended[INDEX_FILENAME])["optionalPermissions"] == [setting]
    role = f"{OBJECTS_FOLDER}/clusterrole-joiner-functions.yaml"
    changed = {path for path in plain if plain[path] != extended[path]}
    assert changed == {role, INDEX_FILENAME, "README.md", "SHA256SUMS"}
    assert len(yaml.safe_load(extended[role])["rules"]) > len(yaml.safe_load(plain[role])["rules"])


def test_equal_inputs_give_equal_bytes(zip_files: list[Path], tmp_path: Path) -> None:
    first, second = build_bundle(OPTIONS, TEMPLATE, zip_files), build_bundle(OPTIONS, TEMPLATE, zip_files[::-1])
    assert first == second
    for name in ("one", "two"):
        write_archive(tmp_path / name, "joiner-bundle", first)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_digest_changes_with_the_code_the_template_and_the_objects(zip_files: list[Path]) -> None:
    def read_digest(options: StackOptions = OPTIONS, template: bytes = TEMPLATE) -> str:
        return str(json.loads(build_bundle(options, template, zip_files)[INDEX_FILENAME])["digest"])

    digests = {read_digest(), read_digest(load_options({"cluster": "prod", "gangs": "on"}))}
    digests.add(read_digest(template=TEMPLATE.replace(b"{}", b'{"A": 1}', 1)))
    zip_files[0].write_bytes(b"other code")
    digests.add(read_digest())
    assert len(digests) == 4


def test_readme_names_version_files_and_commands(folder: Path) -> None:
    text = (folder / "bundle" / "README.md").read_text()
    index = read_index(folder)
    assert "$" not in text
    assert f"# Joiner {read_version()} for the cluster prod" in text
    for words in (
        index["digest"],
        "ParameterKey=AssetsBucket,ParameterValue=BUCKET",
        "kubectl apply --server-side -k kubernetes",
        *(asset["key"] for asset in index["assets"]),
        *(entry["name"] for entry in index["objects"]),
    ):
        assert words in text


def test_archive_contains_the_same_files_in_one_folder(zip_files: list[Path], tmp_path: Path) -> None:
    files = build_bundle(OPTIONS, TEMPLATE, zip_files)
    write_archive(tmp_path / "new" / "joiner.tar.gz", "joiner-bundle-prod", files)
    with tarfile.open(tmp_path / "new" / "joiner.tar.gz") as archive:
        members = archive.getmembers()
        for member in members:
            stream = archive.extractfile(member)
            assert stream is not None
            assert stream.read() == files[member.name.removeprefix("joiner-bundle-prod/")]
    assert len(members) == len(files)


def write_settings(tmp_path: Path, text: str = "{}\n") -> list[str]:
    """Write the settings of the cluster prod; return the options that name them and the folders of the output."""
    (tmp_path / "prod.yaml").write_text(text)
    folders = ["--to", str(tmp_path / "bundle"), "--assets", str(tmp_path / "assets")]
    return ["--cluster", "prod", "--clusters-folder", str(tmp_path), *folders]


def replace_publication(monkeypatch: pytest.MonkeyPatch) -> None:
    """Publish a small stack, because packaging the real functions takes a minute."""

    def publish(folder: Path, options: StackOptions, *, bundle: bool) -> tuple[Path, ...]:
        assert (options.cluster, bundle) == ("prod", True)
        folder.mkdir()
        (folder / TEMPLATE_FILENAME).write_bytes(TEMPLATE)
        (folder / "code.zip").write_bytes(b"code")
        return tuple(sorted(folder.iterdir()))

    monkeypatch.setattr(bundle, "publish_stack", publish)


def test_command_writes_the_bundle_and_lists_its_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_publication(monkeypatch)
    assert bundle.main(write_settings(tmp_path)) == 0
    output = capsys.readouterr().out
    for path in iterate_files(tmp_path / "bundle"):
        assert f"  {path}\n" in output
    assert f"aws s3 cp {tmp_path}/assets s3://BUCKET/joiner/ --recursive\n" in output
    assert (tmp_path / "assets" / "code.zip").read_bytes() == b"code"


def test_command_writes_an_archive_and_prints_the_index(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_publication(monkeypatch)
    archive = tmp_path / "joiner.tar.gz"
    assert bundle.main([*write_settings(tmp_path), "--archive", str(archive), "-o", "json"]) == 0
    index = json.loads(capsys.readouterr().out)
    assert (index["apiVersion"], index["kind"], index["cluster"]) == ("joiner/v1", "Bundle", "prod")
    assert not (tmp_path / "bundle").exists()
    with tarfile.open(archive) as tar:
        stream = tar.extractfile(f"{bundle_files.format_bundle_name('prod')}/{INDEX_FILENAME}")
        assert stream is not None
        assert json.load(stream) == index


def test_next_bundle_replaces_only_the_files_of_the_earlier_one(tmp_path: Path, zip_files: list[Path]) -> None:
    files = build_bundle(OPTIONS, TEMPLATE, zip_files)
    lines = files["SHA256SUMS"] + b"0" * 64 + b"  kubernetes/removed.yaml\n" + b"0" * 64 + b"  ../outside.yaml\n"
    write_folder(tmp_path / "bundle", {**files, "kubernetes/removed.yaml": b"", "SHA256SUMS": lines})
    (tmp_path / "outside.yaml").touch()
    write_folder(tmp_path / "bundle", files)
    assert set(iterate_files(tmp_path / "bundle")) == set(files)
    assert (tmp_path / "outside.yaml").exists()


@pytest.mark.parametrize("path", ["nodes/pool.yaml", ".git/HEAD", "kubernetes/mine.yaml", "link"])
def test_file_next_to_a_bundle_is_not_deleted(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replace_publication(monkeypatch)
    assert bundle.main(write_settings(tmp_path)) == 0
    own_file = tmp_path / "bundle" / path
    own_file.parent.mkdir(exist_ok=True)
    if path == "link":
        own_file.symlink_to(tmp_path / "assets")
    else:
        own_file.write_text("mine")
    index = (tmp_path / "bundle" / INDEX_FILENAME).read_bytes()
    assert bundle.main(write_settings(tmp_path, "gangs: on\n")) == 2
    assert f"{own_file} is not a file of a bundle: move it, or choose another folder" in capsys.readouterr().err
    assert own_file.exists()
    assert (tmp_path / "bundle" / INDEX_FILENAME).read_bytes() == index
    assert list((tmp_path / "assets").iterdir())


@pytest.mark.parametrize("checksums", ["", "0  notes.txt\n", "\xff"])
def test_folder_with_other_files_is_not_replaced(
    checksums: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = write_settings(tmp_path)
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "notes.txt").touch()
    if checksums:
        (tmp_path / "bundle" / "SHA256SUMS").write_bytes(checksums.encode("latin-1"))
    assert bundle.main(arguments) == 2
    assert "is not a file of a bundle" in capsys.readouterr().err
    assert (tmp_path / "bundle" / "notes.txt").exists()
    assert bundle.main([*arguments, "--to", str(tmp_path / "prod.yaml")]) == 2
    assert "prod.yaml is a file: choose another folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("{}\n", ["--cluster", ""], "make bundle: no cluster is selected: run `make bundle CLUSTER=NAME`\n"),
        ("{}\n", ["--cluster", "dev"], "dev.yaml does not exist"),
        ("mode: often\n", [], "prod.yaml: line 1: mode is 'often': must be active or plan\n"),
        ("cluster-objects: argo\n", [], "cluster-objects is 'argo': must be stack or external\n"),
    ],
)
def test_invalid_input_is_reported_and_nothing_is_written(
    text: str, arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bundle.main([*write_settings(tmp_path, text), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "bundle").exists()


def test_unwritable_folder_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_publication(monkeypatch)
    arguments = write_settings(tmp_path)
    assert bundle.main([*arguments, "--assets", str(tmp_path / "prod.yaml")]) == 2
    assert "make bundle: [Errno 17] File exists" in capsys.readouterr().err


def test_help_has_examples_and_exit_codes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["bundle", "--help"])
    monkeypatch.delitem(sys.modules, "infra.stack.bundle")
    with pytest.raises(SystemExit, match=r"^0$"):
        runpy.run_module("infra.stack.bundle", run_name="__main__")
    output = capsys.readouterr().out
    assert "examples:\n  make bundle CLUSTER=prod\n" in output
    assert "exit codes:\n  0  the bundle was written\n" in output
