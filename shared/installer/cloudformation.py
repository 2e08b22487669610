"""The CloudFormation custom resource protocol: the request, and the response that is PUT to the request's URL."""

from typing import Any, Final, Literal
from urllib.parse import urlsplit

import msgspec
from aws_lambda_powertools.utilities.data_classes import CloudFormationCustomResourceEvent
from urllib3 import PoolManager, Retry

from shared.errors import Fault, Forbidden, Unreachable

MAX_REASON_CHARS: Final = 1000
"""Characters of a reason or a report; CloudFormation accepts 4096 bytes in total."""
_MAX_ENCODED_REASON_BYTES: Final = 1500
"""Bytes of the same as JSON: quotes and characters outside ASCII have several."""
_HTTP_OK: Final = 200
_HTTP_FORBIDDEN: Final = 403
_RETRY_POLICY: Final = Retry(
    total=5,
    backoff_factor=1,
    # The policy of a VPC endpoint that was created a moment ago may not be in effect everywhere.
    status_forcelist=(_HTTP_FORBIDDEN, 500, 502, 503, 504),
    allowed_methods=("PUT",),
    raise_on_status=False,
)

Status = Literal["SUCCESS", "FAILED"]


class CloudFormationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A custom resource request of CloudFormation; only the fields that are read."""

    request_type: Literal["Create", "Update", "Delete"]
    response_url: str
    stack_id: str
    request_id: str
    logical_resource_id: str
    resource_properties: "RequestProperties"


class RequestProperties(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """The resource properties that the stack sets."""

    part: Literal["installed", "emptied"]
    """`installed` is the part that is in the cluster; `emptied` is deleted first, while the functions still work."""
    manifests: str = ""
    """Name of the manifest file that is packaged with the code."""
    profiles: tuple[str, ...] = ()
    """Instance profiles that are deleted with the stack."""
    on_destroy: Literal["keep", "purge", "abandon"] = "keep"
    cluster_objects: Literal["stack", "external"] = "stack"
    """`external`: another tool applies and removes the manifests; they are only compared with the cluster."""


def parse_cloudformation_request(event: dict[str, Any]) -> CloudFormationRequest:
    """Parse a CloudFormation event.

    Raises:
        KeyError: *event* lacks a field of a CloudFormation request.
        msgspec.ValidationError: a field has a value that the stack does not send.
    """
    request = CloudFormationCustomResourceEvent(event)
    fields = {
        "request_type": request.request_type,
        "response_url": request.response_url,
        "stack_id": request.stack_id,
        "request_id": request.request_id,
        "logical_resource_id": request.logical_resource_id,
        "resource_properties": request.resource_properties,
    }
    return msgspec.convert(fields, CloudFormationRequest)


def _shorten_message(message: str) -> str:
    """Return the beginning of *message* that fits into a response twice, also with characters of several bytes."""
    short_message = message[:MAX_REASON_CHARS]
    while len(msgspec.json.encode(short_message)) > _MAX_ENCODED_REASON_BYTES:
        short_message = short_message[: len(short_message) * 9 // 10]
    return short_message


def build_response(request: CloudFormationRequest, status: Status, message: str) -> bytes:
    """Build the JSON response for CloudFormation.

    The physical resource id never changes, so that CloudFormation never replaces the resource.
    """
    short_message = _shorten_message(message)
    return msgspec.json.encode(
        {
            "Status": status,
            "Reason": short_message or "done",
            "PhysicalResourceId": f"joiner-{request.resource_properties.part}",
            "StackId": request.stack_id,
            "RequestId": request.request_id,
            "LogicalResourceId": request.logical_resource_id,
            "Data": {"Told": short_message or "no changes"},
        }
    )


def send_response(url: str, body: bytes) -> int:
    """PUT *body* to CloudFormation's presigned *url* and return the HTTP status.

    The signature does not cover a content type. 403 and 5xx are repeated for half a minute.

    Raises:
        Fault: the last status is an error: CloudFormation waits for a response that it does not get.
    """
    response = PoolManager(retries=_RETRY_POLICY).request("PUT", url, body=body, headers={"Content-Type": ""})
    if response.status == _HTTP_OK:
        return response.status
    raise _build_response_fault(urlsplit(url).netloc, response.status, response.data.decode(errors="replace"))


def _build_response_fault(host: str, status: int, text: str) -> Fault:
    """Build the error of a response that S3 rejected; the rest of the URL is a signature, so it is left out."""
    message = f"PUT of the response to CloudFormation at {host}: HTTP {status} {text[:MAX_REASON_CHARS]}".rstrip()
    if status != _HTTP_FORBIDDEN:
        return Unreachable(message)
    return Forbidden(f"{message}. To fix: the policy of the S3 gateway endpoint must allow s3:PutObject on this bucket")
