"""Traces of a cycle as the X-Ray daemon of Lambda receives them: the deployed adapter in a process of its own."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from socket import AF_INET, SOCK_DGRAM, socket
from typing import Any

import pytest

from sim.aws_rules.trace_documents import read_datagram

TRACE_ID = "1-5759e988-bd862e3fe1be46a994272793"
CYCLE_SCRIPT = """
from time import sleep
from shared.apply.parallel_calls import run_in_threads
from shared.aws.tracing import build_open_segment
from shared.aws.clients import Clients
from shared.cycles import provision
from tests.support.actions_world import Outside
import msgspec

world = msgspec.structs.replace(Outside().build_world(), open_segment=build_open_segment())
with world.trace("clients"):
    try:
        Clients("us-east-1", endpoint_url="http://127.0.0.1:9").get_single_attempt_client("sqs").list_queues()
    except Exception:
        pass
with world.open_segment("GET /api/v1/pods [a]", {}, is_remote=True):
    pass
provision.run_provision(world, "schedule")
with world.trace("threads"):
    def call(position):
        with world.open_segment(f"call {position}", {}, is_remote=True):
            sleep(0.01)
    run_in_threads([(position,) for position in range(8)], call, 4)
    with world.trace("afterwards"):
        pass
"""


def iterate_segments(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield document
    for subsegment in document.get("subsegments", ()):
        yield from iterate_segments(subsegment)


def receive_documents(daemon: socket) -> list[dict[str, Any]]:
    documents = []
    daemon.settimeout(0)
    while True:
        try:
            documents.append(read_datagram(daemon.recv(65_536)))
        except BlockingIOError:
            return documents


@pytest.fixture(scope="module")
def segments() -> dict[str, dict[str, Any]]:
    """All segments of a process with an AWS call, a Kubernetes call and a cycle, by name."""
    with socket(AF_INET, SOCK_DGRAM) as daemon:
        daemon.bind(("127.0.0.1", 0))
        variables = {
            "AWS_ACCESS_KEY_ID": "nobody",
            "AWS_SECRET_ACCESS_KEY": "nothing",
            "AWS_XRAY_DAEMON_ADDRESS": f"127.0.0.1:{daemon.getsockname()[1]}",
            "LAMBDA_TASK_ROOT": str(Path.cwd()),
            "PYTHONPATH": str(Path.cwd()),
            "_X_AMZN_TRACE_ID": f"Root={TRACE_ID};Parent=53995c3f42cd8ad8;Sampled=1",
        }
        subprocess.run([sys.executable, "-c", CYCLE_SCRIPT], check=True, env=variables, capture_output=True)
        documents = receive_documents(daemon)
    assert {document["trace_id"] for document in documents} == {TRACE_ID}
    return {segment["name"]: segment for document in documents for segment in iterate_segments(document)}


def test_a_cycle_is_a_segment_with_annotations_and_its_stages(segments: dict[str, dict[str, Any]]) -> None:
    cycle = segments["provision"]
    assert cycle["annotations"].keys() == {"cluster", "cycle", "function"}
    assert cycle["annotations"]["function"] == "provision"
    assert {segments[name]["parent_id"] for name in ("take", "report")} == {cycle["id"]}


def test_calls_to_aws_and_kubernetes_are_segments(segments: dict[str, dict[str, Any]]) -> None:
    assert segments["sqs"]["namespace"] == "aws"
    assert segments["sqs"]["aws"]["operation"] == "ListQueues"
    assert segments["GET /api/v1/pods _a_"]["namespace"] == "remote"


def test_calls_in_threads_are_segments_within_that_of_the_caller(segments: dict[str, dict[str, Any]]) -> None:
    names = [f"call {position}" for position in range(8)] + ["afterwards"]
    assert {segments[name]["parent_id"] for name in names} == {segments["threads"]["id"]}
    assert {segments[name]["end_time"] > segments[name]["start_time"] for name in names} == {True}


def test_without_the_setting_no_segment_is_opened_and_the_library_is_not_imported() -> None:
    script = "import sys; from functions.provision import handler; print(*(n for n in sys.modules if 'xray' in n))"
    variables = {"PYTHONPATH": str(Path.cwd())}
    process = subprocess.run([sys.executable, "-c", script], check=True, env=variables, capture_output=True, text=True)
    assert process.stdout.strip() == ""


@pytest.mark.parametrize(
    ("datagram", "reason"),
    [
        (b'{"format": "json"}\n{}', "header"),
        (b'{"format": "json", "version": 1}\n{"name": "a|b", "id": "1"}', "trace_id, name 'a|b', id of"),
    ],
)
def test_documents_that_xray_rejects_are_reported(datagram: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match="X-Ray rejects") as error:
        read_datagram(datagram)
    assert reason in str(error.value)
