"""The reference page of the settings, and the example of a settings file, from the declarations."""

from typing import Final

import msgspec

from docs.reference.markdown import format_code, render_page, render_table
from infra.settings.descriptions import read_descriptions
from infra.settings.files.changes import render_value
from infra.settings.files.selection import CLUSTERS_FOLDER, EXAMPLE_NAME
from infra.settings.settings import StackOptions, format_setting_name, list_options
from shared.model.core.feature_gates import AwsFeatureGates, FeatureGates
from shared.settings import ChosenSettings, Settings
from shared.settings_text import describe_allowed, encode_text, get_variable_names

EXAMPLE_FILE: Final = CLUSTERS_FOLDER / f"{EXAMPLE_NAME}.yaml"
INTRODUCTION: Final = """Each cluster has a settings file, `clusters/NAME.yaml`, where NAME is the name of the EKS
cluster. Git ignores it. `make settings CLUSTER=NAME` creates it: every setting is a comment with its description and
default. Write a setting as `log-days: 7`, or run `make settings CLUSTER=NAME SET="log-days=7"`, which keeps comments
and checks the value. To apply the file: `npx cdk deploy -c cluster=NAME`. For several clusters, `-c cluster=A,B`
deploys a stack for each, with the settings of its own file.

Lists and maps can be written as in YAML or as text: `[a, b]` or `a,b`; `{team: platform}` or `team=platform`.
Unknown settings, duplicates and invalid values are rejected before anything is deployed, with the line. The command
line has no settings, so that no later deployment can lose one. If the files are in another folder, for example in a
repository of your own, add `-c clusters-folder=FOLDER` to `cdk`, or `FOLDER=FOLDER` to `make settings`, `make dist` and
`make release`."""
GATES_INTRODUCTION: Final = """Gates of `feature-gates`, with Karpenter's names:
`feature-gates: {NodeRepair: true, NodeOverlay: true}`."""
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
            "Gates of `aws-feature-gates`:",
            render_table(("Gate", "Default", "Description"), _list_described_gate_rows(AwsFeatureGates)),
            f"## Environment variables of the functions\n\n{VARIABLES_INTRODUCTION}",
            render_table(("Variable", "Setting or description"), _list_variable_rows()),
        )
    }


def _list_option_rows() -> list[tuple[str, str, str, str]]:
    descriptions, defaults = read_descriptions(StackOptions), msgspec.structs.asdict(StackOptions())
    return [
        (
            format_code(format_setting_name(field.name)),
            format_code(render_value(format_setting_name(field.name), defaults[field.name])),
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
            format_code(format_setting_name(name)) if name in ChosenSettings.__struct_fields__ else descriptions[name],
        )
        for name, variable in get_variable_names(Settings).items()
    ]
