"""Rows that have not changed are decoded once in a container."""

from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from shared.model.cloud_provider.instance_type import UnavailableOffering
from shared.model.core.metadata import Problem
from shared.ports.storage import TableRow
from shared.store.table_rows import decode_body, decode_rows, encode_body, encode_compressed_body
from tests.support.catalogues import NOW

OFFERINGS = tuple[UnavailableOffering, ...]
BODIES = st.lists(st.sampled_from(("a", "b", "")), max_size=3).map(
    lambda zones: tuple(UnavailableOffering(capacity_type="spot", zone=zone, until=NOW) for zone in zones)
)


def make_row(name: str, body: str, version: int = 1) -> TableRow:
    return TableRow(kind="offering", name=name, body=body, version=version)


def decode(*rows: TableRow) -> tuple[list[tuple[TableRow, OFFERINGS]], list[Problem]]:
    problems: list[Problem] = []
    return list(decode_rows(rows, OFFERINGS, problems, "it is rewritten")), problems


@given(
    st.lists(
        st.one_of(BODIES.map(lambda body: encode_body(body, "row", "")), st.sampled_from(("{}", "no JSON"))), max_size=4
    )
)
def test_rows_decode_as_without_a_cache(bodies: list[str]) -> None:
    rows = [make_row(f"row-{number}", body) for number, body in enumerate(bodies)]
    expected = [(row, body) for row in rows if (body := decode_body(row, OFFERINGS)) is not None]
    for _ in range(2):
        decoded, problems = decode(*rows)
        assert decoded == expected
        assert len(decoded) + len(problems) == len(rows)


def test_unchanged_body_is_the_same_value() -> None:
    body = encode_compressed_body((UnavailableOffering(capacity_type="spot", until=NOW),))
    [(_, first)], _ = decode(make_row("a", body))
    [(_, second)], _ = decode(make_row("a", str(body), version=2))
    assert second is first


def test_equal_bodies_of_different_types_are_decoded_separately() -> None:
    row = make_row("a", '"2026-11-21T12:00:00Z"')
    problems: list[Problem] = []
    [(_, text)] = decode_rows((row,), str, problems, "")
    [(_, instant)] = decode_rows((row,), datetime, problems, "")
    assert (type(text), type(instant)) == (str, datetime)
