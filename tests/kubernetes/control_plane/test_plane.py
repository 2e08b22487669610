"""Promises of a control plane: all of its parts run, and nothing is left behind."""

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
from tests.contract.kube_front import wait_until
from tests.controlplane.binaries import API_SERVER, ETCD, KUBECTL, ensure_programs
from tests.controlplane.plane import ALL_PARTS, API_ONLY, ControlPlane, NotStarted

pytestmark = [pytest.mark.loopback, pytest.mark.controlplane]

ROOT = Path(__file__).parents[3]
STARTER = """
from tests.controlplane.plane import API_ONLY, ControlPlane
plane = ControlPlane(parts=API_ONLY)
plane.start()
print(plane.processes.folder, *plane.processes.get_pids().values(), flush=True)
input()
"""


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def find_leftovers(folder: Path, pids: list[int], seconds: float = 300) -> list[object]:
    deadline = time.monotonic() + seconds
    while True:
        leftovers: list[object] = [pid for pid in pids if is_running(pid)]
        leftovers += [folder] if folder.exists() else []
        if not leftovers or time.monotonic() > deadline:
            return leftovers
        time.sleep(0.05)


def test_control_plane_runs_all_processes_and_leaves_nothing_behind() -> None:
    with ControlPlane() as plane:
        folder, running = plane.processes.folder, plane.processes.get_pids()
        assert tuple(running) == ALL_PARTS
    assert find_leftovers(folder, list(running.values()), 0) == []


def test_two_control_planes_run_in_parallel_without_sharing_objects() -> None:
    with ControlPlane(parts=API_ONLY) as first_plane, ControlPlane(parts=API_ONLY) as second_plane:
        first_plane.get_client().create("/api/v1/namespaces", b'{"metadata":{"name":"shop"}}')
        assert b"shop" not in second_plane.get_client().list("/api/v1/namespaces")


def test_failure_keeps_the_control_plane_logs_and_reports_their_path() -> None:
    plane = ControlPlane(parts=API_ONLY)

    def start_and_fail() -> None:
        with plane:
            folder_and_pids.extend((plane.processes.folder, *plane.processes.get_pids().values()))
            raise ZeroDivisionError

    folder_and_pids: list[Any] = []
    with pytest.raises(ZeroDivisionError) as caught:
        start_and_fail()
    folder, *pids = folder_and_pids
    [note] = caught.value.__notes__
    logs = Path(note.removeprefix("logs of the control plane: "))
    assert sorted(log.name for log in logs.iterdir()) == ["etcd.log", "kube-apiserver.log"]
    assert find_leftovers(folder, pids, 0) == []
    for log in logs.iterdir():
        log.unlink()
    logs.rmdir()


def test_control_plane_start_failure_reports_the_cause_and_leaves_only_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(NotStarted, match="unknown flag: --nonsense"):
        ControlPlane(parts=API_ONLY, api_server_flags=["--nonsense"]).start()
    assert [path.name[:18] for path in tmp_path.iterdir()] == ["joiner-plane-logs-"]


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_control_plane_stops_when_its_parent_process_is_killed(end: signal.Signals, tmp_path: Path) -> None:
    errors_path = tmp_path / "said"
    with errors_path.open("w") as output:
        starter = subprocess.Popen(
            [sys.executable, "-c", STARTER],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
        )
    assert starter.stdout
    folder, *pids = starter.stdout.readline().split() or pytest.fail(errors_path.read_text())
    starter.send_signal(end)
    starter.communicate()
    assert starter.returncode
    assert find_leftovers(Path(folder), [int(pid) for pid in pids]) == []


@pytest.mark.parametrize("part", API_ONLY)
def test_killed_control_plane_process_can_be_restarted(part: str) -> None:
    with ControlPlane(parts=API_ONLY) as plane:
        kube = plane.get_client()
        kube.create("/api/v1/namespaces", b'{"metadata":{"name":"shop"}}')
        plane.processes.kill_process(part)
        if part == API_SERVER:
            with pytest.raises(Unreachable):
                kube.read("/api/v1/namespaces/shop")
        plane.processes.restart(part)
        plane.wait_until_ready()
        plane.wait_until(lambda: bool(kube.read("/api/v1/namespaces/shop")), "what was stored")


def test_kubectl_works_with_the_generated_kubeconfig(cluster: ControlPlane, tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text(cluster.build_kubeconfig())
    kubectl = str(ensure_programs((KUBECTL,)) / KUBECTL)
    command = [kubectl, f"--kubeconfig={config}", f"--cache-dir={tmp_path}", "version", "--output=json"]
    answer = msgspec.json.decode(subprocess.check_output(command))
    assert answer["serverVersion"]["gitVersion"] == answer["clientVersion"]["gitVersion"]


def test_service_account_token_authenticates(cluster: ControlPlane) -> None:
    kube = cluster.get_client(cluster.create_account_token("default", "default"))
    reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    name = "system:serviceaccount:default:default"
    wait_until(lambda: msgspec.json.decode(kube.create(reviews, b"{}"))["status"]["userInfo"]["username"] == name)


def test_etcd_socket_and_folder_are_private(cluster: ControlPlane) -> None:
    assert cluster.processes.folder.stat().st_mode & 0o077 == 0
    assert cluster.processes.folder.joinpath(f"{ETCD}.sock").is_socket()
