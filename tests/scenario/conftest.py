"""In every scenario, the functions send only requests that are written down with their reason."""

from collections.abc import Iterator
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
    unknown_kinds = {kind for log in logs for kind in log.use_by_kind} - load_known_kinds()
    assert not unknown_kinds, "record these requests in tests/golden/aws_requests.py, and write their reasons"


@cache
def load_known_kinds() -> frozenset[RequestKind]:
    return frozenset(request.kind for request in load_requests())
