"""The application of the test's stack, synthesized by `python application.py SETTINGS STACK FOLDER`.

It runs in the folder of the version to deploy: this checkout, or a copy of it with a change.
"""

import json
import sys
from pathlib import Path

from infra.settings.load import load_options
from infra.stack import application


def synthesize(settings: dict[str, object], stack_name: str, folder: str) -> None:
    """Write the cloud assembly of one stack called *stack_name* to *folder*."""
    options = load_options(settings)
    application.build_application(clusters=[options], outdir=folder, stack_name=stack_name).synth()


if __name__ == "__main__":
    synthesize(json.loads(sys.argv[1]), sys.argv[2], str(Path(sys.argv[3]).resolve()))
