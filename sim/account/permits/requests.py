"""What IAM is asked for a call to any service: the action as policies spell it, and the ARN of what it touches."""

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qs, unquote

from sim.account.kinds.functions import split
from sim.account.permits.ec2 import Ec2Permits
from sim.http.protocol import Call, Environ
from sim.http.queries import Wire
from sim.iam.values import Request, context

PREFIXES: Final = {"monitoring": "cloudwatch"}
"""Services whose actions are not called as their signatures are."""
_TRANSACTED: Final = {
    "ConditionCheck": "ConditionCheckItem",
    "Delete": "DeleteItem",
    "Put": "PutItem",
    "Update": "UpdateItem",
}
_S3_LISTS: Final = {
    "accelerate": "AccelerateConfiguration",
    "encryption": "EncryptionConfiguration",
    "lifecycle": "LifecycleConfiguration",
    "location": "BucketLocation",
    "policy": "BucketPolicy",
    "versioning": "BucketVersioning",
}
_S3_OBJECTS: Final = {
    "GET": "GetObject",
    "HEAD": "GetObject",
    "POST": "PutObject",
    "PUT": "PutObject",
    "DELETE": "DeleteObject",
}
_PUBLIC: Final = "/aws/service/"


class Asking:
    """Turns calls into IAM's requests."""

    def __init__(self, region: str, number: str, ec2: Ec2Permits) -> None:
        """Ask about *region* of account *number*."""
        self._region, self._number, self._ec2 = region, number, ec2
        self._resources: Mapping[str, Callable[[str, Wire], list[str]]] = {
            "cloudformation": lambda _, said: [self._stack(said)],
            "ecr": lambda _, said: (
                [self._arn("ecr", f"repository/{said['repositoryName']}")] if "repositoryName" in said else ["*"]
            ),
            "eks": lambda _, said: [self._cluster(said)],
            "lambda": lambda _, said: [self._function(said)],
            "logs": lambda _, said: [self._log(said)],
            "scheduler": lambda _, said: [self._schedule(said)],
            "sns": lambda _, said: [said.get("TopicArn", "*")],
            "sqs": lambda _, said: [self._queue(said)],
            "ssm": lambda _, said: [self._parameter(said)],
            "sts": lambda _, said: [said.get("RoleArn", "*")],
        }

    def requests(self, call: Call, environ: Environ, said: Callable[[], Wire]) -> tuple[Request, ...]:
        """Answer what is asked for *call*, whose parameters *said* answers."""
        if call.service == "s3":
            return (self._s3(environ),)
        if call.service == "ec2":
            return self._ec2.requests(call.action, said())
        if call.service == "dynamodb":
            return self._rows(call.action, said())
        prefix = PREFIXES.get(call.service, call.service)
        action = "InvokeFunction" if (prefix, call.action) == ("lambda", "Invoke") else call.action
        action = action.removesuffix("Batch") if prefix == "sqs" else action
        find = self._resources.get(call.service)
        resources = ["*"] if find is None else find(action, said())
        return tuple(self._request(f"{prefix}:{action}", one) for one in resources)

    def _request(self, action: str, resource: str, known: Mapping[str, str] | None = None) -> Request:
        everywhere = {
            "aws:RequestedRegion": self._region,
            "aws:ResourceAccount": self._number,
            "aws:SecureTransport": "true",
        }
        return Request(action=action, resource=resource, context=context(everywhere | dict(known or {})))

    def _arn(self, service: str, name: str) -> str:
        return f"arn:aws:{service}:{self._region}:{self._number}:{name}"

    def _s3(self, environ: Environ) -> Request:
        bucket, _, key = unquote(environ["PATH_INFO"]).lstrip("/").partition("/")
        query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        method, owned = environ["REQUEST_METHOD"], {"s3:ResourceAccount": self._number}
        if key:
            return self._request(f"s3:{_S3_OBJECTS[method]}", f"arn:aws:s3:::{bucket}/{key}", owned)
        for name, what in _S3_LISTS.items():
            if name in query:
                return self._request(f"s3:{'Put' if method == 'PUT' else 'Get'}{what}", f"arn:aws:s3:::{bucket}", owned)
        if method in ("GET", "HEAD"):
            prefix = {"s3:prefix": query.get("prefix", [""])[0]}
            return self._request("s3:ListBucket", f"arn:aws:s3:::{bucket}", owned | prefix)
        verb = "Create" if method == "PUT" else "Delete"
        return self._request(f"s3:{verb}Bucket", f"arn:aws:s3:::{bucket}", owned)

    def _rows(self, action: str, said: Wire) -> tuple[Request, ...]:
        if action == "TransactWriteItems":
            items = [pair for item in said["TransactItems"] for pair in item.items()]
            every = [(_TRANSACTED[kind], one["TableName"]) for kind, one in items]
        elif "TableName" in said:
            every = [(action, said["TableName"])]
        else:
            every = [(action, name) for name in said.get("RequestItems", {})]
        if not every:
            return (self._request(f"dynamodb:{action}", "*"),)
        return tuple(
            self._request(f"dynamodb:{name}", self._arn("dynamodb", f"table/{table}")) for name, table in every
        )

    def _cluster(self, said: Wire) -> str:
        name = said.get("name") or said.get("clusterName")
        return self._arn("eks", f"cluster/{name}") if name else "*"

    def _function(self, said: Wire) -> str:
        if "FunctionName" not in said:
            return "*"
        name, qualifier = split(unquote(said["FunctionName"]))
        asked = qualifier or said.get("Qualifier", "")
        return self._arn("lambda", f"function:{name}" + (f":{asked}" if asked else ""))

    def _log(self, said: Wire) -> str:
        group = said.get("logGroupName")
        return self._arn("logs", f"log-group:{group}:log-stream:{said.get('logStreamName', '')}") if group else "*"

    def _schedule(self, said: Wire) -> str:
        group = said.get("GroupName", "default")
        return self._arn("scheduler", f"schedule/{group}/{said['Name']}") if "Name" in said else "*"

    def _stack(self, said: Wire) -> str:
        name = said.get("StackName", "")
        return name if name.startswith("arn:") else self._arn("cloudformation", f"stack/{name}/*") if name else "*"

    def _queue(self, said: Wire) -> str:
        name = said.get("QueueName") or str(said.get("QueueUrl", "")).rpartition("/")[2]
        return self._arn("sqs", name) if name else "*"

    def _parameter(self, said: Wire) -> str:
        name = str(said.get("Name", ""))
        if name.startswith(_PUBLIC):
            return f"arn:aws:ssm:{self._region}::parameter{name}"
        return self._arn("ssm", f"parameter/{name.lstrip('/')}") if name else "*"


def documents(value: Any) -> list[Any]:  # noqa: ANN401 - documents hold anything
    """Answer the statements of a policy document, one or several."""
    found = value.get("Statement", [])
    return found if isinstance(found, list) else [found]
