"""The server of `joiner ui`: what it serves, and the attacks that it rejects."""

import json
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cli.fleet.document.json_format import decode_fleet_document
from cli.fleet.sources.fleet_history import FleetHistory
from cli.inputs.documents import read_documents
from cli.journal.journal import Journal, load_journal
from cli.planning.catalog_source import load_catalog_file
from cli.terminal.errors import InputError
from cli.ui.server.fleet_feed import FleetFeed, FleetObservation
from cli.ui.server.fleet_server import FleetServer
from cli.ui.server.request_checks import MAX_BODY_BYTES, MAX_URL_CHARACTERS, TOKEN_HEADER
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import ObjectMeta
from shared.model.kubernetes.pod import Pod, PodSpec
from shared.take.manifests.snapshot_from_manifests import build_snapshot_from_documents
from tests.support.cli.page_assets import read_embedded_document, write_fake_assets

pytestmark = pytest.mark.loopback
EXAMPLES = Path("examples")
TOKEN = "the-token"  # noqa: S105 - of this test
NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)
EVIL = "</script><script>alert(1)</script>\u2028"


def read_example_cluster() -> ClusterSnapshot:
    documents = [document.source for document in read_documents([str(EXAMPLES / "cluster")], pytest.fail)]
    cluster = build_snapshot_from_documents(documents, NOW)
    return replace(cluster, catalog=load_catalog_file(str(EXAMPLES / "catalogue.json")))


def start_server(folder: Path, feed: FleetFeed, monkeypatch: pytest.MonkeyPatch) -> Iterator[FleetServer]:
    monkeypatch.setattr("cli.ui.page.ASSET_FOLDER", write_fake_assets(folder))
    server = FleetServer(0, TOKEN, feed, "Joiner <prod>")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        feed.stop()
        server.shutdown()
        server.server_close()
        thread.join(5)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FleetServer]:
    """Serve the example journal, which has a cluster snapshot with a catalog."""
    journal = load_journal(str(EXAMPLES / "journal"), NOW, None, is_now=False)
    history = FleetHistory(journal, kind="journal", title="example")
    yield from start_server(tmp_path, FleetFeed(history, journal.now), monkeypatch)


@pytest.fixture
def cluster_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FleetServer]:
    """Serve the example cluster."""
    history = FleetHistory(Journal(source="", now=NOW), kind="folder", title="example")
    history.observe(read_example_cluster(), NOW)
    yield from start_server(tmp_path, FleetFeed(history, NOW), monkeypatch)


def send(
    server: FleetServer,
    path: str,
    *,
    method: str = "GET",
    body: bytes | None = None,
    token: str | None = TOKEN,
    **headers: str,
) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=30)
    sent_headers = {name.replace("_", "-"): value for name, value in headers.items()}
    if token is not None:
        sent_headers[TOKEN_HEADER] = token
    connection.request(method, path, body, sent_headers)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response, content


def ask_what_if(server: FleetServer, request: Any) -> tuple[int, Any]:
    response, content = send(
        server, "/api/what-if", method="POST", body=json.dumps(request).encode(), Content_Type="application/json"
    )
    return response.status, json.loads(content)


def test_page_fetches_its_data_from_the_server_and_has_security_headers(server: FleetServer) -> None:
    response, content = send(server, f"/?token={TOKEN}", token=None)
    html = content.decode()
    assert response.status == 200
    assert '<script type="application/json" id="fleet-document">{"server": true}</script>' in html
    assert "Joiner &lt;prod&gt;" in html
    assert TOKEN not in html
    assert response.headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert response.headers["X-Frame-Options"] == "DENY"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Referrer-Policy"] == "no-referrer"
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers.get_all("Server") == ["joiner"]


def test_document_is_served_as_json(server: FleetServer) -> None:
    response, content = send(server, "/api/fleet")
    document = decode_fleet_document(content)
    assert response.headers["Content-Type"] == "application/json; charset=utf-8"
    assert response.headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert document.source.title == "example"
    assert len(document.nodes.name) == 4


@pytest.mark.parametrize("path", ["/", "/api/fleet", "/api/explain?kind=node&name=x", "/api/node-pools", "/api/events"])
@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN + "x", "ü"])
def test_missing_and_wrong_tokens_are_rejected(server: FleetServer, path: str, token: str | None) -> None:
    encoded_token = None if token is None else token.encode().decode("latin-1")
    response, content = send(server, path, token=encoded_token)
    assert response.status == 401
    assert json.loads(content)["error"].startswith("missing or wrong token")


def test_token_in_the_address_is_valid_for_the_page_only(server: FleetServer) -> None:
    assert send(server, f"/api/fleet?token={TOKEN}", token=None)[0].status == 401
    assert send(server, "/")[0].status == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", ""]
)
def test_other_hosts_are_rejected(server: FleetServer, host: str) -> None:
    response, _ = send(server, f"/?token={TOKEN}", Host=host.format(port=server.port))
    assert response.status == 403


def test_localhost_is_accepted_and_two_hosts_are_not(server: FleetServer) -> None:
    assert send(server, "/api/fleet", Host=f"localhost:{server.port}")[0].status == 200
    request = (
        f"GET /api/fleet HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nHost: evil\r\n{TOKEN_HEADER}: {TOKEN}\r\n\r\n"
    )
    assert send_raw(server, request).startswith("HTTP/1.1 403 ")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_requests_of_other_origins_are_rejected(server: FleetServer, headers: dict[str, str]) -> None:
    fields: dict[str, Any] = {name.replace("-", "_"): value for name, value in headers.items()}
    assert send(server, "/api/fleet", **fields)[0].status == 403
    post_fields: dict[str, Any] = fields | {"Content_Type": "application/json"}
    assert send(server, "/api/what-if", method="POST", body=b"{}", **post_fields)[0].status == 403


def test_own_origin_is_accepted(server: FleetServer) -> None:
    origin = f"http://127.0.0.1:{server.port}"
    assert send(server, "/api/fleet", Origin=origin, Sec_Fetch_Site="same-origin")[0].status == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "CONNECT", "FOO"])
def test_other_methods_are_rejected(server: FleetServer, method: str) -> None:
    response, _ = send(server, "/api/fleet", method=method)
    assert response.status == 405
    assert response.headers["X-Frame-Options"] == "DENY"
    assert "Access-Control-Allow-Origin" not in response.headers


@pytest.mark.parametrize("path", ["/", "/api/fleet", "/api/node-pools", "/api/what-if/", "/other"])
def test_post_elsewhere_is_rejected(server: FleetServer, path: str) -> None:
    response, _ = send(server, path if path != "/" else f"/?token={TOKEN}", method="POST", body=b"{}")
    assert response.status == 404


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/..%2f..%2fetc/passwd",
        "/assets/fleet.js",
        "//etc/passwd",
        "/api/../api/fleet",
        "/api/fleet/",
        "/./",
        "/examples/",
    ],
)
def test_paths_that_are_no_endpoint_are_not_found(server: FleetServer, path: str) -> None:
    assert send(server, path)[0].status == 404


def test_oversized_requests_are_rejected(server: FleetServer) -> None:
    body = b" " * (MAX_BODY_BYTES + 1)
    for lengths in (str(len(body)), "9" * 30):
        request = build_post(server, f"Content-Length: {lengths}")
        assert send_raw(server, request).startswith("HTTP/1.1 413 ")
    assert send(server, f"/api/fleet?{'x' * MAX_URL_CHARACTERS}")[0].status == 414
    assert send(server, "/api/fleet", X_Large="x" * 70000)[0].status == 431


@pytest.mark.parametrize(
    "length", ["", "Content-Length: -1", "Content-Length: 1x", "Content-Length: 2\r\nContent-Length: 2"]
)
def test_bodies_need_one_length(server: FleetServer, length: str) -> None:
    assert send_raw(server, build_post(server, length)).startswith("HTTP/1.1 411 ")
    assert send_raw(server, build_post(server, "Transfer-Encoding: chunked")).startswith("HTTP/1.1 411 ")


def build_post(server: FleetServer, header: str) -> str:
    lines = [
        "POST /api/what-if HTTP/1.1",
        f"Host: 127.0.0.1:{server.port}",
        f"{TOKEN_HEADER}: {TOKEN}",
        "Content-Type: application/json",
        *([header] if header else []),
    ]
    return "\r\n".join(lines) + "\r\n\r\n"


def send_raw(server: FleetServer, request: str) -> str:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(request.encode())
        return connection.recv(65536).decode()


def test_body_must_be_json_of_the_right_type(server: FleetServer) -> None:
    assert send(server, "/api/what-if", method="POST", body=b"{}", Content_Type="text/plain")[0].status == 415
    status, answer = ask_what_if(server, {"prices": "cheap"})
    assert status == 400
    assert "$.prices" in answer["error"]
    assert send(server, "/api/what-if", method="POST", body=b"\xff{", Content_Type="application/json")[0].status == 400


def test_garbage_is_answered_without_a_trace(server: FleetServer) -> None:
    assert "Traceback" not in send_raw(server, "\x00\x01\x02\r\n\r\n")
    assert send(server, "/api/fleet")[0].status == 200


def test_explanations_have_lines_and_links(server: FleetServer) -> None:
    _, content = send(server, "/api/explain?kind=nodepool&name=default")
    explanation = json.loads(content)
    assert any(line.startswith("nodes: 4 in this period") for line in explanation["lines"])
    node = next(link for link in explanation["links"] if link["kind"] == "node")
    _, content = send(server, f"/api/explain?kind=node&name={node['name']}")
    assert {"kind": "nodepool", "name": "default"} in json.loads(content)["links"]


def test_decisions_are_explained_with_the_replay_command(server: FleetServer) -> None:
    document = decode_fleet_document(send(server, "/api/fleet")[1])
    decision = next(decision for decision in document.decisions if decision.replay)
    lines = json.loads(send(server, f"/api/explain?kind=decision&name={decision.id}")[1])["lines"]
    assert lines[-1] == f"replay: {decision.replay}"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("kind=node&name=nothing", "node nothing not found"),
        ("kind=secret&name=x", "unknown kind 'secret': write one of pod, node"),
        ("kind=decision&name=../../x", "decision ../../x not found"),
    ],
)
def test_unknown_objects_are_named(server: FleetServer, query: str, words: str) -> None:
    response, content = send(server, f"/api/explain?{query}")
    assert response.status == 404
    assert words in json.loads(content)["error"]


def test_names_of_the_cluster_survive_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evil_pod = Pod(meta=ObjectMeta(name=EVIL, namespace=EVIL, uid="1"), spec=PodSpec())
    history = FleetHistory(Journal(source="", now=NOW), kind="folder", title=EVIL)
    history.observe(ClusterSnapshot(taken_at=NOW, pods=(evil_pod,)), NOW)
    for server in start_server(tmp_path, FleetFeed(history, NOW), monkeypatch):
        document = decode_fleet_document(send(server, "/api/fleet")[1])
        assert document.strings[document.pods.name[0]] == EVIL
        assert document.source.title == EVIL


def test_what_if_compares_plan_and_consolidation(cluster_server: FleetServer) -> None:
    pools = json.loads(send(cluster_server, "/api/node-pools")[1])["nodePools"]
    status, unchanged = ask_what_if(cluster_server, {"nodePools": pools})
    assert status == 200
    assert unchanged["errors"] == []
    assert unchanged["planBefore"] == unchanged["planAfter"]
    assert unchanged["planBefore"]["usdPerHour"] > 0
    changed_pools = pools | {"default": pools["default"].replace("        - spot\n", "")}
    status, changed = ask_what_if(cluster_server, {"nodePools": changed_pools})
    assert changed["planBefore"] == unchanged["planBefore"]
    assert changed["planAfter"]["usdPerHour"] > changed["planBefore"]["usdPerHour"]
    assert {node["capacityType"] for node in changed["planAfter"]["nodes"] if node["nodePool"] == "default"} == {
        "on-demand"
    }
    assert any(line.startswith("today: ") for line in changed["consolidation"]["lines"])


def test_what_if_errors_name_object_field_and_fix(cluster_server: FleetServer) -> None:
    pools = json.loads(send(cluster_server, "/api/node-pools")[1])["nodePools"]
    wrong = pools["default"].replace("consolidationPolicy: WhenEmptyOrUnderutilized", "consolidationPolicy: Sometimes")
    status, answer = ask_what_if(
        cluster_server, {"nodePools": {"default": wrong}, "prices": {"m99.large": 1, "m7a.xlarge": -1}}
    )
    assert status == 200
    assert answer["planAfter"] is None
    text = "\n".join(answer["errors"])
    assert "NodePool default" in text
    assert "consolidationPolicy" in text
    assert "prices: m99.large: there is no instance type m99.large in the catalog: correct the name" in text
    assert "prices: m7a.xlarge: -1.0 is not a price" in text


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("spec: [", "NodePool default:2: not YAML: "),
        ("just text", "NodePool default:1: not a Kubernetes object: "),
        ("apiVersion: karpenter.sh/v1\nkind: NodePol\nmetadata: {name: x}", "kind: unknown: did you mean NodePool?"),
    ],
)
def test_what_if_names_the_editor_of_invalid_yaml(cluster_server: FleetServer, text: str, error: str) -> None:
    status, answer = ask_what_if(cluster_server, {"nodePools": {"default": text}})
    assert (status, answer["planAfter"]) == (200, None)
    assert error in "\n".join(answer["errors"])


def test_what_if_rejects_unknown_fields(cluster_server: FleetServer) -> None:
    pools = json.loads(send(cluster_server, "/api/node-pools")[1])["nodePools"]
    wrong = pools["default"].replace("expireAfter", "expireAfer")
    _, answer = ask_what_if(cluster_server, {"nodePools": pools | {"default": wrong}})
    [error] = answer["errors"]
    assert error.startswith("NodePool default: spec.template.spec.expireAfer: unknown field: ")
    assert "did you mean expireAfter?" in error


def test_what_if_without_prices_names_the_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = FleetHistory(Journal(source="", now=NOW), kind="folder", title="x")
    history.observe(ClusterSnapshot(taken_at=NOW), NOW)
    for server in start_server(tmp_path, FleetFeed(history, NOW), monkeypatch):
        status, answer = ask_what_if(server, {})
        assert status == 422
        assert "--instance-types" in answer["error"]


def test_changes_of_a_live_cluster_are_sent_as_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pod = Pod(meta=ObjectMeta(name="web", namespace="default", uid="1"), spec=PodSpec())
    observations: list[Any] = [
        FleetObservation(at=NOW + timedelta(seconds=5), cluster=ClusterSnapshot(taken_at=NOW, pods=(pod,))),
        InputError("prod: connection refused"),
    ]

    def read_next() -> FleetObservation:
        observation = observations.pop(0)
        if isinstance(observation, InputError):
            raise observation
        assert isinstance(observation, FleetObservation)
        return observation

    history = FleetHistory(Journal(source="", now=NOW), kind="cluster", title="context prod")
    history.observe(ClusterSnapshot(taken_at=NOW), NOW)
    feed = FleetFeed(history, NOW, read_next)
    for server in start_server(tmp_path, feed, monkeypatch):
        connection = HTTPConnection("127.0.0.1", server.port, timeout=30)
        connection.request("GET", "/api/events", headers={TOKEN_HEADER: TOKEN})
        response = connection.getresponse()
        assert response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        assert [response.readline() for _ in range(3)] == [
            b"event: fleet\n",
            b'data: {"version": 2, "end": 1795251600000}\n',
            b"\n",
        ]
        feed.refresh_once()
        assert response.readline() == b"event: fleet\n"
        assert response.readline() == b'data: {"version": 3, "end": 1795251605000}\n'
        document_response, content = send(server, "/api/fleet")
        assert document_response.headers["X-Joiner-Version"] == "3"
        document = decode_fleet_document(content)
        assert (len(document.pods.name), document.source.live) == (1, True)
        assert document.end == 1795251605000
        feed.refresh_once()
        document = decode_fleet_document(send(server, "/api/fleet")[1])
        assert (document.pods.end, document.end) == ((None,), 1795251605000)
        assert "prod: connection refused" in document.source.notes[0]
        feed.stop()
        response.close()
        connection.close()


def test_document_has_a_new_version_only_if_more_than_the_time_changed() -> None:
    cluster = read_example_cluster()
    history = FleetHistory(Journal(source="", now=NOW), kind="cluster", title="context prod")
    history.observe(cluster, NOW)
    observed_clusters = [cluster]

    def read_later() -> FleetObservation:
        at = feed.wait_for_update(0, 0).end / 1000 + 5
        return FleetObservation(at=datetime.fromtimestamp(at, UTC), cluster=observed_clusters[-1])

    feed = FleetFeed(history, NOW, read_later)
    first, body = feed.get_document()
    feed.refresh_once()
    assert feed.wait_for_update(0, 0).end == (NOW.timestamp() + 5) * 1000
    assert feed.get_document() == (first, body)
    for field in ("nodes", "pods", "node_pools"):
        last, _ = feed.get_document()
        changes: Any = {field: getattr(observed_clusters[-1], field)[1:]}
        observed_clusters.append(replace(observed_clusters[-1], **changes))
        feed.refresh_once()
        version, body = feed.get_document()
        assert version > last, field
        feed.refresh_once()
        assert feed.get_document() == (version, body), field


def test_document_is_encoded_only_for_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    history = FleetHistory(Journal(source="", now=NOW), kind="cluster", title="context prod")
    observation = FleetObservation(at=NOW, cluster=read_example_cluster())
    feed = FleetFeed(history, NOW, lambda: observation)
    computed_states: list[object] = []

    def build_no_rows(cluster_state: object) -> tuple[()]:
        computed_states.append(cluster_state)
        return ()

    monkeypatch.setattr("cli.fleet.sources.fleet_history.build_node_rows", build_no_rows)
    monkeypatch.setattr("cli.ui.server.fleet_feed.encode_fleet_document", lambda _: pytest.fail("encoded"))
    feed.refresh_once()
    feed.refresh_once()
    assert computed_states == []
    assert feed.wait_for_update(0, 0).number == 3
    assert len(computed_states) == 1


def test_number_of_event_streams_is_limited(server: FleetServer) -> None:
    for _ in range(16):
        assert server.event_streams.acquire(blocking=False)
    response, content = send(server, "/api/events")
    assert response.status == 503
    assert "close some" in json.loads(content)["error"]


def test_embedded_document_cannot_end_its_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cli.fleet.document.json_format import encode_fleet_document  # noqa: PLC0415
    from cli.ui.page import render_fleet_page  # noqa: PLC0415

    monkeypatch.setattr("cli.ui.page.ASSET_FOLDER", write_fake_assets(tmp_path))
    history = FleetHistory(Journal(source="", now=NOW), kind="folder", title=EVIL)
    html = render_fleet_page(EVIL, encode_fleet_document(history.build_document(NOW)))
    assert "alert(1)</script>" not in html
    assert "\u2028" not in html.partition("<body>")[2]
    assert read_embedded_document(html).source.title == EVIL
