"""`joiner pause` and `joiner resume`, on a cluster over HTTP."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from cli.pause.text import format_pause
from shared.model.core.labels import DISRUPTION_PAUSED, DISRUPTION_RESUMED, LAUNCHES_PAUSED
from shared.model.core.units import parse_instant
from shared.model.karpenter.pause import CLUSTER_NAMESPACE, DISRUPTION_REASONS, VOLUNTARY_REASONS, Pause, parse_pauses
from shared.state.pauses import ActivePause
from sim.cluster.api_server.kube_port import InMemoryKube
from tests.contract.kube_front import create
from tests.support.cli.cli_objects import POOL
from tests.support.cli.live_cases import Guarded, serve_cluster

pytestmark = pytest.mark.loopback
Out = pytest.CaptureFixture[str]
NAMESPACE = f"/api/v1/namespaces/{CLUSTER_NAMESPACE}"
POOLS = "/apis/karpenter.sh/v1/nodepools"
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[InMemoryKube, str]]:
    with serve_cluster(tmp_path) as (kube, config):
        create(kube, POOLS, POOL)
        yield kube, config


@pytest.fixture
def kube(cluster: tuple[InMemoryKube, str]) -> InMemoryKube:
    return cluster[0]


@pytest.fixture
def config(cluster: tuple[InMemoryKube, str]) -> str:
    return cluster[1]


def read_annotations(kube: InMemoryKube, path: str = NAMESPACE) -> dict[str, str]:
    annotations: dict[str, str] = json.loads(kube.read(path))["metadata"].get("annotations", {})
    return {key: text for key, text in annotations.items() if key.startswith("joiner.dev/")}


def annotate(kube: InMemoryKube, text: str | None, path: str = NAMESPACE) -> None:
    kube.patch(path, json.dumps({"metadata": {"annotations": {DISRUPTION_PAUSED: text}}}).encode())


def read_pauses(capsys: Out) -> list[dict[str, Any]]:
    pauses: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["pauses"]
    return pauses


def test_pause_without_options_pauses_all_voluntary_disruption(
    kube: InMemoryKube, config: str, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USER", "anna maria")
    assert main(["pause", "--kubeconfig", config, "--because", "Black\nFriday; and more"]) == 0
    [hold] = parse_pauses(read_annotations(kube)[DISRUPTION_PAUSED], DISRUPTION_REASONS)
    assert (hold.reasons, hold.until, hold.because) == (VOLUNTARY_REASONS, None, "Black Friday, and more")
    assert hold.author == "anna-maria"
    assert hold.since is not None
    assert abs(datetime.now(UTC) - hold.since) < timedelta(minutes=30)
    output = capsys.readouterr().out
    assert output.startswith("paused: all NodePools: Drifted, Empty and Underutilized disruption, by anna-maria ")
    assert LAUNCHES_PAUSED not in read_annotations(kube)


def test_pause_author_is_read_from_self_subject_review() -> None:
    from cli.cluster.writable_client import (  # noqa: PLC0415 - the client library takes half a second
        ReadWriteKube,
        get_username,
    )

    class Knowing(ReadWriteKube):
        def __init__(self) -> None: ...

        def create(self, path: str, body: bytes) -> bytes:
            assert (path, json.loads(body)["kind"]) == (REVIEWS, "SelfSubjectReview")
            return b'{"status": {"userInfo": {"username": "arn:aws:sts::1:assumed-role/Admin/anna"}}}'

    assert get_username(Knowing()) == "arn:aws:sts::1:assumed-role/Admin/anna"


def test_pause_options_set_reasons_expiry_and_nodepool(kube: InMemoryKube, config: str, capsys: Out) -> None:
    flags = ["--nodepool", "default", "--reason", "drifted,Empty", "--launches", "--for", "90m", "-o", "json"]
    assert main(["pause", "--kubeconfig", config, *flags]) == 0
    first, second = read_pauses(capsys)
    assert (first["nodePool"], first["reasons"], second["reasons"]) == ("default", ["Drifted", "Empty"], ["Launches"])
    remaining_time = datetime.fromisoformat(first["until"]) - datetime.now(UTC)
    assert timedelta(minutes=60) < remaining_time <= timedelta(minutes=90)
    assert read_annotations(kube) == {}
    assert set(read_annotations(kube, f"{POOLS}/default")) == {DISRUPTION_PAUSED, LAUNCHES_PAUSED}


def test_all_flag_pauses_all_disruption_and_launches(config: str, capsys: Out) -> None:
    until = f"{datetime.now(UTC) + timedelta(days=2):%FT%TZ}"
    assert main(["pause", "--kubeconfig", config, "--all", "--until", until, "-o", "json"]) == 0
    first, second = read_pauses(capsys)
    assert first["reasons"] == list(DISRUPTION_REASONS)
    assert (second["reasons"], second["until"]) == (["Launches"], until)


def test_repeated_pause_replaces_its_reasons_and_keeps_others(config: str, capsys: Out) -> None:
    assert main(["pause", "--kubeconfig", config, "--reason", "Drifted,Empty", "--because", "one"]) == 0
    assert main(["pause", "--kubeconfig", config, "--reason", "Empty", "--because", "two"]) == 0
    capsys.readouterr()
    assert main(["pause", "--kubeconfig", config, "--reason", "Unhealthy", "--because", "three", "-o", "json"]) == 0
    assert [(pause["reasons"], pause["because"]) for pause in read_pauses(capsys)] == [
        (["Drifted"], "one"),
        (["Empty"], "two"),
        (["Unhealthy"], "three"),
    ]


@pytest.mark.parametrize(
    ("flags", "remaining"),
    [
        ((), []),
        (("--all",), []),
        (("--reason", "Drifted"), [["Empty", "Underutilized"], ["Launches"]]),
        (("--launches",), [["Drifted", "Empty", "Underutilized"]]),
    ],
)
def test_resume_removes_the_selected_pauses(
    kube: InMemoryKube, config: str, capsys: Out, flags: tuple[str, ...], remaining: list[list[str]]
) -> None:
    assert main(["pause", "--kubeconfig", config, "--launches", "--reason", ",".join(VOLUNTARY_REASONS)]) == 0
    capsys.readouterr()
    assert main(["resume", "--kubeconfig", config, "-o", "json", *flags]) == 0
    assert [pause["reasons"] for pause in read_pauses(capsys)] == remaining
    assert bool(read_annotations(kube)) == bool(remaining)


def test_nodepool_pause_remains_after_the_cluster_pause_is_resumed(config: str, capsys: Out) -> None:
    for where in ([], ["--nodepool", "default"]):
        assert main(["pause", "--kubeconfig", config, *where]) == 0
    capsys.readouterr()
    assert main(["resume", "--kubeconfig", config]) == 0
    assert "NodePool default: " in capsys.readouterr().out
    assert main(["resume", "--kubeconfig", config, "--nodepool", "default"]) == 0
    assert capsys.readouterr().out == "nothing is paused\n"


@pytest.mark.parametrize(("flags", "is_confirmed"), [((), True), (("--all",), True), (("--reason", "Drifted"), False)])
def test_resume_of_a_nodepool_confirms_the_cause_of_automatic_pauses(
    kube: InMemoryKube, config: str, flags: tuple[str, ...], *, is_confirmed: bool
) -> None:
    assert main(["resume", "--kubeconfig", config, "--nodepool", "default", *flags]) == 0
    stored = json.loads(kube.read("/apis/karpenter.sh/v1/nodepools/default"))
    text = stored["metadata"].get("annotations", {}).get(DISRUPTION_RESUMED, "")
    assert bool(text) is is_confirmed
    assert not text or parse_instant(text).tzinfo is UTC


def test_expired_pause_is_removed_by_the_next_pause(kube: InMemoryKube, config: str) -> None:
    annotate(kube, "Empty until 2020-01-01T00:00:00Z")
    assert main(["pause", "--kubeconfig", config, "--reason", "Drifted"]) == 0
    assert [pause.reasons for pause in parse_pauses(read_annotations(kube)[DISRUPTION_PAUSED], DISRUPTION_REASONS)] == [
        ("Drifted",)
    ]


def test_invalid_pause_annotation_is_removed_only_by_resume(kube: InMemoryKube, config: str, capsys: Out) -> None:
    annotate(kube, "till tomorrow")
    assert main(["pause", "--kubeconfig", config]) == 1
    stderr = capsys.readouterr().err
    assert f"Namespace kube-system: metadata.annotations[{DISRUPTION_PAUSED}]: 'till tomorrow' is not like" in stderr
    assert "`joiner resume` removes the pause" in stderr
    assert main(["resume", "--kubeconfig", config]) == 0
    assert read_annotations(kube) == {}


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--reason", "Dirfted"), "'Dirfted' is not a reason: did you mean Drifted? write one or more of Drifted"),
        (("--reason", ""), "'' is not a reason"),
        (("--for", "soon"), "'soon' is not a positive duration like 90m"),
        (("--for", "0s"), "'0s' is not a positive duration"),
        (("--until", "noon"), "'noon' is not a time like"),
        (
            ("--until", "2020-01-01T00:00:00Z"),
            "--until 2020-01-01T00:00:00Z is in the past: the API server's clock is 20",
        ),
        (("--for", "1h", "--until", "2020-01-01T00:00:00Z"), "not allowed with"),
    ],
)
def test_invalid_options_are_rejected(config: str, capsys: Out, flags: tuple[str, ...], words: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["pause", "--kubeconfig", config, *flags])
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("command", ["pause", "resume"])
@pytest.mark.parametrize(
    ("flags", "forbidden", "words"),
    [
        (("--context", "away"), "/nothing", "away: GET /apis/karpenter.sh/v1/nodepools"),
        (("--nodepool", "defualt"), "/nothing", "NodePool defualt does not exist; existing NodePools: default"),
        ((), "/nodepools", "NodePool *: "),
        ((), "/namespaces/kube-system", "Namespace kube-system: GET /api/v1/namespaces/kube-system"),
    ],
)
def test_connection_and_permission_errors_are_reported(
    config: str, capsys: Out, command: str, flags: tuple[str, ...], forbidden: str, words: str
) -> None:
    Guarded.forbidden = forbidden
    assert main([command, "--kubeconfig", config, *flags]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(f"joiner {command}: {words}")
    assert captured.out == ""


def test_conflicting_annotation_update_is_retried(
    kube: InMemoryKube, config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cli.cluster.writable_client import ReadWriteKube  # noqa: PLC0415 - the client library takes half a second

    patch, competing_texts = ReadWriteKube.patch, ["Drifted by bert", "Drifted by carl"]

    def overtake_and_patch(self: ReadWriteKube, path: str, body: bytes) -> bytes:
        if competing_texts:
            annotate(kube, competing_texts.pop(0))
        return patch(self, path, body)

    monkeypatch.setattr(ReadWriteKube, "patch", overtake_and_patch)
    assert main(["pause", "--kubeconfig", config, "--reason", "Empty"]) == 0
    assert read_annotations(kube)[DISRUPTION_PAUSED].startswith("Drifted by carl; Empty by ")


def test_repeated_update_conflicts_are_reported(
    kube: InMemoryKube, config: str, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cli.cluster.writable_client import ReadWriteKube  # noqa: PLC0415 - the client library takes half a second

    patch, count = ReadWriteKube.patch, iter(range(99))

    def overtake_and_patch(self: ReadWriteKube, path: str, body: bytes) -> bytes:
        annotate(kube, f"Drifted because {next(count)}")
        return patch(self, path, body)

    monkeypatch.setattr(ReadWriteKube, "patch", overtake_and_patch)
    assert main(["pause", "--kubeconfig", config]) == 1
    assert "other clients keep changing it" in capsys.readouterr().err


def test_pause_has_durations_in_their_two_largest_units() -> None:
    now = datetime(2026, 11, 21, 8, tzinfo=UTC)
    pause = Pause(
        reasons=("Drifted",),
        since=now - timedelta(minutes=46),
        until=now + timedelta(days=2, hours=3, minutes=5),
        author="anna",
    )
    assert format_pause(ActivePause(key=DISRUPTION_PAUSED, pause=pause), now) == (
        "all NodePools: Drifted disruption for 2d3h more (until 2026-11-23T11:05:00Z), by anna 46m ago"
    )
