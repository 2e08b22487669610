"""The proxy that calls go through, as the environment says: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY."""

import ssl
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from urllib3 import PoolManager, ProxyManager
from urllib3.util import make_headers, parse_url


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
    options: dict[str, Any] = {"cert_reqs": ssl.CERT_REQUIRED, "ca_cert_data": authority, "maxsize": most}
    return ProxyManager(proxy, proxy_headers=proxy_headers(proxy), **options) if proxy else PoolManager(**options)
