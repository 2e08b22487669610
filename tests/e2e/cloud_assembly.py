"""The application, synthesized by `cdk synth` in a process beside the test: `cdk.out` is deployed."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

from tests.e2e.cdk import Cdk
from tests.e2e.release import create_next_release


class Assembly:
    """The cloud assembly that is deployed: of one version, then of the next."""

    def __init__(self, folder: Path, settings: Iterable[str], environment: Mapping[str, str], stack: ExitStack) -> None:
        """Keep everything in *folder*; `cdk` runs with *settings* in *environment*, and *stack* stops it."""
        self.path = folder / "cdk.out"
        """The value of `--app`."""
        self._folder, self._environment, self._stack = folder, environment, stack
        self._words = ("synth", "--quiet", *settings, "--output", str(self.path))
        self._syntheses: list[Cdk] = []

    @property
    def latest(self) -> Cdk:
        """The latest synthesis."""
        return self._syntheses[-1]

    def begin(self, application: Path) -> None:
        """Start to synthesize the application in *application*; don't deploy until it has ended.

        Each synthesis writes to the same folder, where an unchanged layer is reused.
        """
        log = self._folder / f"cdk-synth-{len(self._syntheses)}.log"
        self._syntheses.append(self._stack.enter_context(Cdk(self._words, application, self._environment, log)))

    def begin_next_release(self) -> None:
        """Start to synthesize another version of Joiner."""
        folder = self._folder / "release"
        folder.mkdir()
        self.begin(create_next_release(folder))
