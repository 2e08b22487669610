"""AWS's wire protocols, both ways: which call a request is, what it says, and how an answer or an error is written.

Parsing and writing are moto's, driven by botocore's service models, so that an answer is a dict as boto3 would show it.
Errors are written here: moto's writer knows only errors that the model lists, and EC2's model lists none.
"""

import json
import re
from collections.abc import Mapping
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

_SCOPE: Final = re.compile(r"Credential=([^/]+)/\d+/([^/]+)/([^/]+)/aws4_request")
_S3: Final = {"PUT": "PutObject", "GET": "GetObject", "DELETE": "DeleteObject", "HEAD": "HeadObject"}
_MODELS: Final = {"monitoring": "cloudwatch", "servicequotas": "service-quotas"}
"""What botocore calls services that are signed for under another name."""
_XML: Final = '<?xml version="1.0" encoding="UTF-8"?>'


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request: the service as its signature names it, the operation as the API names it."""

    service: str
    action: str
    region: str
    form: Mapping[str, str]
    body: bytes
    path_parameters: Mapping[str, str]
    query: str = ""
    """Of the URL."""
    access_key: str = ""
    """Whose signature it carries; nobody's if it has none."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What goes back."""

    status: int
    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class ApiError(Exception):
    """AWS refuses: its code, its message and the HTTP status."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        """Carry the three."""
        super().__init__(message)
        self.code = code
        self.status = status


class NotOurs(Exception):
    """The cloud model has nothing to say about this call; moto has."""


def parse_call(environ: Environ) -> Call:
    """Answer the call that *environ* holds; its body can still be read by whoever comes next."""
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = BytesIO(body)
    scope = _SCOPE.search(environ.get("HTTP_AUTHORIZATION", ""))
    access_key, region, service = scope.groups() if scope else ("", "", "")
    is_form = environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded")
    form = dict(parse_qsl(body.decode(), keep_blank_values=True)) if is_form else {}
    action, path_parameters = _action(environ, service, form)
    return Call(
        service=service,
        action=action,
        region=region,
        form=form,
        body=body,
        path_parameters=path_parameters,
        query=environ.get("QUERY_STRING", ""),
        access_key=access_key,
    )


def parameters_of(call: Call) -> dict[str, Any]:
    """Answer what *call* says, in the API's names and types."""
    operation = _service(call.service).operation_model(call.action)
    parser = PROTOCOL_PARSERS[_protocol(call.service)](operation)
    said: dict[str, Any] = parser.parse(
        {
            "method": "",
            "values": MultiDict([*call.form.items(), *parse_qsl(call.query, keep_blank_values=True)]),
            "headers": {},
            "body": call.body,
            "url_path": "",
            "url_params": call.path_parameters,
        }
    )
    return said


def answer(call: Call, result: Mapping[str, Any]) -> Reply:
    """Write *result*, in the API's names and types."""
    operation = _service(call.service).operation_model(call.action)
    written = get_serializer_class(call.service, _protocol(call.service))(operation).serialize(result)
    body = written["body"]
    return Reply(
        status=written["status_code"],
        content_type=written["headers"].get("Content-Type", "text/xml"),
        body=body if isinstance(body, bytes) else body.encode(),
    )


def refusal(call: Call, error: ApiError) -> Reply:
    """Write *error* as the service of *call* does."""
    code, message = escape(error.code), escape(str(error))
    one = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    match _protocol(call.service):
        case "ec2":
            xml = f"{_XML}<Response><Errors>{one}</Errors><RequestID>0</RequestID></Response>"
        case "query":
            xml = f"{_XML}<ErrorResponse>{one}<RequestId>0</RequestId></ErrorResponse>"
        case "rest-xml":
            xml = f"{_XML}{one}"
        case _:
            body = json.dumps({"__type": error.code, "message": str(error)}).encode()
            return Reply(status=error.status, content_type="application/x-amz-json-1.1", body=body)
    return Reply(status=error.status, content_type="text/xml", body=xml.encode())


def _action(environ: Environ, service: str, form: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
    if "HTTP_X_AMZ_TARGET" in environ:
        return environ["HTTP_X_AMZ_TARGET"].rpartition(".")[2], {}
    if "Action" in form:
        return form["Action"], {}
    method, path, query = environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("QUERY_STRING", "")
    if service == "s3":
        return "ListObjectsV2" if "list-type=2" in query else _S3.get(method, ""), {}
    # Undecoded: a slash within a name is no other part of the path.
    return _routed(service, method, str(environ.get("REQUEST_URI", path)).partition("?")[0])


def _routed(service: str, method: str, path: str) -> tuple[str, Mapping[str, str]]:
    for action, its_method, pattern in _routes(service):
        fits = pattern.fullmatch(path)
        if its_method == method and fits:
            return action, {name: unquote(value) for name, value in fits.groupdict().items()}
    return "", {}


@lru_cache(maxsize=16)
def _routes(service: str) -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    """Answer (operation, method, path) of a REST service, the most literal path first; none if it has no model."""
    try:
        _service(service)
    except UnknownServiceError:
        return ()
    operations = (_service(service).operation_model(name) for name in _service(service).operation_names)
    routes = [(each.name, each.http["method"], each.http["requestUri"].partition("?")[0]) for each in operations]
    return tuple((name, method, _pattern(uri)) for name, method, uri in sorted(routes, key=_literal_first))


def _literal_first(route: tuple[str, str, str]) -> tuple[int, str]:
    name, _, uri = route
    return (uri.count("{"), name)


def _pattern(uri: str) -> re.Pattern[str]:
    greedy = re.sub(r"\{(\w+)\+\}", r"(?P<\1>.+)", uri)
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", greedy))


@lru_cache(maxsize=16)
def _service(service: str) -> Any:  # noqa: ANN401 - botocore has no types
    return get_service_model(_MODELS.get(service, service))


def _protocol(service: str) -> str:
    """Answer the protocol that SDKs here speak with *service*, of those that it understands."""
    return str(_service(service).resolved_protocol)
