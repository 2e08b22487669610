"""The fleet document: its format, its golden example, and its reference page."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cli.fleet.document.fleet_document import FleetDocument
from cli.fleet.document.json_format import (
    FleetFormatError,
    decode_fleet_document,
    encode_fleet_document,
    escape_for_html,
)
from cli.fleet.document.node_columns import NODE_STATES
from docs.reference.fleet_document import render_fleet_reference
from tests.ui.synthetic_fleet import build_synthetic_document

GOLDEN = Path("tests/golden/fleet/demo.json")


def test_golden_example_is_read_and_written_unchanged() -> None:
    """A change of the format needs a new version, or a field that readers can ignore."""
    body = GOLDEN.read_bytes()
    assert json.loads(encode_fleet_document(decode_fleet_document(body))) == json.loads(body)


def test_golden_example_plays_nine_acts() -> None:
    document = decode_fleet_document(GOLDEN.read_bytes())
    acts = [marker for marker in document.markers if marker.kind == "act"]
    assert [act.title[:2] for act in acts] == [f"{number}." for number in range(1, 10)]
    assert all(act.text.endswith(".") for act in acts)
    assert all(before.end == after.t for before, after in pairwise(acts))
    assert (acts[0].t, acts[-1].end) == (document.start, document.end)
    states = {NODE_STATES[state] for state in document.node_states.state}
    assert states >= {"launched", "registered", "ready", "cordoned", "draining", "interrupted", "gone"}


@pytest.mark.parametrize("document", [decode_fleet_document(GOLDEN.read_bytes()), build_synthetic_document(40, 400)])
def test_columns_have_equal_lengths_and_valid_indexes(document: FleetDocument) -> None:
    for columns in (document.nodes, document.node_states, document.pods, document.pod_places):
        fields = msgspec.structs.asdict(columns)
        assert len({len(values) for values in fields.values()}) == 1, fields.keys()
    assert set(document.node_states.node) <= set(range(len(document.nodes.name)))
    assert set(document.pod_places.node) <= set(range(-2, len(document.nodes.name)))
    assert set(document.pod_places.pod) == set(range(len(document.pods.name)))
    assert {number for number in document.nodes.explanation if number is not None} <= set(
        range(len(document.explanations))
    )
    assert sorted(document.node_states.t) == list(document.node_states.t)
    assert sorted(document.pod_places.t) == list(document.pod_places.t)
    assert max(document.nodes.name) < len(document.strings)
    for marker in document.markers:
        assert marker.decision is None or marker.decision < len(document.decisions)


def test_cost_is_the_integral_of_the_prices() -> None:
    document = decode_fleet_document(GOLDEN.read_bytes())
    hours = dict.fromkeys(range(len(document.nodes.name)), 0.0)
    launched: dict[int, int] = {}
    for at, node, state in zip(
        document.node_states.t, document.node_states.node, document.node_states.state, strict=True
    ):
        if NODE_STATES[state] == "gone":
            hours[node] += (at - launched.pop(node)) / 3_600_000
        elif NODE_STATES[state] != "requested":
            launched.setdefault(node, max(at, document.start))
    for node, at in launched.items():
        hours[node] += (document.end - at) / 3_600_000
    usd = sum(hours[node] * (price or 0) for node, price in enumerate(document.nodes.price))
    assert usd == pytest.approx(document.totals.cost_usd, abs=1e-5)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"format": "other"}, "format 'other': not a fleet document"),
        ({"version": 2}, "version 2 is not supported: this version of Joiner reads version 1"),
        ({"nodes": []}, "not a fleet document: Expected"),
    ],
)
def test_other_formats_and_versions_are_refused(fields: dict[str, Any], words: str) -> None:
    document = json.loads(GOLDEN.read_bytes()) | fields
    with pytest.raises(FleetFormatError, match=words):
        decode_fleet_document(json.dumps(document).encode())
    with pytest.raises(FleetFormatError, match="not a fleet document"):
        decode_fleet_document(b"[")


def test_unknown_fields_are_ignored() -> None:
    document = json.loads(GOLDEN.read_bytes())
    later_document = document | {"later": 1, "source": document["source"] | {"later": 1}}
    assert decode_fleet_document(json.dumps(later_document).encode()) == decode_fleet_document(GOLDEN.read_bytes())


def test_escaped_json_is_the_same_value_without_markup() -> None:
    text = "</script><!-- & \u2028\u2029 ü"
    escaped = escape_for_html(json.dumps(text, ensure_ascii=False).encode())
    assert not set("<>&\u2028\u2029") & set(escaped)
    assert json.loads(escaped) == text


def test_reference_page_is_up_to_date() -> None:
    assert Path("docs/reference/fleet-document.md").read_text(encoding="utf-8") == render_fleet_reference()


def test_page_of_a_large_fleet_stays_small() -> None:
    document = build_synthetic_document(200, 2000)
    assert len(encode_fleet_document(document)) < 700_000
