"""In every scenario, the functions send only requests that are written down with their reason."""

from collections.abc import Iterator, Mapping
from functools import cache

import pytest

from sim.aws_rules.request_log import RequestKind, RequestLog
from tests.golden.aws_requests import load_requests


@pytest.fixture(autouse=True)
def _expect_known_requests(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    logs: list[RequestLog] = []
    initialize = RequestLog.__init__

    def register(log: RequestLog) -> None:
        initialize(log)
        logs.append(log)

    monkeypatch.setattr(RequestLog, "__init__", register)
    yield
    unknown_kinds = [kind for log in logs for kind in log.use_by_kind if not is_known(kind)]
    assert not unknown_kinds, "record these requests in tests/golden/aws_requests.py, and write their reasons"


def is_known(kind: RequestKind) -> bool:
    """Return whether the call is written down, and each of its filters for one of the calls."""
    selections = load_known_selections().get(kind.call)
    return selections is not None and selections.issuperset(kind.selection)


@cache
def load_known_selections() -> Mapping[str, frozenset[str]]:
    """Return the filters and selecting parameters that are written down, by call."""
    requests = load_requests()
    return {
        call: frozenset(name for request in requests if request.call == call for name in request.selection)
        for call in {request.call for request in requests}
    }
