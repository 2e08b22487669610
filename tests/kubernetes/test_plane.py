"""What a control plane promises to whoever starts one: it is whole, and it leaves nothing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shared.errors import Unreachable
from tests.contract.kube_front import eventually
from tests.controlplane.binaries import API_SERVER, ETCD, KUBECTL, programs
from tests.controlplane.plane import ALL, API_ONLY, ControlPlane, NotStarted

pytestmark = [pytest.mark.loopback, pytest.mark.controlplane]

ROOT = Path(__file__).parents[2]
STARTER = """
from tests.controlplane.plane import API_ONLY, ControlPlane
plane = ControlPlane(parts=API_ONLY)
plane.start()
print(plane.processes.folder, *plane.processes.pids().values(), flush=True)
input()
"""


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def leftovers(folder: Path, pids: list[int], seconds: float = 300) -> list[object]:
    deadline = time.monotonic() + seconds
    while True:
        left: list[object] = [pid for pid in pids if is_running(pid)]
        left += [folder] if folder.exists() else []
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.05)


def test_all_of_it_runs_and_leaves_nothing() -> None:
    with ControlPlane() as plane:
        folder, running = plane.processes.folder, plane.processes.pids()
        assert tuple(running) == ALL
    assert leftovers(folder, list(running.values()), 0) == []


def test_two_live_side_by_side() -> None:
    with ControlPlane(parts=API_ONLY) as one, ControlPlane(parts=API_ONLY) as other:
        one.client().create("/api/v1/namespaces", b'{"metadata":{"name":"shop"}}')
        assert b"shop" not in other.client().list("/api/v1/namespaces")


def test_after_a_failure_the_logs_are_kept_and_found() -> None:
    plane = ControlPlane(parts=API_ONLY)

    def fail() -> None:
        with plane:
            seen.extend((plane.processes.folder, *plane.processes.pids().values()))
            raise ZeroDivisionError

    seen: list[Any] = []
    with pytest.raises(ZeroDivisionError) as caught:
        fail()
    folder, *pids = seen
    [note] = caught.value.__notes__
    logs = Path(note.removeprefix("logs of the control plane: "))
    assert sorted(log.name for log in logs.iterdir()) == ["etcd.log", "kube-apiserver.log"]
    assert leftovers(folder, pids, 0) == []
    for log in logs.iterdir():
        log.unlink()
    logs.rmdir()


def test_one_that_cannot_start_says_why_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(NotStarted, match="unknown flag: --nonsense"):
        ControlPlane(parts=API_ONLY, api_server_flags=["--nonsense"]).start()
    assert [each.name[:18] for each in tmp_path.iterdir()] == ["joiner-plane-logs-"]


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_whoever_started_it(end: signal.Signals, tmp_path: Path) -> None:
    said = tmp_path / "said"
    with said.open("w") as output:
        starter = subprocess.Popen(
            [sys.executable, "-c", STARTER],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
        )
    assert starter.stdout
    folder, *pids = starter.stdout.readline().split() or pytest.fail(said.read_text())
    starter.send_signal(end)
    starter.communicate()
    assert starter.returncode
    assert leftovers(Path(folder), [int(pid) for pid in pids]) == []


@pytest.mark.parametrize("part", API_ONLY)
def test_a_part_that_is_killed_can_be_revived(part: str) -> None:
    with ControlPlane(parts=API_ONLY) as plane:
        kube = plane.client()
        kube.create("/api/v1/namespaces", b'{"metadata":{"name":"shop"}}')
        plane.processes.kill(part)
        if part == API_SERVER:
            with pytest.raises(Unreachable):
                kube.read("/api/v1/namespaces/shop")
        plane.processes.revive(part)
        plane.wait_until_ready()
        plane.wait_for(lambda: bool(kube.read("/api/v1/namespaces/shop")), "what was stored")


def test_a_person_uses_kubectl(cluster: ControlPlane, tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text(cluster.kubeconfig())
    kubectl = str(programs((KUBECTL,)) / KUBECTL)
    command = [kubectl, f"--kubeconfig={config}", f"--cache-dir={tmp_path}", "version", "--output=json"]
    answer = msgspec.json.decode(subprocess.check_output(command))
    assert answer["serverVersion"]["gitVersion"] == answer["clientVersion"]["gitVersion"]


def test_a_service_account_is_somebody(cluster: ControlPlane) -> None:
    kube = cluster.client(cluster.account_token("default", "default"))
    reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    name = "system:serviceaccount:default:default"
    eventually(lambda: msgspec.json.decode(kube.create(reviews, b"{}"))["status"]["userInfo"]["username"] == name)


def test_etcd_is_nobody_elses(cluster: ControlPlane) -> None:
    assert cluster.processes.folder.stat().st_mode & 0o077 == 0
    assert cluster.processes.folder.joinpath(f"{ETCD}.sock").is_socket()
