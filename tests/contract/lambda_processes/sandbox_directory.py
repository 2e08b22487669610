"""Functions of a few lines for sandboxes, and the account's description of them."""

import io
import os
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec

from sim.aws_account.function_runtime import Credentials, DeployedFunction
from sim.lambda_processes.lambda_service import LambdaService, QueuedInvocation
from sim.lambda_processes.sandboxes import SandboxHost, SandboxInvocation, SandboxPool
from sim.lambda_processes.workers import WorkerPool
from sim.time.virtual_clock import Clock

ARN: Final = "arn:aws:lambda:us-east-1:111122223333:function:"
CODE: Final = """
import json, os, sys, time

print("this module is read")
count = 0

def handler(event, context):
    global count
    count += 1
    print("said:", event.get("say", "nothing"))
    match event.get("do", ""):
        case "raise": raise ValueError("as asked")
        case "sleep": time.sleep(3600)
        case "wait":
            while not os.path.exists(event["for"]): time.sleep(0.02)
        case "eat": bytearray(event["megabytes"] << 20)
        case "exit": os._exit(event["code"])
        case "environ": return dict(os.environ)
        case "context": return {
            "id": context.aws_request_id, "arn": context.invoked_function_arn, "version": context.function_version,
            "left": context.get_remaining_time_in_millis(), "stream": context.log_stream_name,
        }
        case "fail": return {"batchItemFailures": [
            {"itemIdentifier": one["messageId"]} for one in event["Records"] if one["body"].startswith("bad")
        ]}
    with open(os.environ["SEEN"], "a") as seen:
        seen.write(json.dumps([event, context.function_version]) + "\\n")
    return {"count": count, "pid": os.getpid()}
"""


def zip_code(code: str = CODE) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        archive.writestr("tiny.py", code)
    return body.getvalue()


class FunctionDirectory:
    """A directory with one function, `tiny`, in all its versions, and the alias `live`."""

    def __init__(self, folder: Path) -> None:
        """Let the function record its calls in *folder*."""
        self.folder = folder
        self.versions: dict[str, DeployedFunction] = {"$LATEST": self.build_function()}
        self.weights: dict[str, float] = {}
        self.live = "$LATEST"

    def build_function(self, **changed: Any) -> DeployedFunction:
        code = changed.get("code", zip_code())
        function = DeployedFunction(
            arn=f"{ARN}tiny",
            name="tiny",
            version="$LATEST",
            handler="tiny.handler",
            environment={"SEEN": str(self.folder / "seen"), "SAID": "yes"},
            memory_mb=128,
            timeout_seconds=600,
            role_arn="arn:aws:iam::111122223333:role/tiny",
            log_group="/tiny",
            code_sha256=sha256(code).hexdigest(),
            code=code,
        )
        return msgspec.structs.replace(function, **changed)

    def publish(self, version: str, **changed: Any) -> None:
        self.versions[version] = self.build_function(version=version, **changed)

    def get_function(self, name: str, qualifier: str = "", roll: float = 0.0) -> DeployedFunction:
        if name != "tiny":
            raise LookupError(name)
        return self.versions[self._choose_version(roll) if qualifier == "live" else qualifier or "$LATEST"]

    def _choose_version(self, roll: float) -> str:
        for version, weight in self.weights.items():
            if roll < weight:
                return version
            roll -= weight
        return self.live

    def list_seen_calls(self) -> list[tuple[dict[str, Any], str]]:
        """Return events and versions of the calls that succeeded, oldest first."""
        path = self.folder / "seen"
        return [tuple(msgspec.json.decode(line)) for line in path.read_text().splitlines()] if path.exists() else []


class TinyLambda:
    """A function directory, its Lambda service, and the invocations of both."""

    def __init__(self, folder: Path, slowness: float = 1.0) -> None:
        """Keep everything in *folder*; calls may take *slowness* times as long as in Lambda."""
        self.account = FunctionDirectory(folder)
        self.calls: list[SandboxInvocation] = []
        self.discarded_invocations: list[tuple[QueuedInvocation, str]] = []
        machine = SandboxHost(
            python=sys.executable,
            libraries=folder,
            folder=folder,
            region="us-east-1",
            extra_variables={"AWS_ENDPOINT_URL": "http://127.0.0.1:1"},
            timeout_factor=slowness,
        )
        self.workers = WorkerPool()
        self.sandboxes = SandboxPool(
            machine,
            clock=get_now,
            credentials_of=lambda function: Credentials(
                access_key=function.role_arn[-4:], secret_key="", session_token=""
            ),
            on_invocation=lambda _function, _stream, call: self.calls.append(call),
        )
        self.clock = Clock()
        self.service = LambdaService(
            self.account,
            self.sandboxes,
            self.clock.get_time,
            self.workers,
            on_discard=lambda _function, invocation, reason: self.discarded_invocations.append((invocation, reason)),
        )

    def wait_until(self, condition: Callable[[], bool], *, tick: bool = True) -> None:
        """Wait until *condition* holds.

        With *tick*, meanwhile start due calls, and advance the clock by a minute whenever no call runs.
        """
        end = time.monotonic() + 600
        while not condition():
            assert time.monotonic() < end, [call.log_lines for call in self.calls]
            if tick:
                self.service.tick()
                if not self.sandboxes.count_running():
                    self.clock.advance(timedelta(minutes=1))
            time.sleep(0.02)

    def invoke(self, qualifier: str = "", **event: Any) -> SandboxInvocation:
        return self.service.invoke("tiny", qualifier, msgspec.json.encode(event))

    def invoke_successfully(self, qualifier: str = "", **event: Any) -> dict[str, Any]:
        call = self.invoke(qualifier, **event)
        assert call.result.status == "success", call
        response: dict[str, Any] = msgspec.json.decode(call.result.payload)
        return response


@contextmanager
def open_tiny_lambda(folder: Path, slowness: float = 1.0) -> Iterator[TinyLambda]:
    tiny_lambda = TinyLambda(folder, slowness)
    try:
        yield tiny_lambda
    finally:
        tiny_lambda.sandboxes.shut_down()
        tiny_lambda.workers.shut_down()
    assert not tiny_lambda.workers.errors


def get_now() -> datetime:
    return datetime.now(UTC)


def is_process_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
