"""The CDK application, as used by `app.py` and the template tests."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks, ServerlessChecks

from infra.settings.context_parsing import check_option_names
from infra.settings.load import load_options
from infra.settings.settings import StackOptions, format_context_key
from infra.stack.stack import JoinerStack
from shared.stack_name import format_stack_name

CDK_JSON: Final = Path(__file__).resolve().parents[2] / "cdk.json"


def build_application(
    *,
    bundle: bool = True,
    outdir: str | None = None,
    context: Mapping[str, object] | None = None,
    synthesizer: cdk.IStackSynthesizer | None = None,
    stack_name: str = "",
) -> cdk.App:
    """Build the construct tree and its checks.

    Without *bundle*, assets are not bundled, which saves seconds. *context* overrides cdk.json, like ``-c`` on the
    command line; *synthesizer* determines where the template finds its assets (by default, where `cdk bootstrap` put
    them). `format_stack_name` names the stack of each cluster; *stack_name* replaces this name if there is one cluster.

    Raises:
        ValueError: an option has a value that cannot be deployed, or is unknown.
    """
    # Only the CDK CLI reads cdk.json itself: without this, `python app.py` would produce a different template.
    flags = json.loads(CDK_JSON.read_text())["context"]
    unbundled: dict[str, object] = {} if bundle else {"aws:cdk:bundling-stacks": []}
    app = cdk.App(context=flags | unbundled, post_cli_context=context, outdir=outdir)
    check_option_names(app.node.get_all_context(), map(format_context_key, StackOptions.__struct_fields__))
    for options in load_options(app.node.try_get_context).split_by_cluster():
        name = stack_name or format_stack_name(options.cluster)
        JoinerStack(app, name, options=options, synthesizer=synthesizer)
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))
    return app
