"""The metrics of the cluster that is read, and when it is read again."""

import argparse
import time
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Lock

import msgspec

from cli.inputs.environment import read_environment_settings
from cli.planning.cluster_source import PlanningInputReader, default_to_current_context
from cli.status.prometheus.text_format import render_ages, render_metrics
from cli.terminal.errors import InputError
from shared.cycles.setup.options_from_settings import build_money_policy
from shared.model.cluster import ClusterSnapshot
from shared.state.cluster_state import ClusterState


class Exposition(msgspec.Struct, frozen=True, kw_only=True):
    """The metrics of one snapshot."""

    cluster: ClusterSnapshot
    text: str

    def render(self, now: datetime) -> str:
        """Return the metrics, with their age at *now*."""
        return render_ages(self.cluster, now) + self.text


ExpositionReader = Callable[[], Exposition]
"""Reads the cluster; raises InputError if that is not possible."""


def build_reader(args: argparse.Namespace) -> ExpositionReader:
    """Return a function that reads the input that *args* selects.

    Raises:
        ValueError: a setting in the environment is invalid.
    """
    default_to_current_context(args)
    money, read_input = build_money_policy(read_environment_settings()), PlanningInputReader(args)

    def read_exposition() -> Exposition:
        planning_input, cluster = read_input()
        if planning_input.read_errors:
            raise InputError("; ".join(planning_input.read_errors))
        return Exposition(cluster=cluster, text=render_metrics(ClusterState(cluster), money, args.detail))

    return read_exposition


class RefreshedExposition:
    """Reads the cluster at most once per interval; a failed read also lasts for the interval."""

    def __init__(
        self, read: ExpositionReader, interval_seconds: float, get_seconds: Callable[[], float] = time.monotonic
    ) -> None:
        """Read with *read* at most every *interval_seconds*."""
        self._read, self._interval_seconds, self._get_seconds = read, interval_seconds, get_seconds
        self._lock = Lock()
        self._refreshed_at: float | None = None
        self._outcome: Exposition | InputError = InputError("the cluster was not read yet")

    def render(self) -> str:
        """Return the metrics, with their age.

        Raises:
            InputError: the last read failed. Older metrics are not returned.
        """
        with self._lock:
            if self._refreshed_at is None or self._get_seconds() - self._refreshed_at >= self._interval_seconds:
                self._outcome = self._try_read()
                self._refreshed_at = self._get_seconds()
            outcome = self._outcome
        if isinstance(outcome, InputError):
            raise InputError(str(outcome))
        return outcome.render(datetime.now(UTC))

    def _try_read(self) -> Exposition | InputError:
        try:
            return self._read()
        except InputError as error:
            return error
