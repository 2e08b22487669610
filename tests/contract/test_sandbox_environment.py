"""Functions as processes: what they are told, and what Lambda says of how they end."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sim.account.contract import Throttled
from tests.contract.sandbox_directory import ARN, CODE, Place, is_there, place, zipped

pytestmark = pytest.mark.loopback


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Place]:
    with place(tmp_path) as made:
        yield made


def test_the_first_call_starts_a_process_and_the_next_finds_it(tiny: Place) -> None:
    first, second = tiny.answered(), tiny.answered()
    assert [one.is_cold for one in tiny.calls] == [True, False]
    assert (first["count"], second["count"]) == (1, 2)
    assert first["pid"] == second["pid"] == tiny.sandboxes.pids()[0]
    assert tiny.calls[0].how.init
    assert tiny.calls[0].how.memory_mb > 0


def test_another_version_code_or_configuration_gets_a_process_of_its_own(tiny: Place) -> None:
    pids = [tiny.answered()["pid"]]
    for changed in ({"environment": {"SEEN": "/dev/null"}}, {"code": zipped(CODE + "# changed")}, {"memory_mb": 256}):
        tiny.account.versions["$LATEST"] = tiny.account.made(**changed)
        pids.append(tiny.answered()["pid"])
    assert len(set(pids)) == 4


def test_a_process_is_told_what_lambda_tells(tiny: Place) -> None:
    tiny.account.publish("3", log_format="JSON")
    said = tiny.answered("3", do="environ")
    assert said["SAID"] == "yes"
    assert said["AWS_LAMBDA_FUNCTION_VERSION"] == "3"
    assert said["AWS_ACCESS_KEY_ID"] == "tiny"
    assert said["AWS_ENDPOINT_URL"] == "http://127.0.0.1:1"
    assert said["AWS_LAMBDA_LOG_FORMAT"] == "JSON"
    assert said["AWS_LAMBDA_LOG_GROUP_NAME"] == "/tiny"
    assert "HOME" not in said, "nothing of whoever runs the tests"


def test_the_context_says_how_it_was_called(tiny: Place) -> None:
    tiny.account.publish("3")
    tiny.account.live = "3"
    said = tiny.answered("live", do="context")
    assert said["arn"] == f"{ARN}tiny:live"
    assert said["version"] == "3"
    assert 0 < said["left"] <= 600_000
    assert said["id"] == tiny.calls[0].request_id
    assert "[3]" in said["stream"]


def test_what_is_printed_is_in_the_log_between_what_lambda_says(tiny: Place) -> None:
    call = tiny.ask(say="hello")
    first, *_, end, report = call.lines
    assert first == f"START RequestId: {call.request_id} Version: $LATEST"
    assert call.lines[1:3] == ("this module is read", "said: hello")
    assert end == f"END RequestId: {call.request_id}"
    assert "Memory Size: 128 MB" in report
    assert "Init Duration" in report
    assert "Status" not in report
    assert call.tail().endswith(report + "\n")
    assert tiny.ask(say="again").lines[1:2] == ("said: again",), "of its own call alone"


def test_a_log_in_json_reports_in_json(tiny: Place) -> None:
    tiny.account.publish("3", log_format="JSON", timeout_seconds=1)
    call = tiny.ask("3", do="sleep")
    report = msgspec.json.decode(call.lines[-1])
    assert report["type"] == "platform.report"
    assert report["record"]["status"] == "timeout"
    assert report["record"]["metrics"]["durationMs"] >= 1000


def test_a_call_may_take_as_much_longer_as_the_machine_is_slower(tmp_path: Path) -> None:
    with place(tmp_path, slowness=0.5) as tiny:
        tiny.account.publish("3", timeout_seconds=2)
        call = tiny.ask("3", do="sleep")
    assert call.how.status == "timeout"
    assert b"after 1.00 seconds" in call.how.payload


def failures() -> list[Any]:
    bad = zipped("raise RuntimeError('at import')")
    return [
        pytest.param({}, {"do": "raise"}, "ValueError", "as asked", id="an exception"),
        pytest.param({"timeout_seconds": 1}, {"do": "sleep"}, "Sandbox.Timedout", "1.00 s", id="time"),
        pytest.param({}, {"do": "eat", "megabytes": 300}, "Runtime.ExitError", "signal: killed", id="memory"),
        pytest.param({}, {"do": "exit", "code": 3}, "Runtime.ExitError", "exit status 3", id="an exit"),
        pytest.param({}, {"do": "exit", "code": 0}, "Runtime.ExitError", "without providing a reason", id="a farewell"),
        pytest.param({"code": bad}, {}, "RuntimeError", "at import", id="the import"),
        pytest.param({"handler": "tiny.missing"}, {}, "Runtime.HandlerNotFound", "missing", id="no handler"),
    ]


@pytest.mark.parametrize(("changed", "event", "error_type", "message"), failures())
def test_a_failure_is_told_as_lambda_tells_it(
    tiny: Place, changed: dict[str, Any], event: dict[str, Any], error_type: str, message: str
) -> None:
    tiny.account.versions["$LATEST"] = tiny.account.made(**changed)
    answer = tiny.service.invoker("tiny", "", msgspec.json.encode(event))
    said = msgspec.json.decode(answer.payload)
    assert answer.error == "Unhandled"
    assert said["errorType"] == error_type
    assert message in said["errorMessage"]


def test_only_an_exception_leaves_the_process_in_use(tiny: Place) -> None:
    pid = tiny.answered()["pid"]
    assert tiny.ask(do="raise").how.status == "error"
    assert tiny.answered()["pid"] == pid
    tiny.ask(do="exit", code=1)
    assert tiny.answered()["pid"] != pid


def test_as_many_run_at_once_as_are_called_and_no_more_than_are_reserved(tiny: Place, tmp_path: Path) -> None:
    tiny.account.versions["$LATEST"] = tiny.account.made(reserved_concurrency=2)
    sign = tmp_path / "sign"
    with ThreadPoolExecutor(2) as callers:
        slow = [callers.submit(tiny.answered, **{"do": "wait", "for": str(sign)}) for _ in range(2)]
        tiny.until(lambda: tiny.sandboxes.running() == {"tiny": 2})
        try:
            with pytest.raises(Throttled):
                tiny.ask()
        finally:
            sign.touch()
        assert len({one.result()["pid"] for one in slow}) == 2
    assert tiny.answered()["pid"] in tiny.sandboxes.pids()


def test_at_the_end_nothing_runs(tmp_path: Path) -> None:
    with place(tmp_path) as made, ThreadPoolExecutor(1) as caller:
        idle = made.answered()["pid"]
        slow = caller.submit(made.ask, do="sleep")
        made.until(lambda: bool(made.sandboxes.running()))
        made.sandboxes.end()
        assert slow.result().how.status == "error"
        with pytest.raises(Throttled):
            made.ask()
    assert not is_there(idle)


def test_what_was_changed_or_deleted_is_not_kept(tiny: Place) -> None:
    pid = tiny.answered()["pid"]
    tiny.sandboxes.forget(frozenset({"other"}))
    assert is_there(pid)
    tiny.sandboxes.forget(frozenset({"tiny"}))
    assert not is_there(pid)
