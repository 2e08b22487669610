"""An account in which tests deploy templates, and see what came of it."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from botocore.exceptions import ClientError
from urllib3 import PoolManager

from sim.account.account import Account
from sim.account.contract import Invocation
from sim.clock import Clock
from sim.cloud.cloud import Cloud
from sim.realtime import RealTimeClock

Json = dict[str, Any]
Answering = Callable[[Json], Json | None]
TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"},
        {"Effect": "Allow", "Principal": {"AWS": "123456789012"}, "Action": "sts:AssumeRole"},
    ],
}


class Stage:
    """One account, and a function that answers every custom resource as a test wants it.

    When it has been asked it has answered: whoever waits then finds the answer or, however slow the machine, silence.
    """

    def __init__(self, clock: Clock | None = None, minute: timedelta = timedelta()) -> None:
        """Start nothing yet; without *clock* time is real, and a *minute* of a deployment lasts no time."""
        clock = clock or RealTimeClock(lambda: datetime.now(UTC))
        cloud = Cloud(clock, cluster="demo", describe_lag=timedelta(0))
        self.account = Account(cloud, clock, minute=minute)
        self.in_threads = self.account.dispatcher
        """Calls as the account has them made: nobody waits for their end."""
        self.account.invoker, self.account.dispatcher = self._run, self._call
        self.asked: list[Json] = []
        self.answer: Answering = lambda _: {}
        self._names = count(1)

    def client(self, service: str) -> Any:
        return self.account.client(service)

    def name(self) -> str:
        """Answer a name that no other stack has."""
        return f"stack{next(self._names)}"

    def deploy(self, name: str, resources: Json, *, parameters: Json | None = None, **template: Any) -> Json:
        """Make or change the stack, and answer it when that is over."""
        cloudformation = self.client("cloudformation")
        given = [{"ParameterKey": key, "ParameterValue": value} for key, value in (parameters or {}).items()]
        body = json.dumps({"Resources": resources, **template})
        is_there = name in [one["StackName"] for one in cloudformation.describe_stacks()["Stacks"]]
        call = cloudformation.update_stack if is_there else cloudformation.create_stack
        call(StackName=name, TemplateBody=body, Parameters=given)
        return self.settled(name)

    def settled(self, name: str) -> Json:
        """Wait until nothing is done any more; answer the stack."""
        self.account.stacks.join()
        found: Json = self.client("cloudformation").describe_stacks(StackName=name)["Stacks"][0]
        return found

    def remove(self, name: str) -> Json:
        """Delete the stack; answer what is left of it."""
        cloudformation = self.client("cloudformation")
        arn = cloudformation.describe_stacks(StackName=name)["Stacks"][0]["StackId"]
        cloudformation.delete_stack(StackName=name)
        return self.settled(arn)

    def happened(self, name: str, *, to: str = "") -> list[str]:
        """Answer what happened to the stack, oldest first, as ``Queue CREATE_COMPLETE``."""
        pages = self.client("cloudformation").get_paginator("describe_stack_events").paginate(StackName=name)
        found = [one for page in pages for one in page["StackEvents"]]
        return [
            f"{one['LogicalResourceId']} {one['ResourceStatus']}"
            for one in reversed(found)
            if to in ("", one["LogicalResourceId"])
        ]

    def why(self, name: str) -> str:
        """Answer the reasons that were given."""
        events = self.client("cloudformation").describe_stack_events(StackName=name)["StackEvents"]
        return "\n".join(one.get("ResourceStatusReason", "") for one in events)

    def physical(self, name: str, logical_id: str) -> str:
        found = self.client("cloudformation").describe_stack_resource(StackName=name, LogicalResourceId=logical_id)
        return str(found["StackResourceDetail"]["PhysicalResourceId"])

    def role(self, name: str, *statements: Json) -> str:
        """Make a role that may what *statements* say; answer its ARN."""
        iam = self.client("iam")
        arn = str(iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(TRUST))["Role"]["Arn"])
        if statements:
            document = json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
            iam.put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=document)
        return arn

    def _run(self, name: str, qualifier: str, payload: bytes) -> Invocation:
        said = json.loads(payload)
        if "ResponseURL" in said:
            self.asked.append(said)
            told = self.answer(said)
            if told is not None:
                self.put(said, told)
            return Invocation(payload=b"null")
        return Invocation(payload=json.dumps({"name": name, "qualifier": qualifier, "said": said}).encode())

    def _call(self, name: str, qualifier: str, payload: bytes) -> None:
        self._run(name, qualifier, payload)

    def put(self, said: Json, told: Json) -> int:
        """Answer a custom resource; answers the HTTP status."""
        same = {key: said[key] for key in ("StackId", "RequestId", "LogicalResourceId")}
        body = json.dumps({"Status": "SUCCESS", "PhysicalResourceId": "thing", **same, **told}).encode()
        return put(said["ResponseURL"], body)


def put(url: str, body: bytes) -> int:
    """Answer the HTTP status."""
    with PoolManager() as pool:
        return pool.request("PUT", url, body=body, headers={"Content-Type": ""}).status


def code_of(call: Callable[[], object]) -> str:
    """Answer the code of the refusal that *call* meets, empty if it meets none."""
    try:
        call()
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return ""
