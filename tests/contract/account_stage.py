"""An account in which tests deploy templates and inspect the result."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from botocore.exceptions import ClientError
from urllib3 import PoolManager

from sim.aws_account.account import Account
from sim.aws_account.function_runtime import Credentials, InvocationResult
from sim.cloud.cloud import Cloud
from sim.cloud.eventbridge_events import ACCOUNT_ID
from sim.lambda_runtime.stack_template.synthesis import synthesize_template
from sim.time.real_clock import RealTimeClock
from sim.time.virtual_clock import Clock

Json = dict[str, Any]
JOINER_STACK = "joiner-demo"
Responder = Callable[[Json], Json | None]
TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"},
        {"Effect": "Allow", "Principal": {"AWS": "123456789012"}, "Action": "sts:AssumeRole"},
    ],
}


class Stage:
    """One account, and a function that answers every custom resource as a test requires.

    The function answers before its call returns, so a waiting caller finds the answer or, however slow the test run,
    none.
    """

    def __init__(
        self, clock: Clock | None = None, minute: timedelta = timedelta(), account_id: str = ACCOUNT_ID
    ) -> None:
        """Start nothing yet; without *clock* time is real, and a *minute* of a deployment lasts no time."""
        clock = clock or RealTimeClock(lambda: datetime.now(UTC))
        cloud = Cloud(clock, cluster="demo", describe_lag=timedelta(0))
        self.account = Account(cloud, clock, minute=minute, account_id=account_id)
        self.dispatch_in_thread = self.account.dispatcher
        """The account's own dispatcher: it does not wait for the end of a call."""
        self.account.invoker, self.account.dispatcher = self._run, self._call
        self.custom_resource_requests: list[Json] = []
        self.respond: Responder = lambda _: {}
        self._names = count(1)

    def get_client(self, service: str) -> Any:
        return self.account.get_client(service)

    def make_stack_name(self) -> str:
        """Return a name that no other stack has."""
        return f"stack{next(self._names)}"

    def deploy(self, name: str, resources: Json, *, parameters: Json | None = None, **template: Any) -> Json:
        """Create or update the stack; return its description when that is over."""
        cloudformation = self.get_client("cloudformation")
        parameter_list = [{"ParameterKey": key, "ParameterValue": value} for key, value in (parameters or {}).items()]
        body = json.dumps({"Resources": resources, **template})
        is_there = name in [stack["StackName"] for stack in cloudformation.describe_stacks()["Stacks"]]
        call = cloudformation.update_stack if is_there else cloudformation.create_stack
        call(StackName=name, TemplateBody=body, Parameters=parameter_list)
        return self.wait_until_settled(name)

    def wait_until_settled(self, name: str) -> Json:
        """Wait until no stack operation is running; return the stack's description."""
        self.account.cloudformation.join()
        stack: Json = self.get_client("cloudformation").describe_stacks(StackName=name)["Stacks"][0]
        return stack

    def remove(self, name: str) -> Json:
        """Delete the stack; return its last description."""
        cloudformation = self.get_client("cloudformation")
        arn = cloudformation.describe_stacks(StackName=name)["Stacks"][0]["StackId"]
        cloudformation.delete_stack(StackName=name)
        return self.wait_until_settled(arn)

    def list_events(self, name: str, *, logical_id: str = "") -> list[str]:
        """Return the events of the stack, oldest first, as ``Queue CREATE_COMPLETE``."""
        pages = self.get_client("cloudformation").get_paginator("describe_stack_events").paginate(StackName=name)
        events = [event for page in pages for event in page["StackEvents"]]
        return [
            f"{event['LogicalResourceId']} {event['ResourceStatus']}"
            for event in reversed(events)
            if logical_id in ("", event["LogicalResourceId"])
        ]

    def get_status_reasons(self, name: str) -> str:
        """Return the status reasons of the stack's events, one per line."""
        events = self.get_client("cloudformation").describe_stack_events(StackName=name)["StackEvents"]
        return "\n".join(event.get("ResourceStatusReason", "") for event in events)

    def get_physical_id(self, name: str, logical_id: str) -> str:
        detail = self.get_client("cloudformation").describe_stack_resource(StackName=name, LogicalResourceId=logical_id)
        return str(detail["StackResourceDetail"]["PhysicalResourceId"])

    def upload_assets(self, template: Json) -> Json:
        """Upload objects to the asset locations of *template*, as `cdk deploy` does; return *template*."""
        s3, bucket = self.get_client("s3"), f"cdk-hnb659fds-assets-{self.account.account_id}-us-east-1"
        s3.create_bucket(Bucket=bucket)
        for resource in template["Resources"].values():
            for code_location in (
                resource.get("Properties", {}).get("Code", {}),
                resource.get("Properties", {}).get("Content", {}),
            ):
                if "S3Key" in code_location:
                    s3.put_object(Bucket=bucket, Key=code_location["S3Key"], Body=b"zip")
        self.get_client("ssm").put_parameter(Name="/cdk-bootstrap/hnb659fds/version", Value="33", Type="String")
        return template

    def deploy_joiner(self, **settings: str) -> None:
        """Deploy Joiner's stack with *settings*, whose names have ``_`` instead of ``-``; handlers are never called."""
        self.respond = lambda request: {"PhysicalResourceId": request["LogicalResourceId"], "Data": {"Told": "ok"}}
        settings_by_name = {name.replace("_", "-"): value for name, value in settings.items()}
        template = self.upload_assets(synthesize_template(settings=settings_by_name))
        sections = {key: value for key, value in template.items() if key not in ("Resources", "Rules")}
        stack = self.deploy(JOINER_STACK, template["Resources"], **sections)
        assert stack["StackStatus"] == "CREATE_COMPLETE", self.get_status_reasons(JOINER_STACK)

    def find_function_name(self, function: str) -> str:
        """Return the name that CloudFormation gave to *function* of Joiner."""
        functions = self.get_client("lambda").list_functions()["Functions"]
        return str(next(item["FunctionName"] for item in functions if f".{function}." in item["Handler"]))

    def issue_function_credentials(self, function: str) -> Credentials:
        """Issue the credentials of the code of *function* of Joiner."""
        deployed = self.account.get_function(self.find_function_name(function))
        return self.account.issue_role_credentials(deployed.role_arn, function, function_arn=deployed.arn)

    def create_role(self, name: str, *statements: Json) -> str:
        """Create a role whose policy consists of *statements*; return its ARN."""
        iam = self.get_client("iam")
        arn = str(iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(TRUST))["Role"]["Arn"])
        if statements:
            document = json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
            iam.put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=document)
        return arn

    def _run(self, name: str, qualifier: str, payload: bytes) -> InvocationResult:
        event = json.loads(payload)
        if "ResponseURL" in event:
            self.custom_resource_requests.append(event)
            response = self.respond(event)
            if response is not None:
                self.send_response(event, response)
            return InvocationResult(payload=b"null")
        return InvocationResult(payload=json.dumps({"name": name, "qualifier": qualifier, "said": event}).encode())

    def _call(self, name: str, qualifier: str, payload: bytes) -> None:
        self._run(name, qualifier, payload)

    def send_response(self, request: Json, response: Json) -> int:
        """Send a custom resource's response; return the HTTP status."""
        identifiers = {key: request[key] for key in ("StackId", "RequestId", "LogicalResourceId")}
        body = json.dumps({"Status": "SUCCESS", "PhysicalResourceId": "thing", **identifiers, **response}).encode()
        return put_body(request["ResponseURL"], body)


def put_body(url: str, body: bytes) -> int:
    """Send *body* to *url* with PUT; return the HTTP status."""
    with PoolManager() as pool:
        return pool.request("PUT", url, body=body, headers={"Content-Type": ""}).status


def get_error_code(call: Callable[[], object]) -> str:
    """Return the code of the ClientError that *call* raises, empty if it raises none."""
    try:
        call()
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return ""
