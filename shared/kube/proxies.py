"""Connections: whom they trust, and the proxy that they go through, as the environment says.

The variables are HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY.
"""

import ssl
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from urllib3 import PoolManager, ProxyManager
from urllib3.util import create_urllib3_context, make_headers, parse_url


def proxy_of(endpoint: str) -> str:
    """Answer the URL of the proxy to *endpoint*, "" if there is none, or if NO_PROXY names the host."""
    url = urlsplit(endpoint)
    if proxy_bypass(url.netloc):
        return ""
    proxies = getproxies()
    found = proxies.get(url.scheme) or proxies.get("all", "")
    return found if "://" in found or not found else f"http://{found}"


def proxy_headers(proxy: str) -> dict[str, str]:
    """Answer what the proxy at the URL *proxy* wants to hear besides: user and password, if the URL has them."""
    auth = parse_url(proxy).auth
    return dict(make_headers(proxy_basic_auth=auth)) if auth else {}


def connections(proxy: str, authority: str | None, most: int) -> PoolManager:
    """Answer a pool of up to *most* connections, kept, through *proxy* unless that is ""; the server is verified.

    *authority* is PEM, None for the system's. The client library's own pool is the same, and takes half a second to
    import.
    """
    context = verifying()
    if authority is None:
        context.load_default_certs()
    options: dict[str, Any] = {"ssl_context": context, "ca_cert_data": authority, "maxsize": most}
    return ProxyManager(proxy, proxy_headers=proxy_headers(proxy), **options) if proxy else PoolManager(**options)


def verifying() -> ssl.SSLContext:
    """Answer what verifies a server's chain and its name, and trusts nobody yet.

    From 3.13 on Python also wants what RFC 5280 asks of the form of certificates, identifiers of keys for one. The
    authorities of older EKS clusters lack them, and every other client takes them.
    """
    return create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED, verify_flags=ssl.VERIFY_X509_PARTIAL_CHAIN)
