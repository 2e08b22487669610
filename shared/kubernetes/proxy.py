"""Connection pools: TLS trust, and the proxy that the environment configures.

The variables are HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY.
"""

import ssl
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from urllib3 import PoolManager, ProxyManager
from urllib3.util import create_urllib3_context, make_headers, parse_url

from shared.kubernetes.stale_connections import detect_stale_connections


def find_proxy(endpoint: str) -> str:
    """Return the URL of the proxy for *endpoint*, "" if there is none or if NO_PROXY names the host."""
    url = urlsplit(endpoint)
    if proxy_bypass(url.netloc):
        return ""
    proxies = getproxies()
    proxy_url = proxies.get(url.scheme) or proxies.get("all", "")
    return proxy_url if "://" in proxy_url or not proxy_url else f"http://{proxy_url}"


def build_proxy_headers(proxy: str) -> dict[str, str]:
    """Return the headers for the proxy at the URL *proxy*.

    Basic authentication, if the URL has a user and a password.
    """
    auth = parse_url(proxy).auth
    return dict(make_headers(proxy_basic_auth=auth)) if auth else {}


def build_connection_pool(proxy: str, authority: str | None, max_connections: int) -> PoolManager:
    """Return a pool of up to *max_connections* persistent connections that verify the server's certificate.

    They go through *proxy* unless it is "". *authority* is PEM, None for the system's authorities. The client library's
    own pool is the same, but its import takes half a second.
    """
    context = build_tls_context()
    if authority is None:
        context.load_default_certs()
    options: dict[str, Any] = {"ssl_context": context, "ca_cert_data": authority, "maxsize": max_connections}
    return detect_stale_connections(
        ProxyManager(proxy, proxy_headers=build_proxy_headers(proxy), **options) if proxy else PoolManager(**options)
    )


def build_tls_context() -> ssl.SSLContext:
    """Return an SSL context that verifies the server's certificate chain and name; no authority is trusted yet.

    From 3.13 on, Python also enforces the certificate format of RFC 5280, for example key identifiers. The authorities
    of older EKS clusters lack them, and every other client accepts them.
    """
    return create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED, verify_flags=ssl.VERIFY_X509_PARTIAL_CHAIN)
