"""Custom resources: a function of the account is asked, and answers by a PUT to a URL of CloudFormation's own."""

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from threading import Condition
from typing import Any, Final

import msgspec

from sim.account.kinds.kind import Failed, Kind, Made, Place, Said

PATH: Final = "/cloudformation-custom-resource-response/"
LONGEST: Final = 900
"""Seconds that an answer may take, unless `ServiceTimeout` says less. CloudFormation waits an hour; no function can."""
_RESPONSE_BYTES: Final = 4096


class Answers:
    """The answers that functions have put, by the token in the URL."""

    def __init__(self) -> None:
        """Nobody has been asked."""
        self._said: dict[str, bytes] = {}
        self._asked: set[str] = set()
        self._is_closed = False
        self._changed = Condition()

    def open(self, token: str) -> None:
        """Take an answer to *token*."""
        with self._changed:
            self._asked.add(token)

    def put(self, token: str, body: bytes) -> bool:
        """Keep *body*; False: nobody asked, or an answer is there."""
        with self._changed:
            if token not in self._asked or token in self._said:
                return False
            self._said[token] = body
            self._changed.notify_all()
            return True

    def close(self) -> None:
        """Have nobody wait any more."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def take(self, token: str, seconds: float) -> bytes | None:
        """Answer what was put, None if nothing was in *seconds*."""
        with self._changed:
            self._changed.wait_for(lambda: token in self._said or self._is_closed, seconds)
            self._asked.discard(token)
            return self._said.pop(token, None)


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """What a function says of its resource."""

    status: str
    reason: str = ""
    physical_resource_id: str = ""
    data: dict[str, Any] = {}
    no_echo: bool = False


class Custom(Kind):
    """AWS::CloudFormation::CustomResource, and every type that begins with ``Custom::``."""

    fixed = frozenset({"ServiceToken"})

    def __init__(self, answers: Answers, url: Callable[[], str], ask: Callable[[str, bytes], None]) -> None:
        """Ask by *ask*, which need not wait for the end of the function; answers come to *url*."""
        self._answers, self._url, self._send = answers, url, ask
        self._count = 0

    def create(self, at: Place, said: Said) -> Made:
        """Ask for one; whatever becomes of that, it is asked for its deletion then."""
        at.begun.append(Made(physical_id=at.named()))
        return self._ask("Create", at, said, {}, at.named())

    def update(self, at: Place, made: Made, old: Said, new: Said) -> Made:
        """Ask for a change; another physical id means that there are two now."""
        further = {"PhysicalResourceId": made.physical_id, "OldResourceProperties": worded(old)}
        return self._ask("Update", at, new, further, made.physical_id)

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Ask that it go."""
        self._ask("Delete", at, said, {"PhysicalResourceId": made.physical_id}, made.physical_id)

    def _ask(self, request: str, at: Place, said: Said, further: Mapping[str, Any], fallback: str) -> Made:
        self._count += 1
        token = sha256(f"{at.stack_id}/{at.logical_id}/{self._count}".encode()).hexdigest()
        document = {
            "RequestType": request,
            "ServiceToken": said["ServiceToken"],
            "ResponseURL": f"{self._url()}{PATH}{token}",
            "StackId": at.stack_id,
            "RequestId": token[:36],
            "LogicalResourceId": at.logical_id,
            "ResourceType": at.type,
            "ResourceProperties": worded(said),
            **further,
        }
        self._answers.open(token)
        self._send(said["ServiceToken"], json.dumps(document).encode())
        body = self._answers.take(token, min(LONGEST, float(said.get("ServiceTimeout", LONGEST))))
        if body is None:
            text = "CloudFormation did not receive a response from your Custom Resource."
            raise Failed(f"{text} Please check your logs for requestId [{token[:36]}].")
        answer = _parsed(body)
        if answer.physical_resource_id:
            at.begun.append(Made(physical_id=answer.physical_resource_id, attributes=answer.data))
        if answer.status != "SUCCESS":
            text = "Received response status [FAILED] from custom resource. Message returned: "
            raise Failed(f"{text}{answer.reason} (RequestId: {token[:36]})")
        if not answer.physical_resource_id and request == "Create":
            raise Failed("Invalid PhysicalResourceId")
        return Made(physical_id=answer.physical_resource_id or fallback, attributes=answer.data)


def _parsed(body: bytes) -> Answer:
    if len(body) > _RESPONSE_BYTES:
        raise Failed("Response object is too long.")
    try:
        return msgspec.json.decode(body, type=Answer)
    except msgspec.MsgspecError as error:
        raise Failed(f"Invalid response from the custom resource: {error}") from error


def worded(value: Any) -> Any:  # noqa: ANN401 - documents hold anything
    """Answer *value* as CloudFormation tells it to a function: numbers and booleans are text.

    >>> worded({"a": [1, True, "b"]})
    {'a': ['1', 'true', 'b']}
    """
    if isinstance(value, Mapping):
        return {key: worded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [worded(one) for one in value]
    return str(value).lower() if isinstance(value, bool) else str(value)
