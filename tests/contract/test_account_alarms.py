"""The alarm of our own stack takes a new version back that fails: by what its processes did, by a clock that is set."""

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

from sim.clock import START, Clock
from sim.lambdas.template import synthesised
from sim.sandboxes.running import Running
from sim.sandboxes.sandboxes import Machine
from tests.contract.account_stage import Stage

pytestmark = pytest.mark.loopback

MINUTE = timedelta(minutes=1)
LOOK = MINUTE / 4
"""Between two looks of CodeDeploy at the alarm."""
OLD, NEW = "00000000", "ffffffff"
"""How it may fall which of two versions takes a call: it is told by the beginning of its request's id."""
MOVED = ("catalog", "disrupt", "interrupt", "lifecycle", "provision")
"""By CodeDeploy, each in a deployment of its own; all begin together."""
NAME = "joiner-demo"
SAYS = {"good": "return {}", "bad": "raise RuntimeError('a bug')"}


class Canary:
    """Our stack in an account whose clock is set: it goes on once everybody who watches waits for that."""

    def __init__(self, stage: Stage, running: Running, clock: Clock) -> None:
        """Deploy nothing yet."""
        self.stage, self.running, self.clock = stage, running, clock
        self._due: dict[int, datetime] = {}
        self._before = "1"
        self._changed = Condition()
        stage.account.pause = self._pause
        self._template = synthesised()
        stage.client("s3").create_bucket(Bucket="cdk-hnb659fds-assets-123456789012-us-east-1")
        stage.client("ssm").put_parameter(Name="/cdk-bootstrap/hnb659fds/version", Value="33", Type="String")

    def deploy(self, release: int, says: str) -> None:
        """Begin to deploy *release*, whose handlers do what *says* says."""
        text = re.sub(r"(CurrentVersion)[0-9A-Fa-f]{8}", rf"\g<1>{release:08d}", json.dumps(self._template))
        template = json.loads(text)
        for one in template["Resources"].values():
            for said in (one.get("Properties", {}).get("Code", {}), one.get("Properties", {}).get("Content", {})):
                if "S3Key" in said:
                    said["S3Key"] = f"{release}.zip"
        bucket = "cdk-hnb659fds-assets-123456789012-us-east-1"
        self.stage.client("s3").put_object(Bucket=bucket, Key=f"{release}.zip", Body=code(release, says))
        cloudformation = self.stage.client("cloudformation")
        call = cloudformation.create_stack if release == 1 else cloudformation.update_stack
        call(StackName=NAME, TemplateBody=json.dumps(template))

    def watch(self, bad_calls: int) -> timedelta:
        """Call `lifecycle` in both versions until the deployment is over, in the new one so many times at most.

        Answers how long that took by the clock.
        """
        begun = self.clock.now()
        while self._waits():
            assert self.call(OLD) == (self._before, "success")
            if bad_calls:
                assert self.call(NEW)[1] == "error"
                bad_calls -= 1
            self.stage.account.watch.look()
            with self._changed:
                self.clock.advance(LOOK)
                self._changed.notify_all()
        return self.clock.now() - begun

    def call(self, drawn: str) -> tuple[str, str]:
        """Call `lifecycle` by its alias, as *drawn* falls; answer the version and how that ended."""
        call = self.running.service.invoke(
            self.name("lifecycle"), "live", b"{}", request_id=f"{drawn}-{len(self.running.calls)}"
        )
        return call.version, call.how.status

    def name(self, function: str) -> str:
        """Answer what CloudFormation has called *function*."""
        return next(
            self.stage.physical(NAME, key)
            for key, one in self._template["Resources"].items()
            if one["Type"] == "AWS::Lambda::Function" and f".{function}." in one["Properties"]["Handler"]
        )

    def leads(self) -> set[str]:
        """Answer the versions that the aliases lead to."""
        found = set()
        for one in MOVED:
            said = self.stage.client("lambda").get_alias(FunctionName=self.name(one), Name="live")
            assert not said.get("RoutingConfig", {}).get("AdditionalVersionWeights")
            found.add(said["FunctionVersion"])
        return found

    def _pause(self, seconds: float) -> None:
        """Be a deployment that waits until the clock has gone on."""
        with self._changed:
            due = self._due[get_ident()] = self.clock.now() + timedelta(seconds=seconds)
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self.clock.now() >= due, 1800)
            del self._due[get_ident()]

    def _waits(self) -> bool:
        """Wait until all deployments wait for the clock, and answer that they do; False: they are over."""
        end = time.monotonic() + 1800
        while not self._is_over():
            assert time.monotonic() < end, self._due
            with self._changed:
                if self._changed.wait_for(self._all_wait, 0.2):
                    return True
        return False

    def _all_wait(self) -> bool:
        """Whether all wait for a later time than it is: whoever's time has come may not have noticed yet."""
        return sum(due > self.clock.now() for due in self._due.values()) == len(MOVED)

    def _is_over(self) -> bool:
        [stack] = self.stage.client("cloudformation").describe_stacks(StackName=NAME)["Stacks"]
        return bool(stack["StackStatus"].endswith("_COMPLETE"))


def code(release: int, says: str) -> bytes:
    """Answer the zip file of all handlers."""
    source = f"def handler(event, context):\n    {SAYS[says]}\n# {release}\n"
    files = {"functions/__init__.py": ""}
    for name in (*MOVED, "installer"):
        files |= {f"functions/{name}/__init__.py": "", f"functions/{name}/handler.py": source}
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return body.getvalue()


@pytest.fixture
def canary(tmp_path: Path) -> Iterator[Canary]:
    clock = Clock(START)
    stage = Stage(clock, MINUTE)
    stage.answer = lambda said: {"PhysicalResourceId": said["LogicalResourceId"], "Data": {"Told": "ok"}}
    with ExitStack() as stack:
        account = stack.enter_context(stage.account)
        machine = Machine(
            python=sys.executable,
            libraries=tmp_path,
            folder=tmp_path,
            region=account.region,
            further={"AWS_ENDPOINT_URL": account.url},
        )
        running = Running(account, machine, clock.now, owner=account.number)
        stack.push(running)  # which is not entered: nothing but the test wakes a function
        yield Canary(stage, running, clock)
        assert running.problems() == []


def state(canary: Canary) -> str:
    [alarm] = [
        one
        for one in canary.stage.client("cloudwatch").describe_alarms()["MetricAlarms"]
        if "NewVersionErrors" in one["AlarmName"]
    ]
    return str(alarm["StateValue"])


def test_a_new_version_that_fails_is_taken_back_by_the_alarm_in_its_third_minute(canary: Canary) -> None:
    canary.deploy(1, "good")
    canary.stage.settled(NAME)
    assert canary.leads() == {"1"}

    canary.deploy(2, "bad")
    took = canary.watch(bad_calls=100)

    assert canary.stage.settled(NAME)["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert took == 2 * MINUTE + LOOK
    assert "NewVersionErrors" in canary.stage.why(NAME)
    assert canary.leads() == {"1"}
    assert canary.call(NEW) == ("1", "success")

    # Who was taken back can deploy what is mended; and what fails in one minute of five may be somebody else's fault.
    canary.deploy(3, "bad")
    took = canary.watch(bad_calls=3)

    assert canary.stage.settled(NAME)["StackStatus"] == "UPDATE_COMPLETE"
    assert took == 5 * MINUTE
    assert canary.leads() == {"3"}
    assert state(canary) == "OK"
