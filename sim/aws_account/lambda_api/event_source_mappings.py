"""Event source mappings: which queue invokes which function."""

from collections.abc import Callable
from hashlib import sha256

from sim.aws_account.function_runtime import AccountServices
from sim.aws_account.lambda_api.function_store import HTTP_CONFLICT, HTTP_NOT_FOUND, Function
from sim.aws_http.protocol import ApiDict, ApiError, ApiHandlers, ApiResponse


class EventSourceMappingApi:
    """The event source mappings of the account, by UUID, and the API calls for them."""

    def __init__(self, account: AccountServices, find_function: Callable[[str], tuple[Function, str]]) -> None:
        """Start without mappings; *find_function* finds a function and a qualifier by name or ARN."""
        self._account, self._find_function = account, find_function
        self._mappings: dict[str, ApiResponse] = {}
        self._count = 0
        self.handlers: ApiHandlers = {
            "CreateEventSourceMapping": self._create,
            "DeleteEventSourceMapping": self._delete,
            "GetEventSourceMapping": lambda request: self._get_mapping(request["UUID"]),
            "ListEventSourceMappings": self._list,
            "UpdateEventSourceMapping": self._update,
        }

    def _get_mapping(self, uuid: str) -> ApiResponse:
        if uuid not in self._mappings:
            raise ApiError("ResourceNotFoundException", "The resource you requested does not exist.", HTTP_NOT_FOUND)
        return self._mappings[uuid]

    def _create(self, request: ApiDict) -> ApiResponse:
        function_arn = self._resolve_function_arn(request["FunctionName"])
        source_arn = request["EventSourceArn"]
        for mapping in self._mappings.values():
            if (mapping["EventSourceArn"], mapping["FunctionArn"]) == (source_arn, function_arn):
                message = (
                    f"An event source mapping with {source_arn} and {function_arn} already exists: {mapping['UUID']}"
                )
                raise ApiError("ResourceConflictException", message, HTTP_CONFLICT)
        self._check_queue(source_arn, request["FunctionName"])
        self._count += 1
        digest = sha256(f"{source_arn}{function_arn}{self._count}".encode()).hexdigest()
        uuid = f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"
        account_id, region = self._account.account_id, self._account.region
        self._mappings[uuid] = {
            "BatchSize": 10,
            "MaximumBatchingWindowInSeconds": 0,
            **{key: value for key, value in request.items() if key not in ("Enabled", "FunctionName", "Tags")},
            "UUID": uuid,
            "FunctionArn": function_arn,
            "EventSourceMappingArn": f"arn:aws:lambda:{region}:{account_id}:event-source-mapping:{uuid}",
            "LastModified": self._account.clock.get_time(),
            "State": "Enabled" if request.get("Enabled", True) else "Disabled",
        }
        return self._mappings[uuid]

    def _update(self, request: ApiDict) -> ApiResponse:
        mapping = self._get_mapping(request["UUID"])
        if "FunctionName" in request:
            self._check_queue(mapping["EventSourceArn"], request["FunctionName"])
            mapping["FunctionArn"] = self._resolve_function_arn(request["FunctionName"])
        if "Enabled" in request:
            mapping["State"] = "Enabled" if request["Enabled"] else "Disabled"
        mapping.update({key: value for key, value in request.items() if key not in ("Enabled", "FunctionName", "UUID")})
        return mapping

    def _resolve_function_arn(self, name: str) -> str:
        function, qualifier = self._find_function(name)
        function.get_version(qualifier)
        return f"{function.arn}:{qualifier}" if qualifier else function.arn

    def _check_queue(self, source_arn: str, name: str) -> None:
        """Raise if the queue does not exist, or if its visibility timeout is less than the timeout of the function."""
        function, qualifier = self._find_function(name)
        sqs, queue = self._account.get_client("sqs"), source_arn.rpartition(":")[2]
        try:
            url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        except sqs.exceptions.QueueDoesNotExist as error:
            message = f"Error occurred while ReceiveMessage. SQS Error Code: {error.response['Error']['Code']}."
            raise ApiError("InvalidParameterValueException", message) from error
        attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])["Attributes"]
        visibility_timeout = int(attributes["VisibilityTimeout"])
        timeout = function.get_version(qualifier).config["Timeout"]
        if visibility_timeout < timeout:
            message = (
                f"Queue visibility timeout: {visibility_timeout} seconds "
                f"is less than Function timeout: {timeout} seconds"
            )
            raise ApiError("InvalidParameterValueException", message)

    def _delete(self, request: ApiDict) -> ApiResponse:
        return {**self._mappings.pop(self._get_mapping(request["UUID"])["UUID"]), "State": "Deleting"}

    def _list(self, request: ApiDict) -> ApiResponse:
        mappings = list(self._mappings.values())
        if "EventSourceArn" in request:
            mappings = [mapping for mapping in mappings if mapping["EventSourceArn"] == request["EventSourceArn"]]
        if "FunctionName" in request:
            function_arn = self._resolve_function_arn(request["FunctionName"])
            mappings = [mapping for mapping in mappings if mapping["FunctionArn"] == function_arn]
        return {"EventSourceMappings": mappings}
