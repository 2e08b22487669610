"""The application, synthesised by `cdk synth` beside the play, as a pipeline does it: what is deployed is `cdk.out`."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

from tests.e2e.cdk import Cdk
from tests.e2e.release import next_release


class Assembly:
    """What is deployed: of one version, then of the next."""

    def __init__(self, folder: Path, knobs: Iterable[str], environment: Mapping[str, str], stack: ExitStack) -> None:
        """Keep all in *folder*; `cdk` runs with *knobs* in *environment*, and *stack* ends it."""
        self.path = folder / "cdk.out"
        """What `--app` wants."""
        self._folder, self._environment, self._stack = folder, environment, stack
        self._words = ("synth", "--quiet", *knobs, "--output", str(self.path))
        self._begun: list[Cdk] = []

    @property
    def latest(self) -> Cdk:
        """The synthesis that was begun last."""
        return self._begun[-1]

    def begin(self, application: Path) -> None:
        """Begin to synthesise what lies in the folder *application*; nothing may be deployed meanwhile.

        The next one is made in the same place, where the layer lies already if it is the same.
        """
        log = self._folder / f"cdk-synth-{len(self._begun)}.log"
        self._begun.append(self._stack.enter_context(Cdk(self._words, application, self._environment, log)))

    def begin_next_release(self) -> None:
        """Begin to synthesise another version of Joiner."""
        folder = self._folder / "release"
        folder.mkdir()
        self.begin(next_release(folder))
