"""Event source mappings: which queue wakes which function."""

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Protocol, TypeAlias

from sim.account.lambdas.store import CONFLICT, NOT_FOUND, Function
from sim.clock import Clock
from sim.http.protocol import ApiError
from sim.http.queries import Wire

Answer: TypeAlias = dict[str, Any]


class Holder(Protocol):
    """What is needed of the account."""

    region: str
    number: str
    clock: Clock

    def client(self, service: str) -> Any:  # noqa: ANN401 - boto3's clients have no types
        """Answer the deployer's client."""


class Mappings:
    """All of the account's, by UUID."""

    def __init__(self, account: Holder, named: Callable[[str], tuple[Function, str]]) -> None:
        """Begin without any; *named* finds a function and a qualifier by name or ARN."""
        self._account, self._named = account, named
        self._mappings: dict[str, Answer] = {}
        self._count = 0
        self.handlers: Mapping[str, Callable[[Wire], Answer]] = {
            "CreateEventSourceMapping": self._create,
            "DeleteEventSourceMapping": self._delete,
            "GetEventSourceMapping": lambda said: self._find(said["UUID"]),
            "ListEventSourceMappings": self._list,
            "UpdateEventSourceMapping": self._update,
        }

    def _find(self, uuid: str) -> Answer:
        if uuid not in self._mappings:
            raise ApiError("ResourceNotFoundException", "The resource you requested does not exist.", NOT_FOUND)
        return self._mappings[uuid]

    def _create(self, said: Wire) -> Answer:
        arn = self._called(said["FunctionName"])
        source = said["EventSourceArn"]
        for one in self._mappings.values():
            if (one["EventSourceArn"], one["FunctionArn"]) == (source, arn):
                text = f"An event source mapping with {source} and {arn} already exists: {one['UUID']}"
                raise ApiError("ResourceConflictException", text, CONFLICT)
        self._check(source, said["FunctionName"])
        self._count += 1
        digest = sha256(f"{source}{arn}{self._count}".encode()).hexdigest()
        uuid = f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"
        number, region = self._account.number, self._account.region
        self._mappings[uuid] = {
            "BatchSize": 10,
            "MaximumBatchingWindowInSeconds": 0,
            **{key: value for key, value in said.items() if key not in ("Enabled", "FunctionName", "Tags")},
            "UUID": uuid,
            "FunctionArn": arn,
            "EventSourceMappingArn": f"arn:aws:lambda:{region}:{number}:event-source-mapping:{uuid}",
            "LastModified": self._account.clock.now(),
            "State": "Enabled" if said.get("Enabled", True) else "Disabled",
        }
        return self._mappings[uuid]

    def _update(self, said: Wire) -> Answer:
        one = self._find(said["UUID"])
        if "FunctionName" in said:
            self._check(one["EventSourceArn"], said["FunctionName"])
            one["FunctionArn"] = self._called(said["FunctionName"])
        if "Enabled" in said:
            one["State"] = "Enabled" if said["Enabled"] else "Disabled"
        one.update({key: value for key, value in said.items() if key not in ("Enabled", "FunctionName", "UUID")})
        return one

    def _called(self, name: str) -> str:
        function, qualifier = self._named(name)
        function.version(qualifier)
        return f"{function.arn}:{qualifier}" if qualifier else function.arn

    def _check(self, source: str, name: str) -> None:
        """Refuse a queue that is not there, or that would show a message again while a function still has it."""
        function, qualifier = self._named(name)
        sqs, queue = self._account.client("sqs"), source.rpartition(":")[2]
        try:
            url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        except sqs.exceptions.QueueDoesNotExist as error:
            text = f"Error occurred while ReceiveMessage. SQS Error Code: {error.response['Error']['Code']}."
            raise ApiError("InvalidParameterValueException", text) from error
        attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])["Attributes"]
        hidden, timeout = int(attributes["VisibilityTimeout"]), function.version(qualifier).config["Timeout"]
        if hidden < timeout:
            text = f"Queue visibility timeout: {hidden} seconds is less than Function timeout: {timeout} seconds"
            raise ApiError("InvalidParameterValueException", text)

    def _delete(self, said: Wire) -> Answer:
        return {**self._mappings.pop(self._find(said["UUID"])["UUID"]), "State": "Deleting"}

    def _list(self, said: Wire) -> Answer:
        found = list(self._mappings.values())
        if "EventSourceArn" in said:
            found = [one for one in found if one["EventSourceArn"] == said["EventSourceArn"]]
        if "FunctionName" in said:
            wanted = self._called(said["FunctionName"])
            found = [one for one in found if one["FunctionArn"] == wanted]
        return {"EventSourceMappings": found}
