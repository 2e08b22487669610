"""AWS wire protocols: which call a request is, its parameters, and the encoding of responses and errors.

moto parses and serializes, based on botocore's service models, so a result is a dict as boto3 returns it. Errors are
encoded here: moto's serializer supports only errors that the service model lists, and EC2's model lists none.
"""

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from io import BytesIO
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, unquote
from xml.sax.saxutils import escape

import msgspec
from botocore.exceptions import UnknownServiceError
from moto.core.parse import PROTOCOL_PARSERS
from moto.core.serialize import get_serializer_class
from moto.core.utils import get_service_model
from werkzeug.datastructures import MultiDict

Environ: TypeAlias = dict[str, Any]

_CREDENTIAL_SCOPE: Final = re.compile(r"Credential=([^/]+)/\d+/([^/]+)/([^/]+)/aws4_request")
_S3_ACTIONS: Final = {"PUT": "PutObject", "GET": "GetObject", "DELETE": "DeleteObject", "HEAD": "HeadObject"}
MODEL_NAMES: Final = {"monitoring": "cloudwatch", "servicequotas": "service-quotas"}
"""botocore's names of services whose signing name differs."""
_XML_HEADER: Final = '<?xml version="1.0" encoding="UTF-8"?>'

ApiDict: TypeAlias = Mapping[str, Any]
"""The parameters of a call, or an item of a response."""
ApiResponse: TypeAlias = dict[str, Any]
ApiHandlers: TypeAlias = Mapping[str, Callable[[ApiDict], ApiResponse]]
"""The handlers of a service's calls, by action."""


class ApiCall(msgspec.Struct, frozen=True, kw_only=True):
    """One request: the service as its signature names it, the operation as the API names it."""

    service: str
    action: str
    region: str
    form: Mapping[str, str]
    body: bytes
    path_parameters: Mapping[str, str]
    query: str = ""
    """Query string of the URL."""
    access_key: str = ""
    """Access key of the signature; empty without a signature."""


class ApiReply(msgspec.Struct, frozen=True, kw_only=True):
    """The response of a call."""

    status: int
    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class ApiError(Exception):
    """An AWS error: its code, its message and the HTTP status."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        """Store code, message and status."""
        super().__init__(message)
        self.code = code
        self.status = status


class NotOurs(Exception):
    """The cloud model does not handle this call; moto does."""


def parse_call(environ: Environ) -> ApiCall:
    """Return the call in *environ*, whose body can be read again afterwards."""
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = BytesIO(body)
    scope = _CREDENTIAL_SCOPE.search(environ.get("HTTP_AUTHORIZATION", ""))
    access_key, region, service = scope.groups() if scope else ("", "", "")
    is_form = environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded")
    form = dict(parse_qsl(body.decode(), keep_blank_values=True)) if is_form else {}
    action, path_parameters = _get_action(environ, service, form)
    return ApiCall(
        service=service,
        action=action,
        region=region,
        form=form,
        body=body,
        path_parameters=path_parameters,
        query=environ.get("QUERY_STRING", ""),
        access_key=access_key,
    )


def parse_parameters(call: ApiCall) -> dict[str, Any]:
    """Return the parameters of *call*, with the names and types of the API."""
    operation = _load_service_model(call.service).operation_model(call.action)
    parser = PROTOCOL_PARSERS[_get_protocol(call.service)](operation)
    parameters: dict[str, Any] = parser.parse(
        {
            "method": "",
            "values": MultiDict([*call.form.items(), *parse_qsl(call.query, keep_blank_values=True)]),
            "headers": {},
            "body": call.body,
            "url_path": "",
            "url_params": call.path_parameters,
        }
    )
    return parameters


def encode_result(call: ApiCall, result: Mapping[str, Any]) -> ApiReply:
    """Encode *result*, which has the names and types of the API."""
    operation = _load_service_model(call.service).operation_model(call.action)
    serialized = get_serializer_class(call.service, _get_protocol(call.service))(operation).serialize(result)
    body = serialized["body"]
    return ApiReply(
        status=serialized["status_code"],
        content_type=serialized["headers"].get("Content-Type", "text/xml"),
        body=body if isinstance(body, bytes) else body.encode(),
    )


def encode_error(call: ApiCall, error: ApiError) -> ApiReply:
    """Encode *error* in the protocol of the call's service."""
    code, message = escape(error.code), escape(str(error))
    error_element = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    match _get_protocol(call.service):
        case "ec2":
            xml = f"{_XML_HEADER}<Response><Errors>{error_element}</Errors><RequestID>0</RequestID></Response>"
        case "query":
            xml = f"{_XML_HEADER}<ErrorResponse>{error_element}<RequestId>0</RequestId></ErrorResponse>"
        case "rest-xml":
            xml = f"{_XML_HEADER}{error_element}"
        case _:
            body = json.dumps({"__type": error.code, "message": str(error)}).encode()
            return ApiReply(status=error.status, content_type="application/x-amz-json-1.1", body=body)
    return ApiReply(status=error.status, content_type="text/xml", body=xml.encode())


def _get_action(environ: Environ, service: str, form: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
    if "HTTP_X_AMZ_TARGET" in environ:
        return environ["HTTP_X_AMZ_TARGET"].rpartition(".")[2], {}
    if "Action" in form:
        return form["Action"], {}
    method, path, query = environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("QUERY_STRING", "")
    if service == "s3":
        return "ListObjectsV2" if "list-type=2" in query else _S3_ACTIONS.get(method, ""), {}
    # Not decoded: an encoded slash in a name does not separate path segments.
    return _match_route(service, method, str(environ.get("REQUEST_URI", path)).partition("?")[0])


def _match_route(service: str, method: str, path: str) -> tuple[str, Mapping[str, str]]:
    for action, its_method, pattern in _list_routes(service):
        path_match = pattern.fullmatch(path)
        if its_method == method and path_match:
            return action, {name: unquote(value) for name, value in path_match.groupdict().items()}
    return "", {}


@lru_cache(maxsize=16)
def _list_routes(service: str) -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    """Return (operation, method, path) of a REST service, the most literal path first; () if it has no model."""
    try:
        _load_service_model(service)
    except UnknownServiceError:
        return ()
    operations = (
        _load_service_model(service).operation_model(name) for name in _load_service_model(service).operation_names
    )
    routes = [
        (operation.name, operation.http["method"], operation.http["requestUri"].partition("?")[0])
        for operation in operations
    ]
    return tuple(
        (name, method, _build_path_pattern(uri)) for name, method, uri in sorted(routes, key=_get_route_priority)
    )


def _get_route_priority(route: tuple[str, str, str]) -> tuple[int, str]:
    name, _, uri = route
    return (uri.count("{"), name)


def _build_path_pattern(uri: str) -> re.Pattern[str]:
    greedy = re.sub(r"\{(\w+)\+\}", r"(?P<\1>.+)", uri)
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", greedy))


@lru_cache(maxsize=16)
def _load_service_model(service: str) -> Any:  # noqa: ANN401 - botocore has no types
    return get_service_model(MODEL_NAMES.get(service, service))


def _get_protocol(service: str) -> str:
    """Return the protocol that this SDK uses for *service*."""
    return str(_load_service_model(service).resolved_protocol)
