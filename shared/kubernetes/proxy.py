"""Proxies: what the client library leaves to its callers.

The library reads HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY (host names, domains, CIDR ranges) from the
environment. It uses neither a URL without a scheme nor the user and the password in the URL.
"""

from kubernetes.client.configuration import Configuration
from urllib3.util import make_headers, parse_url


def complete_proxy_settings(configuration: Configuration) -> None:
    """Set the scheme of the proxy in *configuration*, and basic authentication if its URL has a user and a password.

    Raises:
        LocationParseError: the proxy is not a URL.
    """
    if not configuration.proxy:
        return
    if "://" not in configuration.proxy:
        configuration.proxy = f"http://{configuration.proxy}"
    auth = parse_url(configuration.proxy).auth
    if auth:
        configuration.proxy_headers = dict(make_headers(proxy_basic_auth=auth))
