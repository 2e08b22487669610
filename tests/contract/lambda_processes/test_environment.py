"""Functions as processes: their environment, and how Lambda reports the way they end."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sim.aws_account.function_runtime import Throttled
from tests.contract.lambda_processes.sandbox_directory import (
    ARN,
    CODE,
    TinyLambda,
    is_process_running,
    open_tiny_lambda,
    zip_code,
)

pytestmark = pytest.mark.loopback


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[TinyLambda]:
    with open_tiny_lambda(tmp_path) as tiny_lambda:
        yield tiny_lambda


def test_second_invocation_reuses_the_process_of_the_first(tiny: TinyLambda) -> None:
    first, second = tiny.invoke_successfully(), tiny.invoke_successfully()
    assert [call.is_cold for call in tiny.calls] == [True, False]
    assert (first["count"], second["count"]) == (1, 2)
    assert first["pid"] == second["pid"] == tiny.sandboxes.list_pids()[0]
    assert tiny.calls[0].result.init_duration
    assert tiny.calls[0].result.peak_memory_mb > 0


def test_changed_version_code_or_configuration_starts_a_new_process(tiny: TinyLambda) -> None:
    pids = [tiny.invoke_successfully()["pid"]]
    for changed in ({"environment": {"SEEN": "/dev/null"}}, {"code": zip_code(CODE + "# changed")}, {"memory_mb": 256}):
        tiny.account.versions["$LATEST"] = tiny.account.build_function(**changed)
        pids.append(tiny.invoke_successfully()["pid"])
    assert len(set(pids)) == 4


def test_process_environment_has_the_lambda_variables(tiny: TinyLambda) -> None:
    tiny.account.publish("3", log_format="JSON")
    variables = tiny.invoke_successfully("3", do="environ")
    assert variables["SAID"] == "yes"
    assert variables["AWS_LAMBDA_FUNCTION_VERSION"] == "3"
    assert variables["AWS_ACCESS_KEY_ID"] == "tiny"
    assert variables["AWS_ENDPOINT_URL"] == "http://127.0.0.1:1"
    assert variables["AWS_LAMBDA_LOG_FORMAT"] == "JSON"
    assert variables["AWS_LAMBDA_LOG_GROUP_NAME"] == "/tiny"
    assert "HOME" not in variables, "nothing of whoever runs the tests"


def test_context_has_the_invoked_arn_version_and_remaining_time(tiny: TinyLambda) -> None:
    tiny.account.publish("3")
    tiny.account.live = "3"
    context = tiny.invoke_successfully("live", do="context")
    assert context["arn"] == f"{ARN}tiny:live"
    assert context["version"] == "3"
    assert 0 < context["left"] <= 600_000
    assert context["id"] == tiny.calls[0].request_id
    assert "[3]" in context["stream"]


def test_printed_lines_are_logged_between_the_start_and_end_lines(tiny: TinyLambda) -> None:
    call = tiny.invoke(say="hello")
    first, *_, end, report = call.log_lines
    assert first == f"START RequestId: {call.request_id} Version: $LATEST"
    assert call.log_lines[1:3] == ("this module is read", "said: hello")
    assert end == f"END RequestId: {call.request_id}"
    assert "Memory Size: 128 MB" in report
    assert "Init Duration" in report
    assert "Status" not in report
    assert call.get_log_tail().endswith(report + "\n")
    assert tiny.invoke(say="again").log_lines[1:2] == ("said: again",), "of its own call alone"


def test_json_log_format_reports_in_json(tiny: TinyLambda) -> None:
    tiny.account.publish("3", log_format="JSON", timeout_seconds=1)
    call = tiny.invoke("3", do="sleep")
    report = msgspec.json.decode(call.log_lines[-1])
    assert report["type"] == "platform.report"
    assert report["record"]["status"] == "timeout"
    assert report["record"]["metrics"]["durationMs"] >= 1000


def test_timeout_is_scaled_by_the_speed_of_the_host(tmp_path: Path) -> None:
    with open_tiny_lambda(tmp_path, slowness=0.5) as tiny:
        tiny.account.publish("3", timeout_seconds=2)
        call = tiny.invoke("3", do="sleep")
    assert call.result.status == "timeout"
    assert b"after 1.00 seconds" in call.result.payload


def list_failures() -> list[Any]:
    bad = zip_code("raise RuntimeError('at import')")
    return [
        pytest.param({}, {"do": "raise"}, "ValueError", "as asked", id="an exception"),
        pytest.param({"timeout_seconds": 1}, {"do": "sleep"}, "Sandbox.Timedout", "1.00 s", id="timeout"),
        pytest.param({}, {"do": "eat", "megabytes": 300}, "Runtime.ExitError", "signal: killed", id="out of memory"),
        pytest.param({}, {"do": "exit", "code": 3}, "Runtime.ExitError", "exit status 3", id="nonzero exit"),
        pytest.param({}, {"do": "exit", "code": 0}, "Runtime.ExitError", "without providing a reason", id="zero exit"),
        pytest.param({"code": bad}, {}, "RuntimeError", "at import", id="import error"),
        pytest.param({"handler": "tiny.missing"}, {}, "Runtime.HandlerNotFound", "missing", id="missing handler"),
    ]


@pytest.mark.parametrize(("changed", "event", "error_type", "message"), list_failures())
def test_failed_invocation_returns_the_lambda_error_type_and_message(
    tiny: TinyLambda, changed: dict[str, Any], event: dict[str, Any], error_type: str, message: str
) -> None:
    tiny.account.versions["$LATEST"] = tiny.account.build_function(**changed)
    response = tiny.service.invoke_for_api("tiny", "", msgspec.json.encode(event))
    error = msgspec.json.decode(response.payload)
    assert response.error == "Unhandled"
    assert error["errorType"] == error_type
    assert message in error["errorMessage"]


def test_process_is_reused_after_an_exception_but_not_after_an_exit(tiny: TinyLambda) -> None:
    pid = tiny.invoke_successfully()["pid"]
    assert tiny.invoke(do="raise").result.status == "error"
    assert tiny.invoke_successfully()["pid"] == pid
    tiny.invoke(do="exit", code=1)
    assert tiny.invoke_successfully()["pid"] != pid


def test_concurrent_invocations_are_limited_by_reserved_concurrency(tiny: TinyLambda, tmp_path: Path) -> None:
    tiny.account.versions["$LATEST"] = tiny.account.build_function(reserved_concurrency=2)
    sign = tmp_path / "sign"
    with ThreadPoolExecutor(2) as callers:
        slow = [callers.submit(tiny.invoke_successfully, **{"do": "wait", "for": str(sign)}) for _ in range(2)]
        tiny.wait_until(lambda: tiny.sandboxes.count_running() == {"tiny": 2})
        try:
            with pytest.raises(Throttled):
                tiny.invoke()
        finally:
            sign.touch()
        assert len({future.result()["pid"] for future in slow}) == 2
    assert tiny.invoke_successfully()["pid"] in tiny.sandboxes.list_pids()


def test_shutdown_terminates_all_processes(tmp_path: Path) -> None:
    with open_tiny_lambda(tmp_path) as tiny_lambda, ThreadPoolExecutor(1) as caller:
        idle = tiny_lambda.invoke_successfully()["pid"]
        slow = caller.submit(tiny_lambda.invoke, do="sleep")
        tiny_lambda.wait_until(lambda: bool(tiny_lambda.sandboxes.count_running()))
        tiny_lambda.sandboxes.shut_down()
        assert slow.result().result.status == "error"
        with pytest.raises(Throttled):
            tiny_lambda.invoke()
    assert not is_process_running(idle)


def test_processes_of_changed_or_deleted_functions_are_discarded(tiny: TinyLambda) -> None:
    pid = tiny.invoke_successfully()["pid"]
    tiny.sandboxes.discard_idle(frozenset({"other"}))
    assert is_process_running(pid)
    tiny.sandboxes.discard_idle(frozenset({"tiny"}))
    assert not is_process_running(pid)
