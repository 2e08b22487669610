"""Versions of the tools on this computer that a deployment with the CDK runs in."""

import subprocess
from collections.abc import Iterator
from typing import Final

from cli.doctor.checks.finding import CheckReporter, CheckResult
from cli.doctor.preflight.facts import PreflightFacts
from shared.model.core.formatting import join_names

SUPPORTED_NODE_MAJORS: Final = (22, 24)
"""Versions of Node.js that the locked jsii supports without a warning; package.json has the same."""
_COMMAND_TIMEOUT_SECONDS: Final = 20


def read_node_version() -> str:
    """Return the version of the `node` on PATH, for example ``22.20.0``; "" if there is none, or it does not run."""
    command = ["node", "--version"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_COMMAND_TIMEOUT_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return ""
    return result.stdout.strip().removeprefix("v")


def check_node(facts: PreflightFacts) -> Iterator[CheckResult]:
    """Check that the CDK supports the installed version of Node.js."""
    check, version = CheckReporter("nodejs"), facts.node_version
    fix = f"install Node.js {_format_majors()}; `node --version` shows the version on PATH"
    if not version:
        yield check.fail("Node.js is not on PATH: the CDK runs in it", fix)
    elif version.partition(".")[0] not in map(str, SUPPORTED_NODE_MAJORS):
        yield check.warn(f"Node.js {version} is not supported by the CDK, which prints a warning at each run", fix)
    else:
        yield check.accept(f"Node.js {version}")


def check_python(facts: PreflightFacts) -> Iterator[CheckResult]:
    """Report the version of Python; older versions than 3.11 cannot run this command."""
    yield CheckReporter("python").accept(f"Python {facts.python_version}")


def _format_majors() -> str:
    return join_names(tuple(map(str, SUPPORTED_NODE_MAJORS)), len(SUPPORTED_NODE_MAJORS)).replace(", ", " or ")
