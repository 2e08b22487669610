"""The reference of `-o json` and `-o yaml` has every field that the commands print for the examples, and no other."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from cli.main import main
from docs.reference.output import FIELDS

ROOT: Final = Path(__file__).parents[3]
FLEET: Final = "-f examples/cluster --instance-types examples/catalogue.json"
PODS: Final = "-f examples/plan --instance-types examples/catalogue.json"
COMMAND_LINES: Final = {
    "status": f"status {FLEET} --no-account",
    "top": f"top {FLEET}",
    "cost": "cost --journal examples/journal --commitments examples/commitments.yaml",
    "explain": "explain nodepool default --journal examples/journal",
    "explain --trace": "explain pod web-2mh2mqfd6w-44ks7 --trace --journal examples/journal",
    "drift": f"drift {FLEET}",
    "report": "report - --journal examples/journal",
    "replay": "replay latest --journal examples/journal --without nodepool/default",
    "replay --list": "replay --list --journal examples/journal",
    "history show": "history show web --journal examples/journal",
    "history build": "history build --journal examples/journal",
    "hub": "hub examples/hub.yaml",
    "plan": f"plan {PODS}",
    "plan --pod": f"plan {PODS} --pod shop/web-1",
    "consolidate": f"consolidate {FLEET} --eviction-price 0.02",
    "rebalance": f"rebalance --plan {FLEET} --eviction-price 0.02",
    "nodeclass resolve": "nodeclass resolve -f examples/nodeclass/al2023.yaml --embedded --no-dry-run",
    "catalog show": "catalog show examples/catalogue.json m7a.large",
    "doctor": "doctor -f examples/cluster --no-account",
    "lint": "lint -f examples/older",
    "convert": "convert -f examples/older",
}
"""The commands that need neither a cluster nor an account."""
Out = pytest.CaptureFixture[str]


def list_paths(value: Any, path: str = "") -> Iterator[str]:
    """Yield the path of each value in a document; an empty list or mapping has a path too."""
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from list_paths(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value:
        for item in value:
            yield from list_paths(item, f"{path}[]")
    else:
        yield path


def is_documented(path: str, documented_paths: set[str]) -> bool:
    """Return whether *path*, or everything below one of its parents, is documented, or only fields below it are."""
    return any(
        path == documented_path
        or (documented_path.endswith("*") and path.startswith(documented_path.removesuffix("*").removesuffix(".")))
        or documented_path.startswith((f"{path}.", f"{path}[]"))
        for documented_path in documented_paths
    )


@pytest.mark.loopback
@pytest.mark.parametrize("command", COMMAND_LINES)
def test_output_has_the_documented_fields(command: str, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    main([*COMMAND_LINES[command].split(), "-o", "json"])
    document = json.loads(capsys.readouterr().out)
    items = document if isinstance(document, list) else [document]
    assert items
    assert {item["apiVersion"] for item in items} == {"joiner/v1"}
    printed_paths = {path for path in list_paths(document) if path.removeprefix("[].") != "apiVersion"}
    documented_paths = {*FIELDS[command]}
    assert sorted(path for path in printed_paths if not is_documented(path, documented_paths)) == []
    assert sorted(path for path in documented_paths if not _is_printed(path, printed_paths)) == []


def _is_printed(documented_path: str, printed_paths: set[str]) -> bool:
    """Return whether a printed path matches, or a parent is empty in the examples."""
    prefix = documented_path.removesuffix("*").removesuffix(".")
    return any(
        path == prefix or path.startswith(prefix) or documented_path.startswith((f"{path}.", f"{path}["))
        for path in printed_paths
    )


@pytest.mark.parametrize("command", ["lint", "catalog show", "status"])
def test_yaml_output_equals_json_output(command: str, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    arguments = COMMAND_LINES[command].split()
    main([*arguments, "-o", "json"])
    document = json.loads(capsys.readouterr().out)
    main([*arguments, "-o", "yaml"])
    yaml_document = yaml.safe_load(capsys.readouterr().out)
    for item in (document, yaml_document):
        if isinstance(item, dict):
            item.pop("at", None)
    assert yaml_document == document
