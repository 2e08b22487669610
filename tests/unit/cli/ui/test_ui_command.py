"""`joiner ui`: its sources, its port, and how it ends."""

import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cli.fleet.document.fleet_document import FleetDocument
from cli.fleet.document.json_format import decode_fleet_document
from cli.main import main
from cli.ui.server.fleet_server import FleetServer
from tests.support.cli.live_cases import serve_cluster
from tests.support.cli.page_assets import write_fake_assets

pytestmark = pytest.mark.loopback
Out = pytest.CaptureFixture[str]
JOURNAL = ("--journal", "examples/journal")


@pytest.fixture
def documents(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> list[FleetDocument]:
    """Collect the documents of servers, which are stopped by Ctrl-C at once."""
    served_documents: list[FleetDocument] = []

    def serve_and_interrupt(server: FleetServer, poll_interval: float) -> None:
        del poll_interval
        server.feed.refresh_once()
        served_documents.append(decode_fleet_document(server.feed.get_document()[1]))
        raise KeyboardInterrupt

    monkeypatch.setattr("cli.ui.page.ASSET_FOLDER", write_fake_assets(tmp_path_factory.mktemp("assets")))
    monkeypatch.setattr(FleetServer, "serve_forever", serve_and_interrupt)
    monkeypatch.delenv("JOINER_BUCKET_NAME", raising=False)
    return served_documents


def test_command_prints_the_address_and_ends_with_ctrl_c(documents: list[FleetDocument], capsys: Out) -> None:
    assert main(["ui", *JOURNAL]) == 0
    first, second, *more_lines = capsys.readouterr().out.splitlines()
    assert first.startswith("page: http://127.0.0.1:")
    token = first.partition("/?token=")[2]
    assert len(token) >= 32
    assert (second, more_lines) == ("Ctrl-C stops the server", ["", "stopped"])
    assert (documents[0].source.kind, len(documents[0].nodes.name)) == ("journal", 4)


def test_token_differs_each_time(documents: list[FleetDocument], capsys: Out) -> None:
    for _ in range(2):
        main(["ui", *JOURNAL])
    addresses = {line for line in capsys.readouterr().out.splitlines() if line.startswith("page: ")}
    assert len({address.partition("token=")[2] for address in addresses}) == len(documents) == 2


def test_files_are_a_source_without_time(documents: list[FleetDocument]) -> None:
    arguments = ["-f", "examples/cluster", "--instance-types", "examples/catalogue.json"]
    assert main(["ui", *arguments, "--now", "2026-11-21T09:00:00Z"]) == 0
    [document] = documents
    assert (document.source.kind, document.start) == ("folder", document.end)
    assert None not in document.nodes.price
    assert any(explanation.blocked_by for explanation in document.explanations)
    assert any(explanation.alternatives for explanation in document.explanations)


def test_live_cluster_grows_while_the_server_runs(documents: list[FleetDocument], tmp_path: Path) -> None:
    with serve_cluster(tmp_path) as (kube, kubeconfig):
        pod: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"containers": [{"name": "web", "image": "web"}]},
        }
        kube.create("/api/v1/namespaces/default/pods", msgspec.json.encode(pod))
        assert main(["ui", "--kubeconfig", kubeconfig, "--instance-types", "examples/catalogue.json"]) == 0
    [document] = documents
    assert (document.source.kind, document.source.cluster, document.source.live) == ("cluster", "here", True)
    assert [document.strings[name] for name in document.pods.name] == ["web"]


def test_journal_and_cluster_are_combined(documents: list[FleetDocument], tmp_path: Path) -> None:
    with serve_cluster(tmp_path) as (_, kubeconfig):
        arguments = ["--kubeconfig", kubeconfig, "--instance-types", "examples/catalogue.json"]
        assert main(["ui", *JOURNAL, *arguments, "--since", "200000h"]) == 0
    [document] = documents
    assert document.source.kind == "cluster"
    assert document.decisions
    assert None not in document.nodes.end


def test_default_port_in_use_is_replaced_by_a_free_one(
    documents: list[FleetDocument], capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        monkeypatch.setattr("cli.ui.server.page_server.DEFAULT_PORT", port)
        assert main(["ui", *JOURNAL]) == 0
        assert f":{port}/" not in capsys.readouterr().out
        assert main(["ui", *JOURNAL, "--port", str(port)]) == 1
    assert "Address already in use: choose another port, or omit --port" in capsys.readouterr().err
    assert len(documents) == 1


@pytest.mark.parametrize("port", ["x", "65536", "-1", "²"])
def test_invalid_port_is_wrong_usage(capsys: Out, port: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["ui", f"--port={port}"])
    assert "is not a port between 0 and 65535" in capsys.readouterr().err


def test_files_and_journal_exclude_each_other(capsys: Out) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["ui", "-f", "x.yaml", *JOURNAL])
    assert "-f cannot be combined with --journal" in capsys.readouterr().err


def test_browser_is_opened_only_if_asked_for(
    documents: list[FleetDocument], capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    main(["ui", *JOURNAL])
    assert opened == []
    main(["ui", *JOURNAL, "--open"])
    assert f"page: {opened[0]}" in capsys.readouterr().out
    assert len(documents) == 2


def test_source_that_cannot_be_read_is_reported(documents: list[FleetDocument], tmp_path: Path, capsys: Out) -> None:
    assert main(["ui", "--journal", str(tmp_path / "nowhere")]) == 1
    assert "joiner ui: --journal " in capsys.readouterr().err
    assert documents == []


def test_page_that_is_not_built_is_reported(
    documents: list[FleetDocument], tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.ui.page.ASSET_FOLDER", tmp_path)
    assert main(["ui", *JOURNAL]) == 1
    assert "run `make ui`" in capsys.readouterr().err
    assert documents == []


def test_newer_journal_entries_are_read_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    from argparse import Namespace  # noqa: PLC0415

    from cli.journal.journal import Journal, load_journal  # noqa: PLC0415
    from cli.ui.sources import LiveReader  # noqa: PLC0415
    from shared.model.cluster import ClusterSnapshot  # noqa: PLC0415

    now = datetime(2026, 11, 21, 8, 48, tzinfo=UTC)
    times = [now + timedelta(seconds=30), now + timedelta(seconds=61), now + timedelta(seconds=70)]
    get_time: Callable[[], datetime] = lambda: times.pop(0)  # noqa: E731
    old = load_journal("examples/journal", now, None, is_now=False)
    known_journal = msgspec.structs.replace(old, cycles=old.cycles[:5], now=now)
    reader = LiveReader(Namespace(context="", kubeconfig=None), known_journal, "examples/journal", get_time)
    monkeypatch.setattr(reader, "_read_input", lambda: (None, ClusterSnapshot(taken_at=now)))
    assert reader().journal is None
    second = reader().journal
    assert isinstance(second, Journal)
    assert len(second.cycles) > 5
    assert reader().journal is None
