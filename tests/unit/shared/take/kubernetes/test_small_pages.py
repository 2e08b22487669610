"""Small lists are read in every run: unchanged objects are not decoded again, and the result is the same."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from shared.take.kubernetes.page_decoding import MAX_SMALL_PAGE_BYTES
from shared.take.kubernetes.resource_kinds import ResourceKind
from shared.wire.decode.core import parse_namespace
from shared.wire.schema.core import NamespaceJson

LABELS = st.dictionaries(st.sampled_from("abc"), st.one_of(st.sampled_from("xy"), st.none(), st.just(4)), max_size=2)
PAGES = st.dictionaries(st.sampled_from(("shop", "web", "jobs", "")), LABELS, max_size=4)


def build_kind() -> ResourceKind:
    return ResourceKind("namespaces", "v1", "Namespace", NamespaceJson, parse_namespace)


def encode_page(labels_by_name: dict[str, Any], version: int = 1) -> bytes:
    items = [{"metadata": {"name": name, "labels": labels}} for name, labels in labels_by_name.items()]
    return msgspec.json.encode({"metadata": {"resourceVersion": str(version)}, "items": items})


@given(st.lists(PAGES, max_size=4))
def test_pages_decode_as_if_they_were_the_first(pages: list[dict[str, Any]]) -> None:
    kind = build_kind()
    bodies = [encode_page(page, version) for version, page in enumerate(pages)]
    assert [kind.decode_page(body) for body in bodies] == [build_kind().decode_page(body) for body in bodies]


@given(PAGES)
def test_small_and_large_pages_decode_alike(page: dict[str, Any]) -> None:
    body = encode_page(page)
    padded_body = body + b" " * MAX_SMALL_PAGE_BYTES
    assert build_kind().decode_page(body) == build_kind().decode_page(padded_body)


def test_unchanged_objects_are_the_same_objects() -> None:
    kind = build_kind()
    [first, _], _, _ = kind.decode_page(encode_page({"shop": {"a": "x"}, "web": {"a": "x"}}, 1))
    [unchanged, _], _, _ = kind.decode_page(encode_page({"shop": {"a": "x"}, "web": {"a": "y"}}, 2))
    assert unchanged is first


def test_only_the_last_page_is_remembered() -> None:
    conversions: list[str] = []

    def record_and_parse(wire: NamespaceJson) -> object:
        conversions.append("converted")
        return parse_namespace(wire)

    kind = ResourceKind("namespaces", "v1", "Namespace", NamespaceJson, record_and_parse)
    for name in ("shop", "web", "shop"):
        kind.decode_page(encode_page({name: {}}))
    assert len(conversions) == 3
