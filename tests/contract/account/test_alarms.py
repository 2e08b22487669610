"""The stack's alarm rolls back a new version that fails: real function processes, on a virtual clock."""

import io
import json
import re
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from threading import Condition, get_ident

import pytest

from sim.lambda_processes.account_runtime import AccountRuntime
from sim.lambda_processes.sandboxes import SandboxHost
from sim.lambda_runtime.stack_template.synthesis import synthesize_template
from sim.time.virtual_clock import DEFAULT_START_TIME, Clock
from tests.contract.account_stage import Stage

pytestmark = pytest.mark.loopback

ONE_MINUTE = timedelta(minutes=1)
ALARM_CHECK_INTERVAL = ONE_MINUTE / 4
"""Interval at which CodeDeploy checks the alarm."""
OLD_REQUEST_PREFIX, NEW_REQUEST_PREFIX = "00000000", "ffffffff"
"""Prefixes of request ids: the prefix decides which of the alias's two versions takes a call."""
CANARY_FUNCTIONS = ("catalog", "disrupt", "interrupt", "lifecycle", "provision", "watch")
"""Functions that CodeDeploy moves, each in a deployment of its own; all deployments begin together."""
STACK_NAME = "joiner-demo"
HANDLER_BODIES = {"good": "return {}", "bad": "raise RuntimeError('a bug')"}


class Canary:
    """Joiner's stack in an account with a virtual clock, which advances once all deployments wait for it."""

    def __init__(self, stage: Stage, running: AccountRuntime, clock: Clock) -> None:
        """Prepare the account and deploy nothing."""
        self.stage, self.running, self.clock = stage, running, clock
        self._due: dict[int, datetime] = {}
        self._before = "1"
        self._changed = Condition()
        stage.account.sleep = self._pause
        self._template = synthesize_template()
        stage.get_client("s3").create_bucket(Bucket="cdk-hnb659fds-assets-123456789012-us-east-1")
        stage.get_client("ssm").put_parameter(Name="/cdk-bootstrap/hnb659fds/version", Value="33", Type="String")

    def deploy(self, release: int, body_name: str) -> None:
        """Start to deploy *release*, whose handlers have the body called *body_name*."""
        text = re.sub(r"(CurrentVersion)[0-9A-Fa-f]{8}", rf"\g<1>{release:08d}", json.dumps(self._template))
        template = json.loads(text)
        for resource in template["Resources"].values():
            for code_location in (
                resource.get("Properties", {}).get("Code", {}),
                resource.get("Properties", {}).get("Content", {}),
            ):
                if "S3Key" in code_location:
                    code_location["S3Key"] = f"{release}.zip"
        bucket = "cdk-hnb659fds-assets-123456789012-us-east-1"
        self.stage.get_client("s3").put_object(
            Bucket=bucket, Key=f"{release}.zip", Body=build_code_zip(release, body_name)
        )
        cloudformation = self.stage.get_client("cloudformation")
        call = cloudformation.create_stack if release == 1 else cloudformation.update_stack
        call(StackName=STACK_NAME, TemplateBody=json.dumps(template))

    def watch(self, bad_calls: int) -> timedelta:
        """Call `lifecycle` in both versions until the deployment is over, at most *bad_calls* times in the new one.

        Return how long the deployment took by the clock.
        """
        started_at = self.clock.get_time()
        while self._wait_for_deployments():
            assert self.call(OLD_REQUEST_PREFIX) == (self._before, "success")
            if bad_calls:
                assert self.call(NEW_REQUEST_PREFIX)[1] == "error"
                bad_calls -= 1
            self.stage.account.cloudwatch.tick()
            with self._changed:
                self.clock.advance(ALARM_CHECK_INTERVAL)
                self._changed.notify_all()
        return self.clock.get_time() - started_at

    def call(self, request_prefix: str) -> tuple[str, str]:
        """Call `lifecycle` by its alias; return the version and the outcome.

        The request id starts with *request_prefix*, which decides which version takes the call.
        """
        call = self.running.service.invoke(
            self.get_function_name("lifecycle"),
            "live",
            b"{}",
            request_id=f"{request_prefix}-{len(self.running.invocations)}",
        )
        return call.version, call.result.status

    def get_function_name(self, function: str) -> str:
        """Return the name that CloudFormation gave to *function*."""
        return next(
            self.stage.get_physical_id(STACK_NAME, key)
            for key, resource in self._template["Resources"].items()
            if resource["Type"] == "AWS::Lambda::Function" and f".{function}." in resource["Properties"]["Handler"]
        )

    def list_live_versions(self) -> set[str]:
        """Return the versions that the aliases point to."""
        versions = set()
        for function in CANARY_FUNCTIONS:
            alias = self.stage.get_client("lambda").get_alias(
                FunctionName=self.get_function_name(function), Name="live"
            )
            assert not alias.get("RoutingConfig", {}).get("AdditionalVersionWeights")
            versions.add(alias["FunctionVersion"])
        return versions

    def _pause(self, seconds: float) -> None:
        """Block a deployment until the clock has advanced by *seconds*."""
        with self._changed:
            due = self._due[get_ident()] = self.clock.get_time() + timedelta(seconds=seconds)
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self.clock.get_time() >= due, 1800)
            del self._due[get_ident()]

    def _wait_for_deployments(self) -> bool:
        """Wait until all deployments wait for the clock; return whether they do, False if they are over."""
        end = time.monotonic() + 1800
        while not self._is_over():
            assert time.monotonic() < end, self._due
            with self._changed:
                if self._changed.wait_for(self._is_every_deployment_waiting, 0.2):
                    return True
        return False

    def _is_every_deployment_waiting(self) -> bool:
        """Return whether all wait for a time in the future: a thread whose time has come may not have noticed yet."""
        return sum(due > self.clock.get_time() for due in self._due.values()) == len(CANARY_FUNCTIONS)

    def _is_over(self) -> bool:
        [stack] = self.stage.get_client("cloudformation").describe_stacks(StackName=STACK_NAME)["Stacks"]
        return bool(stack["StackStatus"].endswith("_COMPLETE"))


def build_code_zip(release: int, body_name: str) -> bytes:
    """Return the zip file of all handlers."""
    source = f"def handler(event, context):\n    {HANDLER_BODIES[body_name]}\n# {release}\n"
    files = {"functions/__init__.py": ""}
    for name in (*CANARY_FUNCTIONS, "installer"):
        files |= {f"functions/{name}/__init__.py": "", f"functions/{name}/handler.py": source}
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return body.getvalue()


@pytest.fixture
def canary(tmp_path: Path) -> Iterator[Canary]:
    clock = Clock(DEFAULT_START_TIME)
    stage = Stage(clock, ONE_MINUTE)
    stage.respond = lambda request: {"PhysicalResourceId": request["LogicalResourceId"], "Data": {"Told": "ok"}}
    with ExitStack() as stack:
        account = stack.enter_context(stage.account)
        machine = SandboxHost(
            python=sys.executable,
            libraries=tmp_path,
            folder=tmp_path,
            region=account.region,
            extra_variables={"AWS_ENDPOINT_URL": account.url},
        )
        running = AccountRuntime(account, machine, clock.get_time, owner=account.account_id)
        stack.push(running)  # not entered: nothing but the test invokes a function
        yield Canary(stage, running, clock)
        assert running.list_problems() == []


def get_alarm_state(canary: Canary) -> str:
    [alarm] = [
        metric_alarm
        for metric_alarm in canary.stage.get_client("cloudwatch").describe_alarms()["MetricAlarms"]
        if "NewVersionErrors" in metric_alarm["AlarmName"]
    ]
    return str(alarm["StateValue"])


def test_alarm_rolls_back_a_failing_new_version_in_its_third_minute(canary: Canary) -> None:
    canary.deploy(1, "good")
    canary.stage.wait_until_settled(STACK_NAME)
    assert canary.list_live_versions() == {"1"}

    canary.deploy(2, "bad")
    took = canary.watch(bad_calls=100)

    assert canary.stage.wait_until_settled(STACK_NAME)["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert took == 2 * ONE_MINUTE + ALARM_CHECK_INTERVAL
    assert "NewVersionErrors" in canary.stage.get_status_reasons(STACK_NAME)
    assert canary.list_live_versions() == {"1"}
    assert canary.call(NEW_REQUEST_PREFIX) == ("1", "success")

    # After a rollback a fixed version can be deployed; errors in one minute of five may have another cause.
    canary.deploy(3, "bad")
    took = canary.watch(bad_calls=3)

    assert canary.stage.wait_until_settled(STACK_NAME)["StackStatus"] == "UPDATE_COMPLETE"
    assert took == 5 * ONE_MINUTE
    assert canary.list_live_versions() == {"3"}
    assert get_alarm_state(canary) == "OK"
