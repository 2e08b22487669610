"""The reference page of the settings, and their defaults in cdk.json, from the declarations."""

import json
from pathlib import Path
from typing import Final

import msgspec

from docs.reference.markdown import format_code, render_page, render_table
from infra.settings.descriptions import read_descriptions
from infra.settings.settings import StackOptions, format_context_key, list_options
from shared.model.core.feature_gates import AwsFeatureGates, FeatureGates
from shared.settings import ChosenSettings, Settings
from shared.settings_text import describe_allowed, encode_text, get_variable_names

CDK_JSON: Final = Path(__file__).resolve().parents[2] / "cdk.json"
INTRODUCTION: Final = """Set them in `cdk.json`, or on the command line, which has precedence:
`npx cdk deploy -c joiner:cluster=NAME -c joiner:mode=plan`. On the command line, lists are comma-separated. A
deployment applies all settings: if the command line omits a setting, the value in `cdk.json` applies. Invalid
values are rejected before anything is deployed."""
GATES_INTRODUCTION: Final = """Gates of `joiner:feature-gates`, with Karpenter's names:
`-c joiner:feature-gates=NodeRepair=true,NodeOverlay=true`."""
VARIABLES_INTRODUCTION: Final = """The stack writes these environment variables for every function. Settings that
Karpenter has, too, have Karpenter's variables. `joiner` reads them as well, so that it can plan as the functions do."""


def render_setting_pages() -> dict[str, str]:
    """Render the page of the settings, by file name."""
    return {
        "settings.md": render_page(
            "Settings",
            INTRODUCTION,
            render_table(("Setting", "Default", "Allowed values", "Description"), _list_option_rows()),
            f"## Feature gates\n\n{GATES_INTRODUCTION}",
            render_table(("Gate", "Default"), _list_gate_rows(FeatureGates)),
            "Gates of `joiner:aws-feature-gates`:",
            render_table(("Gate", "Default", "Description"), _list_described_gate_rows(AwsFeatureGates)),
            f"## Environment variables of the functions\n\n{VARIABLES_INTRODUCTION}",
            render_table(("Variable", "Setting or description"), _list_variable_rows()),
        )
    }


def update_cdk_json(current_text: str) -> str:
    """Return *current_text* of cdk.json with the description and the default of every setting."""
    document = json.loads(current_text)
    other_context = {
        key: value for key, value in document["context"].items() if not key.lstrip("/").startswith("joiner:")
    }
    descriptions, defaults = read_descriptions(StackOptions), msgspec.structs.asdict(StackOptions())
    setting_context: dict[str, object] = {}
    for field in list_options():
        key, default, allowed = format_context_key(field.name), defaults[field.name], describe_allowed(field.type)
        comment = f"{descriptions[field.name]} Allowed: {allowed}." if allowed else descriptions[field.name]
        setting_context |= {
            f"//{key}": comment,
            key: default if isinstance(default, bool | int | float) else encode_text(default),
        }
    return json.dumps({**document, "context": setting_context | other_context}, indent=2, ensure_ascii=False) + "\n"


def _list_option_rows() -> list[tuple[str, str, str, str]]:
    descriptions, defaults = read_descriptions(StackOptions), msgspec.structs.asdict(StackOptions())
    return [
        (
            format_code(format_context_key(field.name)),
            format_code(encode_text(defaults[field.name])),
            describe_allowed(field.type),
            descriptions[field.name],
        )
        for field in list_options()
    ]


def _list_gate_rows(gates: type[msgspec.Struct]) -> list[tuple[str, str]]:
    return [
        (format_code(gate_field.encode_name), format_code(encode_text(gate_field.default)))
        for gate_field in msgspec.structs.fields(gates)
    ]


def _list_described_gate_rows(gates: type[msgspec.Struct]) -> list[tuple[str, str, str]]:
    descriptions, fields = read_descriptions(gates), msgspec.structs.fields(gates)
    return [(*row, descriptions[field.name]) for row, field in zip(_list_gate_rows(gates), fields, strict=True)]


def _list_variable_rows() -> list[tuple[str, str]]:
    descriptions = read_descriptions(Settings)
    return [
        (
            format_code(variable),
            format_code(format_context_key(name)) if name in ChosenSettings.__struct_fields__ else descriptions[name],
        )
        for name, variable in get_variable_names(Settings).items()
    ]
