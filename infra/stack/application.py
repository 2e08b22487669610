"""The CDK application, as used by `app.py` and the template tests."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks, ServerlessChecks

from infra.settings.files.selection import select_clusters
from infra.settings.settings import StackOptions
from infra.stack.stack import JoinerStack
from shared.stack_name import format_stack_name

CDK_JSON: Final = Path(__file__).resolve().parents[2] / "cdk.json"


def build_application(
    *,
    bundle: bool = True,
    outdir: str | None = None,
    context: Mapping[str, object] | None = None,
    clusters: Sequence[StackOptions] | None = None,
    synthesizer: cdk.IStackSynthesizer | None = None,
    stack_name: str = "",
) -> cdk.App:
    """Build the construct tree and its checks.

    Without *bundle*, assets are not bundled, which saves seconds. *context* is like ``-c`` on the
    command line. Each cluster of *clusters* gets its own stack; None: the context selects the clusters, by the names of
    their settings files. *synthesizer* determines where the template finds its assets (by default, where `cdk
    bootstrap` put them). `format_stack_name` names each stack; *stack_name* replaces this name if there is one cluster.

    Raises:
        ValueError: no cluster is selected, or a setting is invalid.
    """
    # Only the CDK CLI reads cdk.json itself: without this, `python app.py` would produce a different template.
    flags = json.loads(CDK_JSON.read_text())["context"]
    unbundled: dict[str, object] = {} if bundle else {"aws:cdk:bundling-stacks": []}
    app = cdk.App(context=flags | unbundled, post_cli_context=context, outdir=outdir)
    for options in select_clusters(app.node.get_all_context(), flags) if clusters is None else clusters:
        name = stack_name or format_stack_name(options.cluster)
        JoinerStack(app, name, options=options, synthesizer=synthesizer)
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))
    return app
