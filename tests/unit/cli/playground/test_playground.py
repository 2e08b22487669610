"""`joiner playground` with an in-memory API server as the control plane: no scheduler and no other actor."""

import io
import os
import signal
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import pytest

from cli.main import main
from cli.playground.playground_runner import EXAMPLES_FOLDER
from cli.playground.session_commands import PLAYGROUND_COMMANDS
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.time.virtual_clock import Clock
from tests.controlplane import binaries, plane

pytestmark = pytest.mark.loopback

NODE_POOL = str(EXAMPLES_FOLDER / "nodepool.yaml")


class Plane:
    """What the command uses of a control plane."""

    endpoint = "https://127.0.0.1:6443"
    certificate_authority = "Q0E="
    began: Callable[[], None]
    describe_dead: Callable[[], str]
    folder: Path
    api: ApiServer

    def __init__(self, *, say: Callable[[str], None], **_: object) -> None:  # noqa: D107
        self.processes = self
        say("it is built")

    def __enter__(self) -> Self:
        type(self).began()
        return self

    def __exit__(self, *_: object) -> None:
        self.folder.joinpath("ended").touch()

    def get_token(self, user: Any) -> str:
        assert user.groups == ("joiner:functions",)
        return "token"

    def get_client(self, token: str = "") -> InMemoryKube:
        assert token in ("", "token")
        return InMemoryKube(self.api)

    def build_kubeconfig(self) -> str:
        return "{}"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> type[Plane]:
    class Fresh(Plane):
        folder = tmp_path
        api = ApiServer(Clock())
        began = staticmethod(lambda: None)
        describe_dead = staticmethod(lambda: "")

    monkeypatch.setattr(plane, "ControlPlane", Fresh)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setattr(
        "sim.playground.kubectl.KubectlClient.apply_rbac", lambda _: tmp_path.joinpath("granted").touch()
    )
    return Fresh


def build_raiser(error: BaseException) -> Callable[[], None]:
    def raise_error() -> None:
        raise error

    return raise_error


def test_playground_prints_locations_and_example_commands(
    fake: type[Plane], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop_once_a_node_exists() -> str:
        if b"ip-10-0-0-1" in InMemoryKube(fake.api).list("/api/v1/nodes"):
            os.kill(os.getpid(), signal.SIGTERM)
        return ""

    fake.describe_dead = staticmethod(stop_once_a_node_exists)
    monkeypatch.setattr("cli.playground.session.SAMPLE_INTERVAL", timedelta(0))
    assert main(["playground", "--apply", NODE_POOL]) == 0
    stdout, stderr = capsys.readouterr()
    assert stderr == "it is built\n"
    for fragment in (
        f"{fake.folder}/kubeconfig",
        "http://127.0.0.1:",
        "nodepool.yaml",
        "scale deployment",
        "interrupt",
    ):
        assert fragment in stdout
    assert "node ip-10-0-0-1 joins the cluster" in stdout
    assert fake.folder.joinpath("kubeconfig").stat().st_mode & 0o777 == 0o600
    assert fake.folder.joinpath("ended").exists()
    assert fake.api.get("nodepools.karpenter.sh", "default")
    assert fake.folder.joinpath("granted").exists()


def test_playground_ends_after_the_given_duration(fake: type[Plane]) -> None:
    assert main(["playground", "--for", "0.1"]) == 0
    assert fake.folder.joinpath("ended").exists()


def test_playground_runs_session_commands_until_quit(
    fake: type[Plane], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    orders = "\nstatus\nsing\ninterrupt\nkill ip-10-0-9-9\nsay 'what\nquit\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(orders))
    assert main(["playground", "--for", "3600"]) == 0
    output = capsys.readouterr().out
    assert "you                   status" in output
    assert "interrupt: failed" in output
    assert "no NodePool has a node yet" in output
    assert "kill ip-10-0-9-9: failed" in output
    assert "invalid command: No closing quotation" in output
    assert all(order in output for order in PLAYGROUND_COMMANDS)
    assert fake.folder.joinpath("ended").exists()


def test_playground_rebalance_command_targets_the_busiest_node(
    fake: type[Plane], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    struck: list[str] = []
    monkeypatch.setattr(sys, "stdin", io.StringIO("rebalance\nquit\n"))
    monkeypatch.setattr("sim.playground.playground.Playground.find_busiest_node", lambda _: "ip-10-0-1-4")
    monkeypatch.setattr("sim.playground.playground.Playground.find_instance_id", lambda _, node: f"instance of {node}")
    monkeypatch.setattr(
        "sim.cloud.ec2.instance_lifecycle.InstanceRegistry.send_rebalance_recommendation",
        lambda _, instance: struck.append(instance),
    )
    assert main(["playground", "--for", "3600"]) == 0
    assert struck == ["instance of ip-10-0-1-4"]
    assert "rebalance ip-10-0-1-4" in capsys.readouterr().out
    assert fake.folder.joinpath("ended").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_shuts_the_playground_down_cleanly(
    fake: type[Plane], number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(number)

    def signal_self() -> str:
        os.kill(os.getpid(), number)
        return ""

    fake.describe_dead = staticmethod(signal_self)
    assert main(["playground"]) == 0
    assert "ending" in capsys.readouterr().out
    assert fake.folder.joinpath("ended").exists()
    assert signal.getsignal(number) == before


def test_second_signal_stops_the_playground_immediately(fake: type[Plane], capsys: pytest.CaptureFixture[str]) -> None:
    def signal_twice() -> str:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        return ""

    fake.describe_dead = staticmethod(signal_twice)
    assert main(["playground"]) == 0
    assert "stopped" in capsys.readouterr().err
    assert fake.folder.joinpath("ended").exists()


def test_termination_signal_during_startup_ends_the_playground(
    fake: type[Plane], capsys: pytest.CaptureFixture[str]
) -> None:
    fake.began = staticmethod(lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert main(["playground"]) == 0
    assert "stopped" in capsys.readouterr().err


def test_control_plane_exit_fails_the_playground(fake: type[Plane], capsys: pytest.CaptureFixture[str]) -> None:
    fake.describe_dead = staticmethod(lambda: "etcd ended with 1:\nno space left")
    assert main(["playground"]) == 1
    assert "etcd ended with 1:\nno space left" in capsys.readouterr().err
    assert fake.folder.joinpath("ended").exists()


@pytest.mark.parametrize("error", [binaries.NoPrograms("`go` is not on PATH"), plane.NotStarted("`go` is not on PATH")])
def test_missing_program_is_reported(fake: type[Plane], error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    error.add_note("logs are there")
    fake.began = staticmethod(build_raiser(error))
    assert main(["playground"]) == 1
    assert "joiner playground: `go` is not on PATH\nlogs are there" in capsys.readouterr().err


def test_playground_without_a_repository_checkout_reports_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tests.controlplane.binaries", None)
    assert main(["playground"]) == 1
    assert "needs a checkout" in capsys.readouterr().err


@pytest.mark.usefixtures("fake")
def test_wait_for_crds_times_out(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sim.playground.kubectl.KubectlClient.has_crds", lambda _: False)
    monkeypatch.setattr("cli.playground.playground_runner.CRD_TIMEOUT", timedelta())
    assert main(["playground"]) == 1
    assert "does not serve" in capsys.readouterr().err


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file"),
        (b"a: [", "while parsing"),
        (b"\xff\xfe\xff", "decode"),
        (b"kind: NodePool\n---\n", "no apiVersion, kind or metadata"),
        (b"- 1\n", "no apiVersion, kind or metadata"),
        (b"apiVersion: apps/v2\nkind: Deployment\nmetadata: {name: web}\n", "apps"),
    ],
)
def test_manifest_that_cannot_be_applied_is_reported(
    tmp_path: Path, text: bytes | None, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "some.yaml"
    if text is not None:
        path.write_bytes(text)
    assert main(["playground", "--apply", str(path), "--for", "0"]) == 1
    assert message in capsys.readouterr().err
