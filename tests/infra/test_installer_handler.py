"""What Lambda and CloudFormation see of the installer."""

import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from functions.installer import handler
from functions.installer.answer import LONGEST, parse_order, reply, send
from functions.installer.manifests import path_of
from shared.errors import Fault, Gone, Unreachable
from shared.ports import Kube
from sim.clock import Clock
from tests.infra.installations import Stack, event, failing, is_there, wanted

CONTEXT: Any = SimpleNamespace(
    aws_request_id="request-1", log_stream_name="stream", get_remaining_time_in_millis=lambda: 900_000
)


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(handler, "send", lambda url, body: found.append((url, msgspec.json.decode(body))))
    return found


def ask(request: str) -> dict[str, Any]:
    return dict(event(request, {"Part": "installed", "Manifests": "manifests.json"}))


def outcomes(fault: BaseException) -> Callable[..., Any]:
    def world(*_: object) -> Any:
        raise fault

    return world


@pytest.mark.parametrize(
    ("request_type", "fault", "status"),
    [
        ("Delete", Gone("eks:DescribeCluster demo: no such cluster"), "SUCCESS"),
        ("Create", Gone("eks:DescribeCluster demo: no such cluster"), "FAILED"),
        ("Delete", Unreachable("eks:DescribeCluster demo: DELETING, no endpoint yet"), "FAILED"),
    ],
)
def test_a_cluster_that_is_gone_has_nothing_to_remove(
    request_type: str, fault: Fault, status: str, heard: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler, "world_from_environment", outcomes(fault))
    handler.handler(ask(request_type), CONTEXT)
    [(url, body)] = heard
    assert url == "https://cloudformation-custom-resource-response/?signed"
    assert (body["Status"], body["Reason"]) == (status, str(fault))


def test_cloudformation_hears_even_of_what_nobody_foresaw(heard: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handler, "world_from_environment", outcomes(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        handler.handler(ask("Create"), CONTEXT)
    [(_, body)] = heard
    assert (body["Status"], body["Reason"]) == ("FAILED", "see the log, stream")


def test_the_handler_installs(stack: Stack, kube: Kube, heard: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handler, "world_from_environment", lambda *_: stack._world())  # noqa: SLF001 - its own world
    handler.handler(ask("Create"), CONTEXT)
    assert [body["Status"] for _, body in heard] == ["SUCCESS"]
    assert all(is_there(kube, path_of(one)) for one in wanted())


def test_waiting_takes_real_time_there(
    kube: Kube, clock: Clock, heard: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    stack = failing(kube, clock, iter([Unreachable("not now")]))
    monkeypatch.setattr(handler, "world_from_environment", lambda *_: stack._world())  # noqa: SLF001 - its own world
    monkeypatch.setattr(time, "sleep", slept.append)
    handler.handler(ask("Create"), CONTEXT)
    assert (slept, heard[0][1]["Status"]) == ([5.0], "SUCCESS")


def test_the_resources_name_never_changes_and_an_answer_is_short() -> None:
    order = parse_order(ask("Create"))
    [one, other] = [msgspec.json.decode(reply(order, "FAILED", told)) for told in ("", "x" * 5000)]
    assert one["PhysicalResourceId"] == other["PhysicalResourceId"] == "joiner-installed"
    assert (one["Reason"], len(other["Reason"])) == ("done", LONGEST)
    assert {one[key] for key in ("StackId", "RequestId", "LogicalResourceId")} == {
        order.stack_id,
        order.request_id,
        order.logical_resource_id,
    }


def test_what_is_no_order_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        parse_order(ask("Create") | {"RequestType": "Replace"})


@pytest.mark.loopback
def test_an_answer_is_put_without_a_content_type_and_put_again_if_it_must_be() -> None:
    seen: list[tuple[str, str | None, bytes]] = []

    class Bucket(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seen.append((self.path, self.headers["Content-Type"], body))
            self.send_response(503 if len(seen) == 1 else 200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Bucket) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        send(f"http://127.0.0.1:{server.server_port}/?signed", b"{}")
        server.shutdown()
        thread.join()
    assert seen == [("/?signed", "", b"{}")] * 2
