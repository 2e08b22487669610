"""`joiner ui --hub`: what the server serves, and how the command starts it."""

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from cli.hub.hub_file import HubCluster
from cli.hub.session import HubView, read_hub
from cli.main import main
from cli.ui.server.hub_feed import HubFeed
from cli.ui.server.hub_server import HubServer
from cli.ui.server.request_checks import TOKEN_HEADER
from tests.support.cli.page_assets import write_fake_assets

pytestmark = pytest.mark.loopback
Out = pytest.CaptureFixture[str]
NOW = datetime(2026, 11, 21, 9, 9, tzinfo=UTC)
TOKEN = "the-token"  # noqa: S105 - of this test
HUB = "examples/hub.yaml"


def read_example() -> HubView:
    return read_hub([HubCluster(name="demo", folder="examples/journal")], NOW)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    monkeypatch.setattr("cli.ui.page.ASSET_FOLDER", write_fake_assets(tmp_path))
    server = HubServer(0, TOKEN, HubFeed(read_example(), read_example), "Joiner: clusters")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(5)


def send(server: HubServer, path: str, *, method: str = "GET", token: str = TOKEN) -> tuple[int, str, str]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request(method, path, headers={TOKEN_HEADER: token} if token else {})
    response = connection.getresponse()
    content = response.read().decode()
    connection.close()
    return response.status, response.headers.get("X-Joiner-Version", ""), content


def test_page_and_document_are_served(server: HubServer) -> None:
    status, _, page = send(server, f"/?token={TOKEN}", token="")
    assert (status, "<title>Joiner: clusters</title>" in page, TOKEN in page) == (200, True, False)
    status, version, content = send(server, "/api/hub")
    document: dict[str, Any] = json.loads(content)
    assert (status, version, document["readIntervalSeconds"]) == (200, "1", 300.0)
    assert [cluster["name"] for cluster in document["clusters"]] == ["demo"]
    assert document["totals"]["nodes"] == 1


def test_requests_without_the_token_or_with_other_methods_are_rejected(server: HubServer) -> None:
    assert send(server, "/api/hub", token="")[0] == 401
    assert send(server, "/api/fleet")[0] == 404
    assert send(server, "/api/hub", method="POST")[0] == 404
    assert send(server, "/api/hub", method="DELETE")[::2] == (405, '{"error":"method not allowed: use GET"}')


def test_clusters_are_read_again_in_the_background() -> None:
    was_read = threading.Event()

    def read_again() -> HubView:
        was_read.set()
        return read_example()

    feed = HubFeed(read_example(), read_again, interval_seconds=0.01)
    feed.start()
    assert was_read.wait(20)
    feed.stop()


def test_each_read_has_a_new_version() -> None:
    feed = HubFeed(read_example(), read_example)
    feed.refresh_once()
    version, body = feed.get_document()
    assert (version, json.loads(body)["clusters"][0]["error"]) == (2, None)


def test_command_serves_the_clusters_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    documents: list[dict[str, Any]] = []

    def serve_and_interrupt(server: HubServer, poll_interval: float) -> None:
        del poll_interval
        server.feed.refresh_once()
        documents.append(json.loads(server.feed.get_document()[1]))
        raise KeyboardInterrupt

    monkeypatch.setattr("cli.ui.page.ASSET_FOLDER", write_fake_assets(tmp_path))
    monkeypatch.setattr(HubServer, "serve_forever", serve_and_interrupt)
    assert main(["ui", "--hub", HUB]) == 0
    assert capsys.readouterr().out.startswith("page: http://127.0.0.1:")
    assert [cluster["name"] for cluster in documents[0]["clusters"]] == ["demo"]


def test_invalid_hub_file_is_an_error(tmp_path: Path, capsys: Out) -> None:
    file = tmp_path / "hub.yaml"
    file.write_text("clusters: []")
    assert main(["ui", "--hub", str(file)]) == 1
    assert "clusters: missing or empty" in capsys.readouterr().err


@pytest.mark.parametrize("source", [["-f", "x.yaml"], ["--journal", "x"], ["--context", "x"], ["--kubeconfig", "x"]])
def test_hub_and_other_sources_exclude_each_other(capsys: Out, source: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["ui", "--hub", HUB, *source])
    assert "--hub cannot be combined with -f, --journal, --context or --kubeconfig" in capsys.readouterr().err
