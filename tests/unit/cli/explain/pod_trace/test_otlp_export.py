"""The export of a trace with OTLP/HTTP to a server on the loopback interface."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from cli.explain.pod_trace.build_trace import build_pod_trace
from cli.explain.pod_trace.otlp_document import build_otlp_document
from cli.explain.pod_trace.otlp_export import export_trace
from cli.terminal.errors import InputError
from tests.unit.cli.explain.explained_journals import build_journal_evidence, run, write_journal
from tests.unit.cli.explain.pod_trace.traced_journals import TRACED_ENTRIES, make_trace_cluster

pytestmark = pytest.mark.loopback
Out = pytest.CaptureFixture[str]


@contextmanager
def serve_collector(status: int = 200, answer: str = "{}") -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """Serve an OTLP endpoint; the context value is its URL, and the paths and documents that it received."""
    requests: list[tuple[str, Any]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.headers["Content-Type"] == "application/json"
            requests.append((self.path, json.loads(body)))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(answer.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
            """Print nothing."""

    server = HTTPServer(("127.0.0.1", 0), Collector)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def build_document() -> dict[str, Any]:
    evidence = build_journal_evidence(*TRACED_ENTRIES, live=make_trace_cluster())
    return build_otlp_document(build_pod_trace(evidence, "shop/cart"))


def list_spans(document: dict[str, Any]) -> list[dict[str, Any]]:
    [resource_spans] = document["resourceSpans"]
    [scope_spans] = resource_spans["scopeSpans"]
    return list(scope_spans["spans"])


def test_spans_follow_each_other_and_fill_the_span_of_the_pod() -> None:
    root, *steps = list_spans(build_document())
    assert "parentSpanId" not in root
    assert {step["parentSpanId"] for step in steps} == {root["spanId"]}
    assert {(len(span["traceId"]), len(span["spanId"])) for span in (root, *steps)} == {(32, 16)}
    assert len({span["spanId"] for span in (root, *steps)}) == len(steps) + 1
    assert steps[0]["startTimeUnixNano"] == root["startTimeUnixNano"]
    assert steps[-1]["endTimeUnixNano"] == root["endTimeUnixNano"]
    assert all(previous["endTimeUnixNano"] == step["startTimeUnixNano"] for previous, step in pairwise(steps))


def test_repeated_exports_are_the_same_trace() -> None:
    with serve_collector() as (endpoint, requests):
        for _ in range(2):
            assert export_trace(endpoint, build_document()) == f"{endpoint}/v1/traces"
    assert requests[0] == requests[1] == ("/v1/traces", build_document())


def test_trace_id_is_that_of_the_uid_and_not_of_the_steps() -> None:
    partial = build_journal_evidence(*TRACED_ENTRIES[:1], live=make_trace_cluster(is_pod_bound=False))
    spans = list_spans(build_otlp_document(build_pod_trace(partial, "shop/cart")))
    assert {span["traceId"] for span in spans} == {list_spans(build_document())[0]["traceId"]}


@pytest.mark.parametrize(
    ("status", "answer", "message"),
    [
        (401, "no token", "refused the trace with HTTP status 401: no token"),
        (503, "", "refused the trace with HTTP status 503"),
        (302, "", "refused the trace with HTTP status 302"),
        (200, '{"partialSuccess": {"rejectedSpans": "3", "errorMessage": "too old"}}', "rejected spans: too old"),
    ],
)
def test_refused_trace_is_a_clear_error(status: int, answer: str, message: str) -> None:
    with serve_collector(status, answer) as (endpoint, requests), pytest.raises(InputError) as error:
        export_trace(endpoint, build_document())
    assert str(error.value).endswith(message)
    assert str(error.value).startswith(f"--otlp {endpoint}: ")
    assert len(requests) == 1


def test_endpoint_that_does_not_respond_is_a_clear_error() -> None:
    with serve_collector() as (endpoint, _):
        pass
    with pytest.raises(InputError, match="does not respond"):
        export_trace(endpoint, build_document())


@pytest.mark.parametrize("endpoint", ["localhost:4318", "ftp://x", "http://", "http://x:port", ""])
def test_endpoint_must_be_an_http_url(endpoint: str) -> None:
    with pytest.raises(InputError, match="not an HTTP URL; write for example --otlp http://localhost:4318"):
        export_trace(endpoint, {})


def test_command_exports_the_trace_and_fails_if_it_is_refused(tmp_path: Path, capsys: Out) -> None:
    journal = write_journal(tmp_path, *TRACED_ENTRIES)
    with serve_collector() as (endpoint, requests):
        assert run("pod", "cart", journal, "--trace", "--otlp", endpoint) == 0
    assert capsys.readouterr().err == f"trace exported to {endpoint}/v1/traces\n"
    assert len(requests) == 1
    with serve_collector(500) as (endpoint, _):
        assert run("pod", "cart", journal, "--trace", "--otlp", endpoint) == 1
    assert "refused the trace with HTTP status 500" in capsys.readouterr().err
