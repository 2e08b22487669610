"""Lambda's Invoke on the wire."""

from base64 import b64encode
from collections.abc import Callable
from urllib.parse import parse_qs, unquote

from sim.account.contract import Invocation, Throttled
from sim.account.kinds.functions import split
from sim.http.protocol import ApiError, Call, Environ, Reply


class LambdaCalls:
    """The handler."""

    def __init__(
        self, invoke: Callable[[str, str, bytes], Invocation], dispatch: Callable[[str, str, bytes], None]
    ) -> None:
        """Run what somebody waits for by *invoke*, everything else by *dispatch*."""
        self._invoke, self._dispatch = invoke, dispatch

    def invoke(self, call: Call, environ: Environ) -> Reply:
        """Invoke, waiting for the answer or not.

        Raises:
            ApiError: there is no such function, or too many calls of it run.
        """
        name, qualifier = split(unquote(call.path_parameters["FunctionName"]))
        asked = parse_qs(environ.get("QUERY_STRING", "")).get("Qualifier", [""])
        kind = environ.get("HTTP_X_AMZ_INVOCATION_TYPE", "RequestResponse")
        said = name, qualifier or asked[0], call.body or b"{}"
        try:
            if kind == "Event":
                self._dispatch(*said)
                return Reply(status=202, content_type="application/json", body=b"")
            ended = self._invoke(*said)
        except LookupError as error:
            raise ApiError("ResourceNotFoundException", f"Function not found: {name}", 404) from error
        except Throttled as error:
            raise ApiError("TooManyRequestsException", "Rate Exceeded.", 429) from error
        headers = [("X-Amz-Executed-Version", ended.version)]
        if ended.error:
            headers.append(("X-Amz-Function-Error", ended.error))
        if environ.get("HTTP_X_AMZ_LOG_TYPE") == "Tail":
            headers.append(("X-Amz-Log-Result", b64encode(ended.log.encode()[-4096:]).decode()))
        return Reply(status=200, content_type="application/json", body=ended.payload, headers=tuple(headers))
