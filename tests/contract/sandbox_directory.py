"""Functions out of a few lines each, for sandboxes: what an account would know of them."""

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

from sim.account.contract import Credentials, Function
from sim.clock import Clock
from sim.sandboxes.sandboxes import Call, Machine, Sandboxes
from sim.sandboxes.service import LambdaService, Later
from sim.sandboxes.workers import Workers

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


def zipped(code: str = CODE) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        archive.writestr("tiny.py", code)
    return body.getvalue()


class Account:
    """A directory of one function, `tiny`, in all its versions, and of the alias `live`."""

    def __init__(self, folder: Path) -> None:
        """Let the function write what it saw into *folder*."""
        self.folder = folder
        self.versions: dict[str, Function] = {"$LATEST": self.made()}
        self.weights: dict[str, float] = {}
        self.live = "$LATEST"

    def made(self, **changed: Any) -> Function:
        code = changed.get("code", zipped())
        function = Function(
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
        self.versions[version] = self.made(version=version, **changed)

    def function(self, name: str, qualifier: str = "", roll: float = 0.0) -> Function:
        if name != "tiny":
            raise LookupError(name)
        return self.versions[self._rolled(roll) if qualifier == "live" else qualifier or "$LATEST"]

    def _rolled(self, roll: float) -> str:
        for version, weight in self.weights.items():
            if roll < weight:
                return version
            roll -= weight
        return self.live

    def seen(self) -> list[tuple[dict[str, Any], str]]:
        """Answer events and versions of the calls that ended well, oldest first."""
        path = self.folder / "seen"
        return [tuple(msgspec.json.decode(line)) for line in path.read_text().splitlines()] if path.exists() else []


class Place:
    """An account, its Lambda, and what both told."""

    def __init__(self, folder: Path, slowness: float = 1.0) -> None:
        """Keep everything in *folder*; calls may take *slowness* times as long as in Lambda."""
        self.account = Account(folder)
        self.calls: list[Call] = []
        self.given_up: list[tuple[Later, str]] = []
        machine = Machine(
            python=sys.executable,
            libraries=folder,
            folder=folder,
            region="us-east-1",
            further={"AWS_ENDPOINT_URL": "http://127.0.0.1:1"},
            slowness=slowness,
        )
        self.workers = Workers()
        self.sandboxes = Sandboxes(
            machine,
            clock=now,
            credentials_of=lambda one: Credentials(access_key=one.role_arn[-4:], secret_key="", session_token=""),
            on_call=lambda _function, _stream, call: self.calls.append(call),
        )
        self.clock = Clock()
        self.service = LambdaService(
            self.account,
            self.sandboxes,
            self.clock.now,
            self.workers,
            give_up=lambda _function, later, why: self.given_up.append((later, why)),
        )

    def until(self, holds: Callable[[], bool], *, look: bool = True) -> None:
        """Wait until *holds*; meanwhile *look* whether a call is due, and let a minute pass whenever none runs."""
        end = time.monotonic() + 600
        while not holds():
            assert time.monotonic() < end, [call.lines for call in self.calls]
            if look:
                self.service.look()
                if not self.sandboxes.running():
                    self.clock.advance(timedelta(minutes=1))
            time.sleep(0.02)

    def ask(self, qualifier: str = "", **event: Any) -> Call:
        return self.service.invoke("tiny", qualifier, msgspec.json.encode(event))

    def answered(self, qualifier: str = "", **event: Any) -> dict[str, Any]:
        call = self.ask(qualifier, **event)
        assert call.how.status == "success", call
        answer: dict[str, Any] = msgspec.json.decode(call.how.payload)
        return answer


@contextmanager
def place(folder: Path, slowness: float = 1.0) -> Iterator[Place]:
    made = Place(folder, slowness)
    try:
        yield made
    finally:
        made.sandboxes.end()
        made.workers.end()
    assert not made.workers.broken


def now() -> datetime:
    return datetime.now(UTC)


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
