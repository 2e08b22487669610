"""JSON and YAML output of commands."""

import json

from cli.terminal.output_format import encode_output


def test_document_starts_with_the_api_version() -> None:
    assert encode_output({"nodes": 2}, "json") == '{\n "apiVersion": "joiner/v1",\n "nodes": 2\n}\n'
    assert encode_output({"nodes": 2}, "yaml") == "apiVersion: joiner/v1\nnodes: 2\n"


def test_each_item_of_a_list_has_the_api_version() -> None:
    output = encode_output([{"name": "a"}, {"name": "b"}], "json")
    assert [item["apiVersion"] for item in json.loads(output)] == ["joiner/v1", "joiner/v1"]
