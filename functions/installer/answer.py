"""What CloudFormation says and hears: a request with a URL in it, to which the answer is put."""

from typing import Any, Final, Literal

import msgspec
from urllib3 import PoolManager, Retry

LONGEST: Final = 1000
"""Characters of a reason or a report: CloudFormation takes 4096 bytes in all."""
_PATIENCE: Final = Retry(total=5, backoff_factor=1, status_forcelist=(500, 502, 503, 504), allowed_methods=("PUT",))

Status = Literal["SUCCESS", "FAILED"]


class Order(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """A request of CloudFormation, what is read of it."""

    request_type: Literal["Create", "Update", "Delete"]
    response_url: str = msgspec.field(name="ResponseURL")
    stack_id: str
    request_id: str
    logical_resource_id: str
    resource_properties: "Properties"


class Properties(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """What the stack says of the resource."""

    part: Literal["installed", "emptied"]
    """`installed` is what is in the cluster; `emptied` is deleted before anything else, while the functions work."""
    manifests: str = ""
    """The file beside our code."""
    profiles: tuple[str, ...] = ()
    """Instance profiles that go with the stack."""
    on_destroy: Literal["keep", "purge", "abandon"] = "keep"


def parse_order(event: dict[str, Any]) -> Order:
    """Read what CloudFormation says.

    Raises:
        msgspec.ValidationError: it is none of its requests.
    """
    return msgspec.convert(event, Order)


def reply(order: Order, status: Status, told: str) -> bytes:
    """Answer what CloudFormation hears; the resource's name never changes, so that nothing is ever replaced."""
    return msgspec.json.encode(
        {
            "Status": status,
            "Reason": told[:LONGEST] or "done",
            "PhysicalResourceId": f"joiner-{order.resource_properties.part}",
            "StackId": order.stack_id,
            "RequestId": order.request_id,
            "LogicalResourceId": order.logical_resource_id,
            "Data": {"Told": told[:LONGEST] or "nothing to do"},
        }
    )


def send(url: str, body: bytes) -> None:
    """PUT *body* to CloudFormation's *url*, which is signed for no content type."""
    PoolManager(retries=_PATIENCE).request("PUT", url, body=body, headers={"Content-Type": ""})
