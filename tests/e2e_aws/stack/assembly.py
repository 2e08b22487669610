"""The cloud assemblies that are deployed: of this checkout, of the next version, and of a version that fails."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final

from tests.e2e.cdk import Cdk, ExpectationFailed
from tests.e2e_aws.environment import RUN_TAG, Version, get_stack_name

CDK_TIMEOUT: Final = timedelta(minutes=90)
SETTINGS: Final = {"on-destroy": "purge", "disruption": "active"}
ROOT: Final = Path(__file__).resolve().parents[3]
APPLICATION: Final = Path(__file__).with_name("application.py")
COPIED: Final = ("functions", "infra", "shared", "app.py", "cdk.json", "requirements-lambda.lock", "pyproject.toml")
LINKED: Final = (".venv", "node_modules", "package.json")
CHANGE: Final = '\nRELEASE = "the next one"\n'
BROKEN_FUNCTIONS: Final = ("provision", "lifecycle", "disrupt")
"""The functions with a schedule of one minute: the alarm sees their errors during the canary phase."""
FAILURE: Final = '\nraise RuntimeError("this version fails on purpose, to be rolled back")\n'


def create_version(version: Version, folder: Path) -> Path:
    """Create a copy of this checkout in *folder* with the change of *version*; return the folder of the version."""
    if version == "first":
        return ROOT
    folder.mkdir(parents=True)
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    with (folder / "functions" / "__init__.py").open("a", encoding="utf-8") as file:
        file.write(CHANGE)
    for name in BROKEN_FUNCTIONS if version == "broken" else ():
        with (folder / "functions" / name / "handler.py").open("a", encoding="utf-8") as file:
            file.write(FAILURE)
    return folder


def build_settings(cluster: str, run_id: str) -> dict[str, object]:
    """Return the settings of the stack, with the tag of the run."""
    return {**SETTINGS, "cluster": cluster, "tags": f"{RUN_TAG}={run_id}"}


class Deployments:
    """Deploys and deletes the test's stack with the unmodified CDK CLI."""

    def __init__(
        self,
        cluster: str,
        run_id: str,
        *,
        folder: Path,
        wait_until: Callable[[Callable[[], bool], timedelta], bool],
        get_environment: Callable[[], Mapping[str, str]],
    ) -> None:
        """Keep assemblies and logs in *folder*; `cdk` runs with the variables that *get_environment* returns."""
        self.folder = folder
        self._cluster, self._settings = cluster, build_settings(cluster, run_id)
        self._wait_until, self._get_environment = wait_until, get_environment
        self._assembly = folder / "cdk.out"
        self._prepared: tuple[Version, Synthesis] | None = None

    def prepare(self, version: Version) -> None:
        """Start to synthesize *version*, which is deployed next; no deployment may be running."""
        application_folder = create_version(version, self.folder / version)
        log = self.folder / f"synthesis-{version}.log"
        self._prepared = (
            version,
            Synthesis(application_folder, self._settings, get_stack_name(self._cluster), self._assembly, log),
        )

    def deploy(self, version: Version) -> str:
        """Deploy *version*; return "" if that succeeded, else the end of the output."""
        output = self._synthesize(version)
        return output or self._run_cdk("deploy", "--require-approval", "never")

    def destroy(self) -> str:
        """Delete the stack; return "" if that succeeded, else the end of the output."""
        output = "" if self._assembly.joinpath("manifest.json").exists() else self._synthesize("first")
        return output or self._run_cdk("destroy", "--force")

    def stop(self) -> None:
        """End a synthesis that is still running."""
        if self._prepared is not None:
            self._prepared[1].stop()

    def _synthesize(self, version: Version) -> str:
        if self._prepared is None or self._prepared[0] != version:
            self.prepare(version)
        assert self._prepared is not None
        _, synthesis = self._prepared
        self._prepared = None
        if not self._wait_until(synthesis.has_ended, CDK_TIMEOUT):
            synthesis.stop()
        return synthesis.describe_failure()

    def _run_cdk(self, *words: str) -> str:
        log = self.folder / f"cdk-{len(list(self.folder.glob('cdk-*.log')))}-{words[0]}.log"
        arguments = (words[0], "--app", str(self._assembly), *words[1:])
        with Cdk(arguments, self.folder, self._get_environment(), log) as cdk:
            if not self._wait_until(cdk.has_ended, CDK_TIMEOUT):
                return f"{cdk.name} still runs after {CDK_TIMEOUT}"
            try:
                cdk.raise_for_failure()
            except ExpectationFailed as error:
                return str(error)
        return ""


class Synthesis:
    """A process that writes the cloud assembly of one version."""

    def __init__(
        self,
        application_folder: Path,
        settings: Mapping[str, object],
        stack_name: str,
        assembly: Path,
        log: Path,
    ) -> None:
        """Start it. An existing assembly is updated: its unchanged layer is reused."""
        command = [sys.executable, "-P", str(APPLICATION), json.dumps(settings), stack_name, str(assembly)]
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        variables |= {"PYTHONPATH": str(application_folder), "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20"}
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command, cwd=application_folder, env=variables, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    def has_ended(self) -> bool:
        """Return whether the process has ended."""
        return self._process.poll() is not None

    def stop(self) -> None:
        """Kill the process if it is still running."""
        self._process.kill()
        self._process.wait()

    def describe_failure(self) -> str:
        """Return the end of the output if the synthesis failed, else ""."""
        if not self._process.returncode:
            return ""
        return "synthesis failed:\n" + "\n".join(self._log.read_text(errors="replace").splitlines()[-20:])
