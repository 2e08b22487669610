"""How the client over HTTP reads answers: each status means one fault, and no answer is never an empty one."""

import socket
import ssl
from base64 import b64encode
from datetime import timedelta
from pathlib import Path

import pytest

from shared.errors import (
    Conflict,
    EvictionRefused,
    Expired,
    Fault,
    Forbidden,
    Invalid,
    NotFound,
    Throttled,
    Unreachable,
)
from shared.kubernetes.client import KubeClient
from shared.kubernetes.proxy import build_connection_pool
from tests.contract.kube_canned import CannedHandler, set_response
from tests.contract.kube_front import list_objects, run_server
from tests.contract.tls import build_server_context, encode_authority

pytestmark = pytest.mark.loopback

EVICTION = "/api/v1/namespaces/shop/pods/cart/eviction"


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        (301, Unreachable),
        (400, Invalid),
        (401, Forbidden),
        (403, Forbidden),
        (404, NotFound),
        (405, Invalid),
        (408, Unreachable),
        (409, Conflict),
        (410, Expired),
        (413, Invalid),
        (415, Invalid),
        (422, Invalid),
        (429, Throttled),
        (500, Unreachable),
        (502, Unreachable),
        (503, Unreachable),
        (504, Unreachable),
    ],
)
def test_a_status_is_a_fault(server: str, status: int, fault: type[Fault]) -> None:
    set_response(status, "the server's words")
    with pytest.raises(fault, match=r"GET /api/v1/nodes/a: .*the server's words") as raised:
        KubeClient(server).read("/api/v1/nodes/a")
    assert type(raised.value) is fault


def test_a_refusal_carries_the_servers_reason(server: str) -> None:
    set_response(422, "spec: wrong")
    with pytest.raises(Invalid) as raised:
        KubeClient(server).create("/api/v1/nodes", b"{}")
    assert raised.value.code == "Because"


@pytest.mark.parametrize(("header", "seconds"), [("7", 7), ("0", 1), ("", 1), ("Sat, 21 Nov 2026 08:00:00 GMT", 1)])
def test_a_throttled_call_says_how_long_to_wait(server: str, header: str, seconds: int) -> None:
    set_response(429, "later", Retry_After=header)
    with pytest.raises(Throttled) as raised:
        KubeClient(server).list("/api/v1/pods")
    assert raised.value.retry_after == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("status", "message", "fault"),
    [
        (429, "Cannot evict pod as it would violate the pod's disruption budget.", EvictionRefused),
        (500, "This pod has more than one PodDisruptionBudget, which is not supported.", EvictionRefused),
        (500, "etcdserver: request timed out", Unreachable),
        (404, "pods cart not found", NotFound),
        (409, "the UID is another", Conflict),
    ],
)
def test_an_eviction_is_refused_by_budgets_only(server: str, status: int, message: str, fault: type[Fault]) -> None:
    set_response(status, message)
    with pytest.raises(fault):
        KubeClient(server).create(EVICTION, b"{}")


def test_two_budgets_mean_nothing_elsewhere(server: str) -> None:
    set_response(500, "more than one PodDisruptionBudget")
    with pytest.raises(Unreachable):
        KubeClient(server).read("/api/v1/nodes/a")


@pytest.mark.parametrize("body", [b"", b"[]", b'{"items":[', b"<html>", b'"ok"', b'{"items":[]}}'])
def test_an_answer_that_is_no_document_says_nothing(server: str, body: bytes) -> None:
    CannedHandler.body = body
    with pytest.raises(Unreachable):
        KubeClient(server).list("/api/v1/pods")


def test_an_answer_that_is_cut_off_says_nothing(server: str) -> None:
    CannedHandler.body, CannedHandler.extra_headers = b'{"items":[]}', {"Content-Length": "100"}
    with pytest.raises(Unreachable):
        KubeClient(server).list("/api/v1/pods")


def test_an_error_that_is_no_status_document_is_quoted(server: str) -> None:
    CannedHandler.status, CannedHandler.body = 502, b"<html>Bad gateway"
    with pytest.raises(Unreachable, match="Bad gateway"):
        KubeClient(server).read("/api/v1/nodes/a")


def test_a_closed_door_says_nothing() -> None:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{door.getsockname()[1]}"
        with pytest.raises(Unreachable):
            KubeClient(endpoint).read("/api/v1/nodes/a")


def test_silence_says_nothing() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(Unreachable):
            KubeClient(endpoint, timeout=timedelta(milliseconds=20)).read("/api/v1/nodes/a")


def test_a_server_that_does_not_speak_tls_says_nothing(server: str) -> None:
    with pytest.raises(Unreachable):
        KubeClient(server.replace("http:", "https:")).read("/api/v1/nodes/a")


def test_an_authority_that_is_none_says_nothing(server: str) -> None:
    authority = b64encode(b"-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n").decode()
    with pytest.raises(Unreachable):
        KubeClient(server.replace("http:", "https:"), certificate_authority=authority).read("/api/v1/nodes/a")


def test_a_server_is_trusted_by_the_authority_that_was_given(server: str, certificate: Path) -> None:
    for endpoint in run_server(CannedHandler, build_server_context(certificate)):
        assert endpoint.startswith("https:")
        assert (
            KubeClient(endpoint, certificate_authority=encode_authority(certificate)).read("/api/v1/nodes/a") == b"{}"
        )
        with pytest.raises(Unreachable):
            KubeClient(endpoint).read("/api/v1/nodes/a")
    assert server.startswith("http:")


@pytest.mark.parametrize("authority", [None, "made up"])
def test_an_authority_without_identifiers_of_keys_is_trusted_by_the_newest_python_too(authority: str | None) -> None:
    """Those of older EKS clusters have none, and from 3.13 on Python asks for them if it is not told otherwise."""
    context = build_connection_pool("", authority, 1).connection_pool_kw["ssl_context"]
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_every_call_asks_for_the_token(server: str) -> None:
    tokens = iter(["one", "two"])
    client = KubeClient(server, token=lambda: next(tokens))
    client.read("/api/v1/nodes/a")
    client.read("/api/v1/nodes/a")
    assert [headers["Authorization"] for _, _, headers, _ in CannedHandler.received_requests] == [
        "Bearer one",
        "Bearer two",
    ]


def test_without_a_token_there_is_no_authorization(server: str) -> None:
    KubeClient(server).read("/api/v1/nodes/a")
    assert "Authorization" not in CannedHandler.received_requests[0][2]


def test_a_list_asks_for_what_was_wished_only(server: str) -> None:
    client = KubeClient(server + "/")
    client.list("/api/v1/pods", limit=0)
    list_objects(client, "/api/v1/pods", selector="a in (b,c)", fields="spec.nodeName=", limit=2, after="x=")
    assert [path for _, path, _, _ in CannedHandler.received_requests] == [
        "/api/v1/pods",
        "/api/v1/pods?labelSelector=a+in+%28b%2Cc%29&fieldSelector=spec.nodeName%3D&limit=2&continue=x%3D",
    ]


def test_a_body_goes_out_as_it_is(server: str) -> None:
    client = KubeClient(server)
    client.create("/api/v1/nodes", b'{"a":1}')
    client.patch("/api/v1/nodes/a", b'{"b":2}')
    client.delete("/api/v1/nodes/a")
    client.delete("/api/v1/nodes/a", b'{"gracePeriodSeconds":0}')
    assert [
        (method, headers.get("Content-Type"), body) for method, _, headers, body in CannedHandler.received_requests
    ] == [
        ("POST", "application/json", b'{"a":1}'),
        ("PATCH", "application/merge-patch+json", b'{"b":2}'),
        ("DELETE", None, b""),
        ("DELETE", "application/json", b'{"gracePeriodSeconds":0}'),
    ]


@pytest.mark.parametrize("status", [0, 503])
def test_a_call_is_not_repeated_by_itself(server: str, status: int) -> None:
    set_response(status)
    with pytest.raises(Unreachable):
        KubeClient(server).read("/api/v1/nodes/a")
    assert len(CannedHandler.received_requests) == 1
