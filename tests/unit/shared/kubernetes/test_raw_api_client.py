"""Tests of the TLS trust of the Kubernetes client: which authorities it loads."""

import ssl

import pytest
from kubernetes.client.configuration import Configuration

from shared.kubernetes.raw_api_client import RawApiClient


@pytest.mark.parametrize(
    ("host", "authority", "expected_count"),
    [
        pytest.param("http://127.0.0.1:8001", None, 0, id="proxy of kubectl, without TLS"),
        pytest.param("https://127.0.0.1:8001", None, 1, id="TLS without an authority"),
        pytest.param("127.0.0.1:8001", None, 1, id="no scheme"),
        pytest.param("https://127.0.0.1:8001", "ca.pem", 0, id="authority of the cluster"),
    ],
)
def test_authorities_of_the_computer_are_loaded_only_for_tls_without_an_authority(
    host: str, authority: str | None, expected_count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[ssl.SSLContext] = []

    def load_default_certs(context: ssl.SSLContext) -> None:
        loaded.append(context)

    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", load_default_certs)
    configuration = Configuration(host=host)
    configuration.ssl_ca_cert = authority
    RawApiClient(configuration)
    assert len(loaded) == expected_count
