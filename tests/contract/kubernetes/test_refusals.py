"""How the HTTP client handles an API server that refuses: errors name a fix, and retries are limited."""

import socket
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from shared.errors import EvictionRefused, Fault, Forbidden, Invalid, Throttled, Unreachable
from shared.kubernetes.backoff import Backoff
from shared.kubernetes.client import KubeClient
from tests.contract.kube_canned import CannedHandler, set_response

pytestmark = pytest.mark.loopback

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
EVICTION = "/api/v1/namespaces/shop/pods/cart/eviction"


def test_rejected_token_is_renewed_once(server: str) -> None:
    set_response(401, "Unauthorized")
    tokens = ["old"]
    renewals: list[str] = []

    def renew() -> None:
        renewals.append(tokens[-1])
        tokens.append(f"new-{len(renewals)}")

    client = KubeClient(server, token=lambda: tokens[-1], renew=renew)
    for _ in range(3):
        with pytest.raises(Forbidden, match=r"401.*access entry.*joiner:functions"):
            client.read("/api/v1/nodes/a")
    assert renewals == ["old"]
    sent = [headers["Authorization"] for _, _, headers, _ in CannedHandler.received_requests]
    assert sent == ["Bearer old", *["Bearer new-1"] * 3]
    set_response(200)
    client.read("/api/v1/nodes/a")
    set_response(401, "Unauthorized")
    with pytest.raises(Forbidden):
        client.read("/api/v1/nodes/a")
    assert renewals == ["old", "new-1"], "it was taken, and is not any more"


def test_client_without_a_token_renews_nothing(server: str) -> None:
    set_response(401, "Unauthorized")
    with pytest.raises(Forbidden):
        KubeClient(server, renew=lambda: pytest.fail("renewed")).read("/api/v1/nodes/a")
    assert len(CannedHandler.received_requests) == 1


NOT_ALLOWED = 'nodes is forbidden: User "joiner" cannot list resource "nodes" in API group "" at the cluster scope'
BY_WEBHOOK = 'admission webhook "guard.example.com" denied the request: not today'
BY_POLICY = 'nodeclaims "a" is forbidden: ValidatingAdmissionPolicy "p" with binding "b" denied request: not today'
DEAD = 'Internal error occurred: failed calling webhook "guard.example.com": connection refused'


@pytest.mark.parametrize(
    ("status", "message", "fault", "helps"),
    [
        (
            401,
            "Unauthorized",
            Forbidden,
            "access entry of the cluster for the role of the function, with the Kubernetes group joiner:functions",
        ),
        (403, NOT_ALLOWED, Forbidden, "the ClusterRole joiner-functions, bound to the group joiner:functions"),
        (403, BY_WEBHOOK, Forbidden, "let it admit the requests of the group joiner:functions"),
        (422, BY_POLICY, Invalid, "let it admit the requests of the group joiner:functions"),
        (500, DEAD, Unreachable, "repair the webhook"),
        (429, "Too many requests, please try again later.", Throttled, "priority level"),
    ],
)
def test_error_message_includes_a_fix_after_the_server_message(
    server: str, status: int, message: str, fault: type[Fault], helps: str
) -> None:
    set_response(status, message)
    with pytest.raises(fault) as raised:
        KubeClient(server).list("/api/v1/nodes")
    assert str(raised.value).startswith(f"GET /api/v1/nodes?limit=500: {status} {message}; ")
    assert helps in str(raised.value)


def test_self_explanatory_server_message_gets_no_fix(server: str) -> None:
    set_response(403, "namespace shop is being terminated")
    with pytest.raises(Forbidden) as raised:
        KubeClient(server).create("/api/v1/namespaces/shop/events", b"{}")
    assert str(raised.value).endswith("terminated")


def test_throttled_eviction_is_not_reported_as_a_pdb_violation(server: str) -> None:
    CannedHandler.status, CannedHandler.body = 429, b"Too many requests, please try again later.\n"
    with pytest.raises(Throttled):
        KubeClient(server).create(EVICTION, b"{}")
    cause = {"reason": "DisruptionBudget", "message": "The budget web needs 1 healthy pods and has 1 currently"}
    CannedHandler.body = msgspec.json.encode({"message": "Cannot evict pod.", "details": {"causes": [cause]}})
    with pytest.raises(EvictionRefused):
        KubeClient(server).create(EVICTION, b"{}")


def test_requests_are_not_sent_until_retry_after_has_passed(server: str) -> None:
    now = [NOW]
    client = KubeClient(server, backoff=Backoff(lambda: now[0], lambda _: None))
    set_response(429, "later", Retry_After="7")
    for _ in range(5):
        with pytest.raises(Throttled):
            client.read("/api/v1/nodes/a")
    assert len(CannedHandler.received_requests) == 1
    with pytest.raises(Throttled):
        client.watch("/api/v1/nodes", since="1")
    now[0] += timedelta(seconds=7)
    set_response(200)
    client.read("/api/v1/nodes/a")
    assert len(CannedHandler.received_requests) == 2


def test_short_retry_delay_is_waited_for_within_the_request(server: str) -> None:
    set_response(429, "later")
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        CannedHandler.status = 200

    client = KubeClient(server, backoff=Backoff(lambda: NOW, wait))
    assert client.read("/api/v1/nodes/a") == CannedHandler.body
    assert waited == [1]
    assert len(CannedHandler.received_requests) == 2


def test_unresponsive_server_is_waited_for_once() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        client = KubeClient(endpoint, timeout=timedelta(milliseconds=20), backoff=Backoff(lambda: NOW))
        with pytest.raises(Unreachable, match=f"check that {endpoint} is available"):
            client.read("/api/v1/nodes/a")
        with pytest.raises(Unreachable, match=r"not sent: the API server did not respond for 0\.02 s"):
            client.read("/api/v1/nodes/a")


def test_refused_connection_is_retried_by_every_request() -> None:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        client = KubeClient(f"http://127.0.0.1:{door.getsockname()[1]}", backoff=Backoff(lambda: NOW))
        for _ in range(2):
            with pytest.raises(Unreachable, match="refused"):
                client.read("/api/v1/nodes/a")
