"""What `joiner plan` says of input that is not as it should be: the place, the object, the field, the remedy.

And that the rest of it is planned all the same.
"""

import gzip
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.inputs import documents, files
from cli.main import main
from cli.terminal.errors import InputError
from tests.support.cli.cli_objects import CATALOGUE, POOL, Object, make_node_pool, make_pod, make_workload

Out = pytest.CaptureFixture[str]
Write = Callable[[Path], object]


@pytest.fixture
def catalogue(tmp_path: Path) -> str:
    path = tmp_path / "catalogue.json"
    path.write_text(json.dumps(CATALOGUE))
    return str(path)


def plan(catalogue: str, *arguments: str) -> int:
    return main(["plan", "--instance-types", catalogue, "--now", "2026-11-21T08:00:00Z", "-o", "json", *arguments])


def build_text_writer(body: str) -> Write:
    return lambda path: path.write_text(body, encoding="utf-8")


def build_bytes_writer(body: bytes) -> Write:
    return lambda path: path.write_bytes(body)


def build_sparse_writer(start: bytes, size: int) -> Write:
    """Return a writer of a sparse file of *size* bytes: *start*, then only zeros."""

    def write(path: Path) -> None:
        path.write_bytes(start)
        os.truncate(path, size)

    return write


def make_symlink_loop(path: Path) -> None:
    path.symlink_to(path)


def make_nested_folder(path: Path) -> None:
    path.joinpath("deeper").mkdir(parents=True)


def dump_yaml(*objects: object) -> str:
    return yaml.safe_dump_all(objects)


BAD: list[tuple[str, Write, tuple[str, ...]]] = [
    ("none.json", lambda _: None, ("none.json: No such file or directory: check the path",)),
    ("long" * 100, lambda _: None, ("longlong: File name too long: name a file, a folder or `-`",)),
    ("loop.json", make_symlink_loop, ("loop.json: Too many levels of symbolic links: name a file",)),
    ("empty", lambda path: path.mkdir(), ("empty: no .json, .yaml, .yml file in this folder",)),
    (
        "outer",
        make_nested_folder,
        ("outer: no .json, .yaml, .yml file", "; subfolders are not read: name them (deeper)"),
    ),
    ("a.png", build_bytes_writer(b"\x89PNG\0\0"), ("a.png: is not text: expected JSON or YAML",)),
    ("blank.yaml", build_text_writer(" \n"), ("blank.yaml: is empty: expected Kubernetes objects as YAML or JSON",)),
    ("a.json.gz", build_bytes_writer(gzip.compress(b"{}")), ("a.json.gz: is compressed: gunzip it first",)),
    ("latin.yaml", build_bytes_writer(b"kind: Pod\nname: caf\xe9"), ("latin.yaml:2: is not UTF-8: save it as UTF-8",)),
    ("half.json", build_bytes_writer(b"\xff\xfe{"), ("half.json: ends in the middle of a character",)),
    ("huge.bin", build_sparse_writer(b"", 200 * 1024**2), ("huge.bin: is not text",)),
    (
        "huge.yaml",
        build_sparse_writer(b"kind: Pod\n" + b"# \n" * 4096, 200 * 1024**2),
        ("huge.yaml: 200 MB of YAML take many minutes to parse: use `-o json`",),
    ),
    (
        "cut.json",
        build_text_writer('{"kind": "List",\n "items": ['),
        ("cut.json: not JSON: ends in the middle of an object",),
    ),
    ("typo.json", build_text_writer('{"kind": "List",\n "items" []}'), ("typo.json:2: not JSON: expected ':'",)),
    ("second.json", build_text_writer('{"kind": "Pod"\n}\n{"kind": }'), ("second.json:3: not JSON: Expecting value",)),
    (
        "odd.json",
        build_text_writer("[7]"),
        ("odd.json: not a Kubernetes object: '7': expected apiVersion, kind",),
    ),
    ("deep.json", build_text_writer("[" * 3000 + "]" * 3000), ("deep.json: is nested too deeply",)),
    (
        "quote.yaml",
        build_text_writer("kind: Pod\nname: a: b"),
        ("quote.yaml:2: not YAML: mapping values", "quote a value that"),
    ),
    (
        "tab.yaml",
        build_text_writer("kind: Pod\nspec:\n\ta: b"),
        ("tab.yaml:3: not YAML: ", "indent with spaces, not with tabs"),
    ),
    ("open.yaml", build_text_writer("a: [1, 2"), ("open.yaml:2: not YAML: ", "close the quote or bracket")),
    ("bell.yaml", build_text_writer("a: \x07"), ("bell.yaml:1: not YAML: ", "remove the character")),
    ("step.yaml", build_text_writer("a:\n  - b\n c: d"), ("step.yaml:3: not YAML: ", "correct the indentation")),
    ("list.yaml", build_text_writer("values: 'a', 'b'"), ("list.yaml:1: not YAML: ", "write `values: ['a', 'b']`")),
    (
        "shell.yaml",
        build_text_writer("cat <<EOF | kubectl apply -f -\nkind: Pod\nEOF\n"),
        ("shell.yaml:1: ", "a heredoc of a shell"),
    ),
    ("alias.yaml", build_text_writer("a: *b"), ("alias.yaml:1: not YAML: ", "quote a value that begins with *")),
    ("tag.yaml", build_text_writer("a: !vault b"), ("tag.yaml:1: not YAML: ", "remove the tag")),
    ("helm.yaml", build_text_writer("a: {{ .Values.a }}"), ("helm.yaml:1: not YAML: ", "a template: render it first")),
    (
        "helm2.yaml",
        build_text_writer("{{- if .Values.a }}\na: b\n{{ end }}"),
        ("helm2.yaml:", "a template: render it first"),
    ),
    ("round.yaml", build_text_writer("a: &a [*a]"), ("round.yaml:1: not YAML: its anchors repeat endlessly",)),
    (
        "bomb.yaml",
        build_text_writer("a0: &a0 [x, x]\n" + "".join(f"a{n + 1}: &a{n + 1} [*a{n}, *a{n}]\n" for n in range(40))),
        ("bomb.yaml:1: not YAML: its anchors repeat endlessly: write the values instead of aliases",),
    ),
    ("words.yaml", build_text_writer("just words"), ("words.yaml:1: not a Kubernetes object: 'just words'",)),
    ("kind.yaml", build_text_writer("a: b"), ("kind.yaml:1: kind: missing: write for example",)),
    ("catalogue.json", build_text_writer('{"instanceTypes": []}'), ("is a catalog: name it with --instance-types",)),
    (
        "api.yaml",
        build_text_writer(dump_yaml(make_pod("a") | {"apiVersion": ""})),
        ("Pod default/a: apiVersion: missing: write `api",),
    ),
    (
        "old.yaml",
        build_text_writer(dump_yaml({"apiVersion": "apps/v1beta1", "kind": "DaemonSet", "metadata": {"name": "logs"}})),
        ("DaemonSet default/logs: apiVersion: apps/v1beta1 is not supported: convert it to apps/v1",),
    ),
    (
        "older.yaml",
        build_text_writer(
            dump_yaml({"apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner", "metadata": {"name": "p"}})
        ),
        ("older.yaml:1: Provisioner p: apiVersion: karpenter.sh/v1alpha5 is not supported",),
    ),
    (
        "near.yaml",
        build_text_writer(dump_yaml(POOL | {"kind": "Nodepools"})),
        ("near.yaml:1: Nodepools default: kind: unknown: did you mean NodePool?",),
    ),
    (
        "twice.yaml",
        build_text_writer(
            dump_yaml(
                make_node_pool("two"),
                make_node_pool("two", labels={}) | {"spec": {"weight": 3} | make_node_pool("two")["spec"]},
            )
        ),
        (
            "NodePool two: metadata.name: replaces a different NodePool of the same name at ",
            "rename or remove one of them",
        ),
    ),
    (
        "absurd.yaml",
        build_text_writer(dump_yaml(make_pod("a", "lots"), make_pod("b", "-1"))),
        (
            "absurd.yaml:1: Pod default/a: spec.containers[app].resources.requests: cpu: not a quantity: 'lots'; write",
            "Pod default/b: spec.containers[app].resources.requests: cpu: below zero",
        ),
    ),
    (
        "nameless.yaml",
        build_text_writer(dump_yaml(make_pod("a") | {"metadata": {}})),
        ("nameless.yaml:1: Pod without a name in namespace default: metadata: object missing",),
    ),
    (
        "anonymous.yaml",
        build_text_writer(dump_yaml(make_workload("", 1))),
        ("Deployment without a name: metadata.name: missing",),
    ),
    (
        "many.yaml",
        build_text_writer(dump_yaml(make_workload("a", 10**9))),
        ("Deployment default/a: spec.replicas: 1000000000 pods",),
    ),
    (
        "few.yaml",
        build_text_writer(dump_yaml(make_workload("a", -1))),
        ("Deployment default/a: spec.replicas: -1 is not a number of pods",),
    ),
    (
        "yes.yaml",
        build_text_writer(dump_yaml(make_workload("a", replicas=True))),
        ("spec.replicas: True is not a number of pods",),
    ),
    (
        "bare.yaml",
        build_text_writer(dump_yaml(make_workload("a", 1, template={}))),
        ("spec.template.spec: missing: write the pod template",),
    ),
    (
        "all.yaml",
        build_text_writer(dump_yaml(make_workload("a", 1, selector={}))),
        ("spec.selector: missing: write matchLabels",),
    ),
    (
        "sel.yaml",
        build_text_writer(dump_yaml(make_workload("a", 1, selector=7))),
        ("spec.selector: Expected `object | null`",),
    ),
]


@pytest.mark.parametrize(("name", "write", "words"), BAD, ids=[name for name, _, _ in BAD])
def test_invalid_input_is_reported_with_a_fix_and_the_rest_is_planned(
    tmp_path: Path, catalogue: str, capsys: Out, name: str, write: Write, words: tuple[str, ...]
) -> None:
    path = tmp_path / "bad" / name
    path.parent.mkdir()
    write(path)
    good = tmp_path / "good.json"
    good.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [POOL, make_pod("good")]}))
    assert plan(catalogue, "-f", str(path), "-f", str(good)) == 1
    captured = capsys.readouterr()
    for word in words:
        assert word in captured.err
    assert all(line.startswith("joiner plan: ") for line in captured.err.splitlines())
    assert [node["pods"] for node in json.loads(captured.out)["newNodes"]] == [["default/good"]]


def test_invalid_yaml_document_does_not_affect_other_documents(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    path = tmp_path / "all.yaml"
    path.write_text(
        f"{dump_yaml(POOL)}---\na: b: c\n---\n{dump_yaml(make_pod('a'))}---\n- d\n e: f\n---\n"
        f"{dump_yaml(make_pod('b'))}"
    )
    assert plan(catalogue, "-f", str(path)) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["totals"]["scheduled"] == 2
    lines = path.read_text().splitlines()
    expected = [lines.index("a: b: c") + 1, lines.index(" e: f") + 1]
    assert [int(line.split(":")[2]) for line in captured.err.splitlines()] == expected


def test_unreadable_file_error_suggests_standard_input(
    tmp_path: Path, catalogue: str, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "pods").mkdir()
    (tmp_path / "pods" / "a.json").write_text("{}")
    with monkeypatch.context() as patch:
        patch.setattr("cli.planning.catalog_source.load_catalog", lambda *_: (None, []))
        patch.setattr(Path, "read_bytes", refuse)
        assert plan(catalogue, "-f", str(tmp_path / "pods")) == 1
    assert "a.json: Permission denied: make it readable, or pipe it in with `-f -`" in capsys.readouterr().err


def test_json_documents_before_a_syntax_error_are_planned(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    path = tmp_path / "all.json"
    path.write_text(f"{json.dumps(POOL)}\n{json.dumps(make_pod('a'))}\n{{")
    assert plan(catalogue, "-f", str(path)) == 1
    assert json.loads(capsys.readouterr().out)["totals"]["scheduled"] == 1


EXISTS = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}


def make_job(name: str, **spec: Any) -> Object:
    return make_workload(name, None, kind="Job", selector=None, **spec) | {"apiVersion": "batch/v1"}


def dump_flow_yaml(manifest: Object) -> str:
    """Return YAML that looks like JSON at first."""
    return str(yaml.safe_dump(manifest, default_flow_style=True))


def dump_list(*objects: Object) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


def dump_typed_list(*objects: Object) -> str:
    """Return a list as the API server sends it: items do not state their kind."""
    bare = [{key: manifest[key] for key in ("metadata", "spec")} for manifest in objects]
    return json.dumps({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": bare})


@pytest.mark.parametrize(
    "body",
    [
        dump_list(make_pod("a"), make_pod("b")).encode(),
        dump_typed_list(make_pod("a"), make_pod("b")).encode(),
        yaml.safe_dump(json.loads(dump_typed_list(make_pod("a"), make_pod("b")))).encode(),
        json.dumps([make_pod("a"), [make_pod("b")]]).encode(),
        (json.dumps(make_pod("a"), indent=1) + json.dumps(make_pod("b"))).encode(),
        yaml.safe_dump_all([make_pod("a"), None, [make_pod("b")]]).encode(),
        b"\xef\xbb\xbf" + dump_list(make_pod("a"), make_pod("b")).encode(),
        dump_list(make_pod("a"), make_pod("b")).encode("utf-16"),
        f"{dump_flow_yaml(make_pod('a'))}---\n{dump_flow_yaml(make_pod('b'))}".encode(),
    ],
)
def test_equivalent_input_formats_give_the_same_plan(tmp_path: Path, catalogue: str, capsys: Out, body: bytes) -> None:
    (tmp_path / "pods.yaml").write_bytes(body)
    (tmp_path / "pool.json").write_text(json.dumps(POOL))
    assert plan(catalogue, "-f", str(tmp_path / "pods.yaml"), "-f", str(tmp_path / "pool.json")) == 0
    assert [node["pods"] for node in json.loads(capsys.readouterr().out)["newNodes"]] == [["default/a", "default/b"]]


def test_yaml_date_is_read_as_text(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    body = yaml.safe_dump(make_pod("a", labels={"built": "@"})).replace("'@'", "2026-11-21")
    (tmp_path / "pod.yaml").write_text(body + "---\n" + yaml.safe_dump(POOL))
    assert plan(catalogue, "-f", str(tmp_path / "pod.yaml")) == 0
    assert json.loads(capsys.readouterr().out)["totals"]["scheduled"] == 1


def test_oversized_input_is_rejected(catalogue: str, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"kind": "Pod"}')))
    with monkeypatch.context() as patch:
        patch.setattr(files, "MAX_JSON_BYTES", 10)
        with pytest.raises(InputError, match="standard input: larger than 0 MB: select less"):
            files.read_utf8("standard input", None)
    monkeypatch.setattr(documents, "MAX_YAML_BYTES", 10)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"kind: Pod\nmetadata: {}")))
    assert plan(catalogue, "-f", "-") == 1
    assert "standard input: 0 MB of YAML take many minutes" in capsys.readouterr().err


def test_deeply_nested_object_does_not_affect_other_objects(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    annotation: Any = "x"
    for _ in range(400):
        annotation = {"a": annotation}
    deep = make_node_pool("deep") | {"status": annotation}
    (tmp_path / "all.json").write_text(dump_list(POOL, deep, make_pod("a")))
    assert plan(catalogue, "-f", str(tmp_path / "all.json")) in (0, 1)
    assert json.loads(capsys.readouterr().out)["totals"]["scheduled"] == 1


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([make_workload("web", 3)], ["web-1", "web-2", "web-3"]),
        ([make_workload("web", None)], ["web-1"]),
        ([make_workload("web", 0)], []),
        ([make_workload("db", 2, kind="StatefulSet")], ["db-0", "db-1"]),
        ([make_workload("web", 3), make_pod("x", labels={"app": "web"})], ["web-2", "web-3", "x"]),
        (
            [make_workload("web", 1), make_pod("x", labels={"app": "web"}), make_pod("y", labels={"app": "web"})],
            ["x", "y"],
        ),
        ([make_workload("web", 1), make_pod("x", labels={"app": "web"}) | {"status": {"phase": "Failed"}}], ["web-1"]),
        (
            [make_workload("web", 2, selector=EXISTS)],
            ["web-1", "web-2"],
        ),
        (
            [
                make_workload("web-5d4f8", 2, kind="ReplicaSet")
                | {"metadata": {"name": "web-5d4f8", "ownerReferences": [{"kind": "Deployment", "name": "web"}]}}
            ],
            [],
        ),
        (
            [{**make_workload("rc", 2, kind="ReplicationController", selector=None), "apiVersion": "v1"}],
            ["rc-1", "rc-2"],
        ),
        (
            [
                {
                    **make_workload("j", None, kind="Job", selector=None, parallelism=5, completions=2),
                    "apiVersion": "batch/v1",
                }
            ],
            ["j-1", "j-2"],
        ),
        ([make_job("j", parallelism=5, completions=2)], ["j-1", "j-2"]),
        ([make_job("j", suspend=True)], []),
        ([make_job("j") | {"status": {"completionTime": "2026-11-21T08:00:00Z"}}], []),
        ([make_job("j"), make_pod("j-x", labels={"batch.kubernetes.io/job-name": "j"})], ["j-x"]),
    ],
)
def test_workload_counts_as_its_missing_pods(
    tmp_path: Path, catalogue: str, capsys: Out, objects: list[Object], expected: list[str]
) -> None:
    (tmp_path / "all.json").write_text(dump_list(POOL, *objects))
    assert plan(catalogue, "-f", str(tmp_path / "all.json")) == 0
    document = json.loads(capsys.readouterr().out)
    placed = sorted(name for node in document["newNodes"] for name in node["pods"])
    assert placed == [f"default/{name}" for name in expected]
    object_names = {manifest["metadata"]["name"] for manifest in objects}
    assert any("created from templates" in note for note in document["notes"]) is not object_names.issuperset(expected)


def test_workload_pods_are_not_pending_without_assume_unschedulable(
    tmp_path: Path, catalogue: str, capsys: Out
) -> None:
    (tmp_path / "all.json").write_text(dump_list(POOL, make_workload("web", 3)))
    assert plan(catalogue, "-f", str(tmp_path / "all.json"), "--no-assume-unschedulable") == 0
    assert json.loads(capsys.readouterr().out)["totals"]["pods"] == 0


def test_statefulset_volume_claims_are_created_with_its_pods(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    stateful_set = make_workload("db", 2, kind="StatefulSet", volumeClaimTemplates=[claim])
    storage: Object = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "gp3", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "ebs.csi.aws.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    outcomes = []
    for claims in ((), (storage,)):
        (tmp_path / "all.json").write_text(dump_list(POOL, stateful_set, *claims))
        assert plan(catalogue, "-f", str(tmp_path / "all.json")) == 0
        document = json.loads(capsys.readouterr().out)
        outcomes.append(
            (document["totals"]["scheduled"], [entry["message"][:31] for entry in document["unschedulable"]])
        )
    missing = [f"PersistentVolumeClaim data-db-{number}" for number in range(2)]
    assert outcomes == [(0, missing), (2, [])]


def test_ignored_kinds_are_noted(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    ignored_objects = [
        {"apiVersion": api, "kind": kind, "metadata": {"name": "x"}}
        for api, kind in (
            ("v1", "ConfigMap"),
            ("v1", "Service"),
            ("argoproj.io/v1alpha1", "Rollout"),
            ("batch.volcano.sh/v1alpha1", "Job"),
            ("networking.k8s.io/v1", "Ingress"),
        )
    ]
    (tmp_path / "all.json").write_text(
        dump_list(POOL, make_pod("a"), *ignored_objects, ignored_objects[0] | {"metadata": {"name": "y"}})
    )
    assert plan(catalogue, "-f", str(tmp_path / "all.json")) == 0
    [note] = json.loads(capsys.readouterr().out)["notes"]
    kinds = "2 ConfigMaps, 1 Ingress, 1 Job, 1 Rollout, 1 Service"
    assert note == f"ignored, because scheduling does not depend on it: {kinds}"


def test_feature_gated_kinds_are_read_if_enabled(
    tmp_path: Path, catalogue: str, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {}}
    (tmp_path / "all.json").write_text(dump_list(POOL, make_pod("a"), service))
    monkeypatch.setenv("FEATURE_GATES", "NodeOverlay=true")
    assert plan(catalogue, "-f", str(tmp_path / "all.json")) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == []


def make_live_pod(name: str, version: str) -> Object:
    manifest = make_pod(name)
    return manifest | {"metadata": manifest["metadata"] | {"uid": "u", "resourceVersion": version}}


@pytest.mark.parametrize(
    "objects",
    [
        [make_pod("a"), make_pod("a")],
        [make_live_pod("a", "1"), make_live_pod("a", "2")],
        [make_node_pool("a"), make_node_pool("a"), make_pod("a")],
    ],
)
def test_duplicate_objects_are_accepted(tmp_path: Path, catalogue: str, capsys: Out, objects: list[Object]) -> None:
    (tmp_path / "all.json").write_text(dump_list(POOL, *objects))
    assert plan(catalogue, "-f", str(tmp_path / "all.json")) == 0
    assert json.loads(capsys.readouterr().out)["totals"]["scheduled"] == 1


def test_pods_with_generate_name_are_counted_separately(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    pods = [make_pod("") | {"metadata": {"generateName": "task-"}} for _ in range(2)]
    (tmp_path / "all.json").write_text(dump_list(POOL, *pods))
    assert plan(catalogue, "-f", str(tmp_path / "all.json")) == 0
    assert json.loads(capsys.readouterr().out)["totals"]["scheduled"] == 2


CATALOGUE_FLAGS = ("--instance-types", "examples/catalogue.json")


@pytest.mark.parametrize(
    "command",
    [
        ("plan", *CATALOGUE_FLAGS),
        ("consolidate", *CATALOGUE_FLAGS),
        ("rebalance", "--plan", *CATALOGUE_FLAGS),
        ("status",),
        ("top",),
        ("drift",),
        ("lint",),
        ("convert",),
        ("doctor", "--no-account"),
        ("nodeclass", "resolve", "--embedded"),
    ],
    ids=lambda command: command[0],
)
def test_an_empty_file_is_reported_as_empty(tmp_path: Path, capsys: Out, command: tuple[str, ...]) -> None:
    (tmp_path / "empty.yaml").touch()
    assert main([*command, "-f", str(tmp_path / "empty.yaml")]) == 1
    captured = capsys.readouterr()
    message = "empty.yaml: is empty: expected Kubernetes objects as YAML or JSON"
    assert message in captured.out + captured.err
