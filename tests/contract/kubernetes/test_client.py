"""How the client over HTTP reads answers: each status means one fault, and no answer is never an empty one."""

import socket
import ssl
from base64 import b64encode
from datetime import timedelta
from pathlib import Path

import pytest
from kubernetes.client.configuration import Configuration
from urllib3.exceptions import InsecureRequestWarning

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
from shared.kubernetes.raw_api_client import RawApiClient, build_configuration
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
def test_http_status_maps_to_its_exception(server: str, status: int, fault: type[Fault]) -> None:
    set_response(status, "the server's words")
    with pytest.raises(fault, match=r"GET /api/v1/nodes/a: .*the server's words") as raised:
        KubeClient(server).read("/api/v1/nodes/a")
    assert type(raised.value) is fault


def test_rejected_request_has_the_reason_of_the_server(server: str) -> None:
    set_response(422, "spec: wrong")
    with pytest.raises(Invalid) as raised:
        KubeClient(server).create("/api/v1/nodes", b"{}")
    assert raised.value.code == "Because"


@pytest.mark.parametrize(("header", "seconds"), [("7", 7), ("0", 1), ("", 1), ("Sat, 21 Nov 2026 08:00:00 GMT", 1)])
def test_throttled_response_has_a_retry_delay(server: str, header: str, seconds: int) -> None:
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
def test_only_pdb_responses_count_as_rejected_evictions(
    server: str, status: int, message: str, fault: type[Fault]
) -> None:
    set_response(status, message)
    with pytest.raises(fault):
        KubeClient(server).create(EVICTION, b"{}")


def test_pdb_message_outside_an_eviction_is_unreachable(server: str) -> None:
    set_response(500, "more than one PodDisruptionBudget")
    with pytest.raises(Unreachable):
        KubeClient(server).read("/api/v1/nodes/a")


@pytest.mark.parametrize("body", [b"", b"[]", b'{"items":[', b"<html>", b'"ok"', b'{"items":[]}}'])
def test_invalid_response_body_raises_unreachable(server: str, body: bytes) -> None:
    CannedHandler.body = body
    with pytest.raises(Unreachable):
        KubeClient(server).list("/api/v1/pods")


def test_truncated_response_raises_unreachable(server: str) -> None:
    CannedHandler.body, CannedHandler.extra_headers = b'{"items":[]}', {"Content-Length": "100"}
    with pytest.raises(Unreachable):
        KubeClient(server).list("/api/v1/pods")


def test_error_that_is_not_a_status_document_is_quoted(server: str) -> None:
    CannedHandler.status, CannedHandler.body = 502, b"<html>Bad gateway"
    with pytest.raises(Unreachable, match="Bad gateway"):
        KubeClient(server).read("/api/v1/nodes/a")


def test_refused_connection_raises_unreachable() -> None:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{door.getsockname()[1]}"
        with pytest.raises(Unreachable):
            KubeClient(endpoint).read("/api/v1/nodes/a")


def test_timeout_raises_unreachable() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(Unreachable):
            KubeClient(endpoint, timeout=timedelta(milliseconds=20)).read("/api/v1/nodes/a")


def test_server_without_tls_raises_unreachable(server: str) -> None:
    with pytest.raises(Unreachable):
        KubeClient(server.replace("http:", "https:")).read("/api/v1/nodes/a")


def test_invalid_certificate_authority_raises_unreachable(server: str) -> None:
    authority = b64encode(b"-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n").decode()
    with pytest.raises(Unreachable):
        KubeClient(server.replace("http:", "https:"), certificate_authority=authority).read("/api/v1/nodes/a")


def test_server_certificate_is_verified_with_the_given_certificate_authority(server: str, certificate: Path) -> None:
    for endpoint in run_server(CannedHandler, build_server_context(certificate)):
        assert endpoint.startswith("https:")
        assert (
            KubeClient(endpoint, certificate_authority=encode_authority(certificate)).read("/api/v1/nodes/a") == b"{}"
        )
        with pytest.raises(Unreachable):
            KubeClient(endpoint).read("/api/v1/nodes/a")
    assert server.startswith("http:")


def test_server_certificate_is_not_verified_if_the_configuration_says_so(certificate: Path, server: str) -> None:
    assert server.startswith("http:")
    for endpoint in run_server(CannedHandler, build_server_context(certificate)):
        client = RawApiClient(Configuration(host=endpoint, verify_ssl=False))
        with pytest.warns(InsecureRequestWarning):
            assert client.request("GET", "/api/v1/nodes/a", timeout=10).data == b"{}"


@pytest.mark.parametrize("authority", [None, "made up"])
def test_certificate_authority_without_key_identifiers_is_accepted(authority: str | None) -> None:
    """Those of older EKS clusters have none, and from 3.13 on Python asks for them if it is not told otherwise."""
    configuration = build_configuration("https://k.eks", authority_pem=authority, token=None, max_connections=1)
    context = RawApiClient(configuration).pool_manager.connection_pool_kw["ssl_context"]
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_every_request_gets_a_current_token(server: str) -> None:
    tokens = iter(["one", "two"])
    client = KubeClient(server, token=lambda: next(tokens))
    client.read("/api/v1/nodes/a")
    client.read("/api/v1/nodes/a")
    assert [headers["Authorization"] for _, _, headers, _ in CannedHandler.received_requests] == [
        "Bearer one",
        "Bearer two",
    ]


def test_renewed_token_is_sent_after_the_server_rejected_a_token(server: str) -> None:
    tokens = ["old"]
    set_response(401)
    with pytest.raises(Forbidden):
        KubeClient(server, token=lambda: tokens[-1], renew=lambda: tokens.append("new")).read("/api/v1/nodes/a")
    sent_tokens = [headers["Authorization"] for _, _, headers, _ in CannedHandler.received_requests]
    assert sent_tokens == ["Bearer old", "Bearer new"]


def test_redirect_to_another_host_is_not_followed(server: str) -> None:
    set_response(307, "elsewhere", Location=server.replace("127.0.0.1", "localhost") + "/api/v1/nodes/b")
    with pytest.raises(Unreachable, match="elsewhere"):
        KubeClient(server, token=lambda: "secret").read("/api/v1/nodes/a")
    assert [path for _, path, _, _ in CannedHandler.received_requests] == ["/api/v1/nodes/a"]


def test_requests_name_joiner_as_their_user_agent(server: str) -> None:
    KubeClient(server).read("/api/v1/nodes/a")
    KubeClient(server).create("/api/v1/nodes", b"{}")
    assert [headers["User-Agent"] for _, _, headers, _ in CannedHandler.received_requests] == ["joiner"] * 2


def test_request_without_a_token_has_no_authorization_header(server: str) -> None:
    KubeClient(server).read("/api/v1/nodes/a")
    assert "Authorization" not in CannedHandler.received_requests[0][2]


def test_list_request_contains_only_the_given_parameters(server: str) -> None:
    client = KubeClient(server + "/")
    client.list("/api/v1/pods", limit=0)
    list_objects(client, "/api/v1/pods", selector="a in (b,c)", fields="spec.nodeName=", limit=2, after="x=")
    assert [path for _, path, _, _ in CannedHandler.received_requests] == [
        "/api/v1/pods",
        "/api/v1/pods?labelSelector=a+in+%28b%2Cc%29&fieldSelector=spec.nodeName%3D&limit=2&continue=x%3D",
    ]


def test_request_body_is_sent_unchanged_with_its_content_type(server: str) -> None:
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
def test_failed_request_is_not_retried(server: str, status: int) -> None:
    set_response(status)
    with pytest.raises(Unreachable):
        KubeClient(server).read("/api/v1/nodes/a")
    assert len(CannedHandler.received_requests) == 1
