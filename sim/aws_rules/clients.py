"""Clients that stand in for botocore's: they check each request, and respond with nothing.

The adapters of `shared.aws` build the same requests with them as for AWS. A request that AWS would reject raises the
exception that botocore raises.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Self

from botocore import xform_name
from botocore.exceptions import ClientError, ParamValidationError

from shared.aws.clients import Clients, TemporaryCredentials
from sim.aws_rules.problem import CLIENT_SIDE_CODE, RequestProblem
from sim.aws_rules.request_log import RequestLog
from sim.aws_rules.request_validation import load_paginators, load_service_model

_REJECTED_STATUS: Final = 400
_DRY_RUN_CODE: Final = "DryRunOperation"
_MISSING_CODE_BY_OPERATION: Final = {"DescribeLaunchTemplates": "InvalidLaunchTemplateName.NotFoundException"}
"""Operations by name that find nothing here, with EC2's error code for that."""


class NoResponse(dict[str, Any]):
    """The response to a request that was only checked: every member is empty."""

    def __missing__(self, key: str) -> Self:
        """Return an empty member."""
        return type(self)()

    def read(self) -> bytes:
        """Return the content of an empty body."""
        return b""


class RecordingClients(Clients):
    """Stands in for `shared.aws.clients.Clients` of one function."""

    def __init__(self, region: str, function: str, log: RequestLog) -> None:
        """Check requests of *function* with *log*."""
        super().__init__(region)
        self._function, self._log = function, log
        self._recording_client_by_service: dict[str, RecordingClient] = {}

    def build_assumed_clients(self, credentials: TemporaryCredentials) -> Clients:
        """Return these clients: requests with other credentials are checked alike."""
        del credentials
        return self

    def _get_client(self, service: str, region: str, retry_mode: str) -> Any:  # noqa: ANN401 - boto3 has no types
        del region, retry_mode
        if service not in self._recording_client_by_service:
            client = RecordingClient(service, lambda *request: self._log.check_request(self._function, *request))
            self._recording_client_by_service[service] = client
        return self._recording_client_by_service[service]


CheckRequest = Callable[[str, str, Mapping[str, Any]], RequestProblem | None]


class RecordingClient:
    """Stands in for a botocore client."""

    def __init__(self, service: str, check_request: CheckRequest) -> None:
        """Check the requests to *service* with *check_request*."""
        self._service, self._check_request = service, check_request
        self._operation_by_method = {
            xform_name(operation): operation for operation in load_service_model(service).operation_names
        }

    def __getattr__(self, method: str) -> Callable[..., NoResponse]:
        """Return the method of an operation.

        Raises:
            AttributeError: the service has no such operation.
        """
        operation = self._operation_by_method.get(method)
        if operation is None:
            raise AttributeError(f"{self._service} has no operation {method}")

        def call(**parameters: Any) -> NoResponse:  # noqa: ANN401 - any parameter
            self._send(operation, parameters)
            return NoResponse()

        setattr(self, method, call)
        return call

    def get_paginator(self, method: str) -> "RecordingPaginator":
        """Return a paginator whose only page is empty."""
        return RecordingPaginator(self._service, self._operation_by_method[method], self._send)

    def _send(self, operation: str, parameters: Mapping[str, Any]) -> None:
        request = _encode_as_botocore(operation, parameters)
        problem = self._check_request(self._service, operation, request)
        if problem is not None and problem.code == CLIENT_SIDE_CODE:
            raise ParamValidationError(report=problem.message)
        if problem is not None:
            raise _build_client_error(operation, problem.code, problem.message)
        if parameters.get("DryRun"):
            raise _build_client_error(operation, _DRY_RUN_CODE, "Request would have succeeded, but DryRun flag is set.")
        if operation in _MISSING_CODE_BY_OPERATION and parameters.get("LaunchTemplateNames"):
            raise _build_client_error(operation, _MISSING_CODE_BY_OPERATION[operation], "not found")


class RecordingPaginator:
    """Stands in for a botocore paginator."""

    def __init__(self, service: str, operation: str, send: Callable[[str, Mapping[str, Any]], None]) -> None:
        """Send the first page of *operation* with *send*."""
        self._operation, self._send = operation, send
        self._limit_key = load_paginators(service).get_paginator(operation).get("limit_key", "")

    def paginate(self, **parameters: Any) -> Iterator[NoResponse]:  # noqa: ANN401 - any parameter
        """Yield one empty page; a page size becomes the parameter that limits the results, as in botocore."""
        page_size = parameters.pop("PaginationConfig", {}).get("PageSize")
        limit = {self._limit_key: page_size} if page_size is not None else {}
        self._send(self._operation, parameters | limit)
        yield NoResponse()


def _encode_as_botocore(operation: str, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parameters as botocore sends them: it encodes the user data of RunInstances, and of nothing else."""
    if operation != "RunInstances" or "UserData" not in parameters:
        return parameters
    return {**parameters, "UserData": b64encode(parameters["UserData"].encode()).decode()}


def _build_client_error(operation: str, code: str, message: str) -> ClientError:
    response = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": _REJECTED_STATUS},
    }
    return ClientError(response, operation)
