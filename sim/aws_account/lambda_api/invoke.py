"""Lambda's Invoke API call."""

from base64 import b64encode
from collections.abc import Callable
from urllib.parse import parse_qs, unquote

from sim.aws_account.function_runtime import InvocationResult, Throttled
from sim.aws_account.resource_types.lambda_functions import parse_function_name
from sim.aws_http.protocol import ApiCall, ApiError, ApiReply, Environ


class InvokeHandler:
    """The handler of Invoke."""

    def __init__(
        self, invoke: Callable[[str, str, bytes], InvocationResult], dispatch: Callable[[str, str, bytes], None]
    ) -> None:
        """Run synchronous invocations with *invoke*, asynchronous ones with *dispatch*."""
        self._invoke, self._dispatch = invoke, dispatch

    def invoke(self, call: ApiCall, environ: Environ) -> ApiReply:
        """Invoke a function, synchronously or asynchronously.

        Raises:
            ApiError: there is no such function, or its concurrency limit is reached.
        """
        name, qualifier = parse_function_name(unquote(call.path_parameters["FunctionName"]))
        qualifiers = parse_qs(environ.get("QUERY_STRING", "")).get("Qualifier", [""])
        invocation_type = environ.get("HTTP_X_AMZ_INVOCATION_TYPE", "RequestResponse")
        arguments = name, qualifier or qualifiers[0], call.body or b"{}"
        try:
            if invocation_type == "Event":
                self._dispatch(*arguments)
                return ApiReply(status=202, content_type="application/json", body=b"")
            result = self._invoke(*arguments)
        except LookupError as error:
            raise ApiError("ResourceNotFoundException", f"Function not found: {name}", 404) from error
        except Throttled as error:
            raise ApiError("TooManyRequestsException", "Rate Exceeded.", 429) from error
        headers = [("X-Amz-Executed-Version", result.version)]
        if result.error:
            headers.append(("X-Amz-Function-Error", result.error))
        if environ.get("HTTP_X_AMZ_LOG_TYPE") == "Tail":
            headers.append(("X-Amz-Log-Result", b64encode(result.log.encode()[-4096:]).decode()))
        return ApiReply(status=200, content_type="application/json", body=result.payload, headers=tuple(headers))
