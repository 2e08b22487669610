"""Export of a trace to an OpenTelemetry endpoint with OTLP/HTTP in JSON."""

import json
from typing import Any, Final
from urllib.parse import urlsplit

from urllib3 import PoolManager, Timeout
from urllib3.exceptions import HTTPError

from cli.terminal.errors import InputError

TIMEOUT_S: Final = 10.0
_TRACES_PATH: Final = "/v1/traces"
_MAX_BODY_CHARACTERS: Final = 300
_HTTP_OK: Final = range(200, 300)


def export_trace(endpoint: str, document: dict[str, Any]) -> str:
    """Send *document* to *endpoint* once, and return the URL that accepted it.

    Raises:
        InputError: The endpoint is not a URL, does not respond, or refuses the trace.
    """
    url = build_traces_url(endpoint)
    body = json.dumps(document).encode()
    with PoolManager(timeout=Timeout(TIMEOUT_S), retries=False) as pool:
        try:
            response = pool.request("POST", url, body=body, headers={"Content-Type": "application/json"})
        except HTTPError as error:
            raise InputError(f"--otlp {endpoint}: {url} does not respond: {error}") from None
    text = response.data.decode(errors="replace").strip()
    if response.status not in _HTTP_OK:
        answer = f": {text[:_MAX_BODY_CHARACTERS]}" if text else ""
        raise InputError(f"--otlp {endpoint}: {url} refused the trace with HTTP status {response.status}{answer}")
    if rejection := _find_rejection(text):
        raise InputError(f"--otlp {endpoint}: {url} rejected spans: {rejection}")
    return url


def build_traces_url(endpoint: str) -> str:
    """Return the URL of traces at *endpoint*.

    >>> build_traces_url("http://localhost:4318"), build_traces_url("https://otel.example/x/v1/traces")
    ('http://localhost:4318/v1/traces', 'https://otel.example/x/v1/traces')

    Raises:
        InputError: *endpoint* is not a URL of HTTP.
    """
    try:
        parts = urlsplit(endpoint)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_url = False
    if not is_url:
        raise InputError(f"--otlp {endpoint}: not an HTTP URL; write for example --otlp http://localhost:4318")
    base = endpoint.rstrip("/")
    return base if base.endswith(_TRACES_PATH) else f"{base}{_TRACES_PATH}"


def _find_rejection(text: str) -> str:
    """Return why spans of an accepted request were rejected (partialSuccess of OTLP); "" if none were."""
    try:
        answer = json.loads(text or "{}")
    except ValueError:
        return ""
    partial = answer.get("partialSuccess") if isinstance(answer, dict) else None
    if not isinstance(partial, dict) or str(partial.get("rejectedSpans", 0)) == "0":
        return ""
    return str(partial.get("errorMessage") or f"{partial['rejectedSpans']} spans")
