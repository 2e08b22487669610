"""Raw requests with the official Kubernetes client: its `Configuration` and `ApiClient`, without its typed models.

The library has the URL of the API server, TLS trust, client certificates, proxies, the bearer token with the hook that
refreshes it, and the connection pool. Responses are bytes: its typed models take 14 s for 20,000 pods. Added are TLS
for older EKS clusters, and the repetition of a read whose connection the server closed while it was idle.
"""

import ssl
from collections.abc import Callable
from typing import Final

from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from kubernetes.client.exceptions import ApiException
from urllib3 import BaseHTTPResponse, PoolManager, Timeout
from urllib3.exceptions import ProtocolError, SSLError
from urllib3.util import create_urllib3_context

from shared.kubernetes.proxy import complete_proxy_settings
from shared.kubernetes.stale_connections import detect_stale_connections, is_stale

JSON_CONTENT_TYPE: Final = "application/json"
_USER_AGENT: Final = "joiner"
_TOKEN_SETTING: Final = "BearerToken"  # noqa: S105 - the name of a setting


class RawApiClient:
    """Sends requests to one API server and returns its responses, also those with an error status. Thread-safe."""

    def __init__(self, configuration: Configuration) -> None:
        """Use *configuration* as it is at each request; no connection is opened yet."""
        self._api = ApiClient(configuration)
        self._api.user_agent = _USER_AGENT
        self.pool_manager: PoolManager = detect_stale_connections(self._api.rest_client.pool_manager)
        self.pool_manager.connection_pool_kw["ssl_context"] = _build_tls_context_of(configuration)

    def request(
        self,
        method: str,
        path: str,
        *,
        timeout: tuple[float, float] | float,
        body: bytes | None = None,
        content_type: str = JSON_CONTENT_TYPE,
        accept: str = JSON_CONTENT_TYPE,
    ) -> BaseHTTPResponse:
        """Send a request and return the response; its body is not read yet.

        *path* includes the query. *timeout* is in seconds: for connecting and for each pause while reading, or one
        total. A read on a stale connection is sent once more, on a new connection; a write never is.

        Raises:
            HTTPError: there was no response (an error of urllib3).
        """
        try:
            return self._send(method, path, timeout, body, content_type, accept)
        except ProtocolError as error:
            if method != "GET" or not is_stale(error):
                raise
        self.pool_manager.clear()  # its other idle connections are as old
        return self._send(method, path, timeout, body, content_type, accept)

    def close_idle_connections(self) -> None:
        """Close the connections that no request uses; the next request opens a new one."""
        self.pool_manager.clear()

    def _send(
        self,
        method: str,
        path: str,
        timeout: tuple[float, float] | float,
        body: bytes | None,
        content_type: str,
        accept: str,
    ) -> BaseHTTPResponse:
        headers = {"Accept": accept} | ({} if body is None else {"Content-Type": content_type})
        _, url, headers, *_ = self._api.param_serialize(
            method, path, header_params=headers, auth_settings=[_TOKEN_SETTING]
        )
        if body is not None:  # `call_api` would encode the document again
            limits = Timeout(connect=timeout[0], read=timeout[1]) if isinstance(timeout, tuple) else Timeout(timeout)
            return self.pool_manager.request(
                method, url, body=body, headers=headers, timeout=limits, preload_content=False
            )
        try:
            response: BaseHTTPResponse = self._api.call_api(method, url, headers, _request_timeout=timeout).response
        except ApiException as error:  # how the library reports TLS errors
            raise SSLError(error.__context__) from error
        return response


def build_configuration(
    endpoint: str, *, authority_pem: str | None, token: Callable[[], str] | None, max_connections: int
) -> Configuration:
    """Return the configuration for the API server at *endpoint*, through the proxy that the environment sets.

    *authority_pem* is the certificate authority, None for those of the system. *token* is called before every request
    (None: requests have no token). No request is repeated by the library.
    """
    configuration = Configuration(
        host=endpoint, ca_cert_data=authority_pem, connection_pool_maxsize=max_connections, retries=False
    )
    if token is not None:
        configuration.api_key = {_TOKEN_SETTING: ""}  # without a key, the library does not call the hook
        configuration.api_key_prefix = {_TOKEN_SETTING: "Bearer"}
        configuration.refresh_api_key_hook = _build_token_hook(token)
    complete_proxy_settings(configuration)
    return configuration


def build_tls_context(verify_mode: ssl.VerifyMode = ssl.CERT_REQUIRED) -> ssl.SSLContext:
    """Return an SSL context that verifies the server's certificate chain and name; no authority is trusted yet.

    From 3.13 on, Python also enforces the certificate format of RFC 5280, for example key identifiers. The authorities
    of older EKS clusters lack them, and every other client accepts them.
    """
    return create_urllib3_context(cert_reqs=verify_mode, verify_flags=ssl.VERIFY_X509_PARTIAL_CHAIN)


def _build_tls_context_of(configuration: Configuration) -> ssl.SSLContext:
    """Return the context for *configuration*; urllib3 adds its authorities and its client certificate."""
    context = build_tls_context(ssl.CERT_REQUIRED if configuration.verify_ssl else ssl.CERT_NONE)
    if configuration.ca_cert_data is None and configuration.ssl_ca_cert is None:
        context.load_default_certs()
    return context


def _build_token_hook(token: Callable[[], str]) -> Callable[[Configuration], None]:
    def refresh_token(configuration: Configuration) -> None:
        configuration.api_key[_TOKEN_SETTING] = token()

    return refresh_token
