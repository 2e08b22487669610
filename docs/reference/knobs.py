"""Knobs of a deployment and settings of its functions, from the values that read them."""

import ast
import inspect
import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from docs.reference.markdown import code, page, table
from infra.knobs import CHOICES, Knobs
from shared.settings import AwsGates, Gates, Settings

CDK_JSON: Final = Path(__file__).resolve().parents[2] / "cdk.json"
_GIVEN_BY_STACK = frozenset(("bucket_name", "cluster_name", "instance_profile", "queue_prefix", "region", "table_name"))
KNOBS_SAY = """Set in `cdk.json`, or on the command line, which counts more:
`npx cdk deploy -c joiner:cluster=NAME -c joiner:mode=plan`. Lists are comma-separated. A value that cannot be deployed
is refused before anything is."""
GATES_SAY = """Of `joiner:feature-gates`, Karpenter's own names:
`-c joiner:feature-gates=NodeRepair=true,NodeOverlay=true`."""
SETTINGS_SAY = """What a knob becomes in the environment of every function, where `joiner` reads it too. Those without a
default are set by the stack."""


def pages() -> dict[str, str]:
    """Answer the pages of knobs and of settings."""
    return {
        "knobs.md": page(
            "Knobs of a deployment",
            KNOBS_SAY,
            table(("Knob", "Default", "What it does"), _knobs()),
            f"## Feature gates\n\n{GATES_SAY}",
            table(("Gate", "Default"), _gates(Gates)),
            "Of `joiner:aws-feature-gates`:",
            table(("Gate", "Default", ""), _gates_told(AwsGates)),
        ),
        "settings.md": page("Settings of the functions", SETTINGS_SAY, table(("Variable", "Default", ""), _settings())),
    }


def cdk_json(now: str) -> str:
    """Answer what cdk.json must say that says *now*: every knob with its default, below what it does."""
    document = json.loads(now)
    others = {key: value for key, value in document["context"].items() if not key.lstrip("/").startswith("joiner:")}
    knobs: dict[str, object] = {}
    for (name, _, says), one in zip(_knobs(), msgspec.structs.fields(Knobs), strict=True):
        key = name.strip("`")
        knobs |= {f"//{key}": says, key: one.default}
    return json.dumps({**document, "context": knobs | others}, indent=2, ensure_ascii=False) + "\n"


def _knobs() -> list[tuple[str, str, str]]:
    told = docstrings(Knobs)
    return [
        (f"`joiner:{one.encode_name}`", code(str(one.default)), _sentences(told.get(one.name, ""), _choices(one.name)))
        for one in msgspec.structs.fields(Knobs)
    ]


def _choices(name: str) -> str:
    choices = CHOICES.get(name)
    return f"One of {', '.join(map(code, choices))}." if choices else ""


def _gates(gates: type[msgspec.Struct]) -> list[tuple[str, str]]:
    return [(code(one.encode_name), code(str(one.default).lower())) for one in msgspec.structs.fields(gates)]


def _gates_told(gates: type[msgspec.Struct]) -> list[tuple[str, str, str]]:
    told = docstrings(gates)
    fields = msgspec.structs.fields(gates)
    return [(*row, _sentences(told.get(one.name, ""))) for row, one in zip(_gates(gates), fields, strict=True)]


def _settings() -> list[tuple[str, str, str]]:
    told, knobs = docstrings(Settings), {one.name: one.encode_name for one in msgspec.structs.fields(Knobs)}
    fields = msgspec.structs.fields(Settings)
    names = Settings(**{one.name: "" for one in fields}).environment()
    rows = []
    for name, one in zip(names, fields, strict=True):
        knob = f"`joiner:{knobs[one.name]}`." if one.name in knobs else ""
        default = "" if one.required or one.name in _GIVEN_BY_STACK else code(str(one.default))
        rows.append((code(name), default, _sentences(knob, told.get(one.name, ""))))
    return rows


def docstrings(of: type) -> Mapping[str, str]:
    """Answer the strings that stand below the fields of *of*, by field: what Python itself forgets."""
    [node] = ast.parse(textwrap.dedent(inspect.getsource(of))).body
    found: dict[str, str] = {}
    for field, below in zip(getattr(node, "body", ()), getattr(node, "body", ())[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
            found[field.target.id] = str(ast.literal_eval(below.value))
    return found


def _sentences(*texts: str) -> str:
    return " ".join(" ".join(text.split()) for text in texts if text).replace("``", "`")
