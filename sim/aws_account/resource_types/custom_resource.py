"""Custom resources: a function of the account gets the request and responds with a PUT to a URL of CloudFormation."""

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from threading import Condition
from typing import Any, Final

import msgspec

from sim.aws_account.resource_types.resource_provider import (
    Failed,
    PhysicalResource,
    ResourceProvider,
    ResourceRequest,
    build_resource,
)

_BUCKET_PREFIX: Final = "cloudformation-custom-resource-response-"
MAX_SERVICE_TIMEOUT_SECONDS: Final = 900
"""How long to wait for a response, unless `ServiceTimeout` is less.

CloudFormation waits an hour; no function can run so long.
"""
_MAX_RESPONSE_BYTES: Final = 4096


def format_response_bucket(region: str) -> str:
    """Return the name of CloudFormation's bucket for responses in *region*.

    AWS CloudFormation User Guide, "Set up VPC endpoints": the region is written without dashes.

    >>> format_response_bucket("us-east-1")
    'cloudformation-custom-resource-response-useast1'
    """
    return f"{_BUCKET_PREFIX}{region.replace('-', '')}"


def is_response_path(path: str) -> bool:
    """Return whether *path* is an object of a bucket for responses, in any region."""
    return path.startswith(f"/{_BUCKET_PREFIX}")


class CustomResourceResponses:
    """The responses of functions, by the token in the response URL."""

    def __init__(self, region: str) -> None:
        """Start without pending requests; *region* is part of the bucket's name."""
        self.bucket = format_response_bucket(region)
        self._body_by_token: dict[str, bytes] = {}
        self._function_by_pending_token: dict[str, str] = {}
        self._is_closed = False
        self._changed = Condition()

    def open(self, token: str, function: str) -> None:
        """Accept a response of *function* for *token*."""
        with self._changed:
            self._function_by_pending_token[token] = function

    def put(self, path: str, body: bytes, is_reachable: Callable[[str, str], bool]) -> bool:
        """Store the response *body* as the object *path*; return False if the bucket rejects it.

        The bucket rejects an object of another bucket, a response that is not expected or that exists already, and a
        response of a function whose network does not let it PUT an object of this ARN (*is_reachable*).
        """
        bucket, _, token = path.removeprefix("/").partition("/")
        with self._changed:
            if bucket != self.bucket or token in self._body_by_token or token not in self._function_by_pending_token:
                return False
            if not is_reachable(self._function_by_pending_token[token], f"arn:aws:s3:::{bucket}/{token}"):
                return False
            self._body_by_token[token] = body
            self._changed.notify_all()
            return True

    def close(self) -> None:
        """Stop all waiting."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def wait_for(self, token: str, seconds: float) -> bytes | None:
        """Return the response for *token*, None if there is none within *seconds*."""
        with self._changed:
            self._changed.wait_for(lambda: token in self._body_by_token or self._is_closed, seconds)
            self._function_by_pending_token.pop(token, None)
            return self._body_by_token.pop(token, None)


class CustomResourceResponse(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """The response of a function to a custom resource request."""

    status: str
    reason: str = ""
    physical_resource_id: str = ""
    data: dict[str, Any] = {}
    no_echo: bool = False


class CustomResourceProvider(ResourceProvider):
    """AWS::CloudFormation::CustomResource, and every type that begins with ``Custom::``."""

    create_only_properties = frozenset({"ServiceToken"})

    def __init__(
        self, responses: CustomResourceResponses, url: Callable[[], str], send: Callable[[str, bytes], None]
    ) -> None:
        """Send requests with *ask*, which may return before the function ends; responses are sent to *url*."""
        self._responses, self._url, self._send = responses, url, send
        self._request_count = 0

    def create(self, request: ResourceRequest) -> PhysicalResource:
        """Send a Create request; if it fails, a Delete request follows during the rollback."""
        request.record_partial(request.generate_name())
        return self._send_request("Create", request, {}, request.generate_name())

    def update(self, request: ResourceRequest) -> PhysicalResource:
        """Send an Update request; another physical id in the response is a replacement."""
        old_properties = convert_to_text(request.old_properties)
        more_fields = {"PhysicalResourceId": request.physical_id, "OldResourceProperties": old_properties}
        return self._send_request("Update", request, more_fields, request.physical_id)

    def delete(self, request: ResourceRequest) -> None:
        """Send a Delete request."""
        self._send_request("Delete", request, {"PhysicalResourceId": request.physical_id}, request.physical_id)

    def _send_request(
        self, request_type: str, request: ResourceRequest, more_fields: Mapping[str, Any], default_physical_id: str
    ) -> PhysicalResource:
        self._request_count += 1
        token = sha256(f"{request.stack_id}/{request.logical_id}/{self._request_count}".encode()).hexdigest()
        document = {
            "RequestType": request_type,
            "ServiceToken": request.properties["ServiceToken"],
            "ResponseURL": f"{self._url()}/{self._responses.bucket}/{token}",
            "StackId": request.stack_id,
            "RequestId": token[:36],
            "LogicalResourceId": request.logical_id,
            "ResourceType": request.type,
            "ResourceProperties": convert_to_text(request.properties),
            **more_fields,
        }
        self._responses.open(token, request.properties["ServiceToken"])
        self._send(request.properties["ServiceToken"], json.dumps(document).encode())
        timeout_seconds = float(request.properties.get("ServiceTimeout", MAX_SERVICE_TIMEOUT_SECONDS))
        body = self._responses.wait_for(token, min(MAX_SERVICE_TIMEOUT_SECONDS, timeout_seconds))
        if body is None:
            message = "CloudFormation did not receive a response from your Custom Resource."
            raise Failed(f"{message} Please check your logs for requestId [{token[:36]}].")
        response = _parse_response(body)
        if response.physical_resource_id:
            request.record_partial(response.physical_resource_id, **response.data)
        if response.status != "SUCCESS":
            message = "Received response status [FAILED] from custom resource. Message returned: "
            raise Failed(f"{message}{response.reason} (RequestId: {token[:36]})")
        if not response.physical_resource_id and request_type == "Create":
            raise Failed("Invalid PhysicalResourceId")
        return build_resource(response.physical_resource_id or default_physical_id, **response.data)


def _parse_response(body: bytes) -> CustomResourceResponse:
    if len(body) > _MAX_RESPONSE_BYTES:
        raise Failed("Response object is too long.")
    try:
        return msgspec.json.decode(body, type=CustomResourceResponse)
    except msgspec.MsgspecError as error:
        raise Failed(f"Invalid response from the custom resource: {error}") from error


def convert_to_text(value: Any) -> Any:  # noqa: ANN401 - documents hold anything
    """Return *value* as CloudFormation sends it to a function: numbers and booleans are text.

    >>> convert_to_text({"a": [1, True, "b"]})
    {'a': ['1', 'true', 'b']}
    """
    if isinstance(value, Mapping):
        return {key: convert_to_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [convert_to_text(item) for item in value]
    return str(value).lower() if isinstance(value, bool) else str(value)
