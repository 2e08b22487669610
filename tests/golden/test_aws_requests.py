"""Every kind of request to AWS is written down with its reason."""

from tests.golden.aws_requests import (
    FILE,
    StoredRequest,
    build_request,
    format_requests,
    load_requests,
    record_requests,
    update_requests,
)


def list_recorded() -> list[StoredRequest]:
    return [build_request(kind, use, "") for kind, use in sorted(record_requests().use_by_kind.items())]


def test_every_kind_of_request_is_written_down_with_all_its_parameters_and_functions() -> None:
    stored = {request.kind: request for request in load_requests() if request.recorded}
    new = [request.kind for request in list_recorded() if request.kind not in stored]
    assert not new, "run `python -m tests.golden.aws_requests` and write the reason of each new request"
    assert [
        (request.kind, request.functions, request.parameters)
        for request in list_recorded()
        if (request.functions, request.parameters) != (stored[request.kind].functions, stored[request.kind].parameters)
    ] == []


def test_golden_file_has_no_entry_for_a_removed_request() -> None:
    recorded = {request.kind for request in list_recorded()}
    assert [request.kind for request in load_requests() if request.recorded and request.kind not in recorded] == []


def test_every_request_has_a_reason() -> None:
    assert [request.kind for request in load_requests() if not request.reason] == []


def test_aws_rejects_none_of_the_requests() -> None:
    assert [rejected.describe() for rejected in record_requests().rejections] == []


def test_the_file_is_in_the_form_that_the_recorder_writes() -> None:
    assert FILE.read_text() == format_requests(update_requests(record_requests()))
