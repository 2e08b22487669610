"""The IAM requests of an API call: the action as policies write it, and the ARNs of the resources that it uses."""

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qs, unquote

from sim.aws_account.iam_checks.ec2_requests import Ec2RequestBuilder
from sim.aws_account.resource_types.lambda_functions import parse_function_name
from sim.aws_http.protocol import ApiCall, ApiDict, Environ
from sim.iam.patterns_and_variables import IamRequest, build_context

ACTION_PREFIX_BY_SERVICE: Final = {"monitoring": "cloudwatch"}
"""Services whose IAM action prefix differs from their signing name."""
_ACTION_BY_TRANSACT_OPERATION: Final = {
    "ConditionCheck": "ConditionCheckItem",
    "Delete": "DeleteItem",
    "Put": "PutItem",
    "Update": "UpdateItem",
}
_S3_BUCKET_ACTIONS: Final = {
    "accelerate": "AccelerateConfiguration",
    "encryption": "EncryptionConfiguration",
    "lifecycle": "LifecycleConfiguration",
    "location": "BucketLocation",
    "policy": "BucketPolicy",
    "versioning": "BucketVersioning",
}
_S3_OBJECT_ACTIONS: Final = {
    "GET": "GetObject",
    "HEAD": "GetObject",
    "POST": "PutObject",
    "PUT": "PutObject",
    "DELETE": "DeleteObject",
}
_PUBLIC_PARAMETER_PREFIX: Final = "/aws/service/"


class ApiRequestBuilder:
    """Builds the IAM requests of API calls."""

    def __init__(self, region: str, account_id: str, ec2_request_builder: Ec2RequestBuilder) -> None:
        """Build requests for *region* of the account *account_id*."""
        self._region, self._account_id, self._ec2_request_builder = region, account_id, ec2_request_builder
        self._find_resources_by_service: Mapping[str, Callable[[str, ApiDict], list[str]]] = {
            "cloudformation": lambda _, parameters: [self._build_stack_arn(parameters)],
            "ecr": lambda _, parameters: (
                [self._build_arn("ecr", f"repository/{parameters['repositoryName']}")]
                if "repositoryName" in parameters
                else ["*"]
            ),
            "eks": lambda _, parameters: [self._build_cluster_arn(parameters)],
            "lambda": lambda _, parameters: [self._build_function_arn(parameters)],
            "logs": lambda _, parameters: [self._build_log_stream_arn(parameters)],
            "scheduler": lambda _, parameters: [self._build_schedule_arn(parameters)],
            "sns": lambda _, parameters: [parameters.get("TopicArn", "*")],
            "sqs": lambda _, parameters: [self._build_queue_arn(parameters)],
            "ssm": lambda _, parameters: [self._build_parameter_arn(parameters)],
            "sts": lambda _, parameters: [parameters.get("RoleArn", "*")],
        }

    def build_requests(
        self, call: ApiCall, environ: Environ, get_parameters: Callable[[], ApiDict]
    ) -> tuple[IamRequest, ...]:
        """Return the IAM requests of *call*; *get_parameters* returns the parameters of the call."""
        if call.service == "s3":
            return (self._build_s3_request(environ),)
        if call.service == "ec2":
            return self._ec2_request_builder.build_requests(call.action, get_parameters())
        if call.service == "dynamodb":
            return self._build_dynamodb_requests(call.action, get_parameters())
        prefix = ACTION_PREFIX_BY_SERVICE.get(call.service, call.service)
        action = "InvokeFunction" if (prefix, call.action) == ("lambda", "Invoke") else call.action
        action = action.removesuffix("Batch") if prefix == "sqs" else action
        find_resources = self._find_resources_by_service.get(call.service)
        resources = ["*"] if find_resources is None else find_resources(action, get_parameters())
        return tuple(self._build_request(f"{prefix}:{action}", resource) for resource in resources)

    def _build_request(self, action: str, resource: str, context_keys: Mapping[str, str] | None = None) -> IamRequest:
        global_keys = {
            "aws:RequestedRegion": self._region,
            "aws:ResourceAccount": self._account_id,
            "aws:SecureTransport": "true",
        }
        return IamRequest(
            action=action, resource=resource, context=build_context(global_keys | dict(context_keys or {}))
        )

    def _build_arn(self, service: str, name: str) -> str:
        return f"arn:aws:{service}:{self._region}:{self._account_id}:{name}"

    def _build_s3_request(self, environ: Environ) -> IamRequest:
        bucket, _, key = unquote(environ["PATH_INFO"]).lstrip("/").partition("/")
        query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        method, account_key = environ["REQUEST_METHOD"], {"s3:ResourceAccount": self._account_id}
        if key:
            return self._build_request(f"s3:{_S3_OBJECT_ACTIONS[method]}", f"arn:aws:s3:::{bucket}/{key}", account_key)
        for name, action_suffix in _S3_BUCKET_ACTIONS.items():
            if name in query:
                return self._build_request(
                    f"s3:{'Put' if method == 'PUT' else 'Get'}{action_suffix}", f"arn:aws:s3:::{bucket}", account_key
                )
        if method in ("GET", "HEAD"):
            prefix = {"s3:prefix": query.get("prefix", [""])[0]}
            return self._build_request("s3:ListBucket", f"arn:aws:s3:::{bucket}", account_key | prefix)
        verb = "Create" if method == "PUT" else "Delete"
        return self._build_request(f"s3:{verb}Bucket", f"arn:aws:s3:::{bucket}", account_key)

    def _build_dynamodb_requests(self, action: str, parameters: ApiDict) -> tuple[IamRequest, ...]:
        if action == "TransactWriteItems":
            items = [pair for item in parameters["TransactItems"] for pair in item.items()]
            action_and_tables = [
                (_ACTION_BY_TRANSACT_OPERATION[kind], operation_json["TableName"]) for kind, operation_json in items
            ]
        elif "TableName" in parameters:
            action_and_tables = [(action, parameters["TableName"])]
        else:
            action_and_tables = [(action, name) for name in parameters.get("RequestItems", {})]
        if not action_and_tables:
            return (self._build_request(f"dynamodb:{action}", "*"),)
        return tuple(
            self._build_request(f"dynamodb:{name}", self._build_table_arn(table), _find_leading_keys(parameters))
            for name, table in action_and_tables
        )

    def _build_table_arn(self, table: str) -> str:
        """Return the ARN of *table*, which may be an ARN itself."""
        return table if table.startswith("arn:") else self._build_arn("dynamodb", f"table/{table}")

    def _build_cluster_arn(self, parameters: ApiDict) -> str:
        name = parameters.get("name") or parameters.get("clusterName")
        return self._build_arn("eks", f"cluster/{name}") if name else "*"

    def _build_function_arn(self, parameters: ApiDict) -> str:
        if "FunctionName" not in parameters:
            return "*"
        name, qualifier = parse_function_name(unquote(parameters["FunctionName"]))
        full_qualifier = qualifier or parameters.get("Qualifier", "")
        return self._build_arn("lambda", f"function:{name}" + (f":{full_qualifier}" if full_qualifier else ""))

    def _build_log_stream_arn(self, parameters: ApiDict) -> str:
        group = parameters.get("logGroupName")
        return (
            self._build_arn("logs", f"log-group:{group}:log-stream:{parameters.get('logStreamName', '')}")
            if group
            else "*"
        )

    def _build_schedule_arn(self, parameters: ApiDict) -> str:
        group = parameters.get("GroupName", "default")
        return self._build_arn("scheduler", f"schedule/{group}/{parameters['Name']}") if "Name" in parameters else "*"

    def _build_stack_arn(self, parameters: ApiDict) -> str:
        name = parameters.get("StackName", "")
        return (
            name if name.startswith("arn:") else self._build_arn("cloudformation", f"stack/{name}/*") if name else "*"
        )

    def _build_queue_arn(self, parameters: ApiDict) -> str:
        name = parameters.get("QueueName") or str(parameters.get("QueueUrl", "")).rpartition("/")[2]
        return self._build_arn("sqs", name) if name else "*"

    def _build_parameter_arn(self, parameters: ApiDict) -> str:
        name = str(parameters.get("Name", ""))
        if name.startswith(_PUBLIC_PARAMETER_PREFIX):
            return f"arn:aws:ssm:{self._region}::parameter{name}"
        return self._build_arn("ssm", f"parameter/{name.lstrip('/')}") if name else "*"


def list_statements(value: Any) -> list[Any]:  # noqa: ANN401 - documents hold anything
    """Return the statements of a policy document, which has one statement or a list."""
    statements = value.get("Statement", [])
    return statements if isinstance(statements, list) else [statements]


def _find_leading_keys(parameters: ApiDict) -> dict[str, str]:
    """Return the partition key of a request for one item, as DynamoDB evaluates it in conditions."""
    item = parameters.get("Key") or parameters.get("Item") or {}
    return {"dynamodb:LeadingKeys": item["pk"]["S"]} if "pk" in item else {}
