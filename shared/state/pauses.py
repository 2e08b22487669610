"""Pauses that are in force in a snapshot."""

from collections.abc import Iterable, Iterator

import msgspec

from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import DISRUPTION_PAUSED, LAUNCH_FAILURES, LAUNCHES_PAUSED, SCHEDULE
from shared.model.core.metadata import Pairs, Problem
from shared.model.karpenter.health.launch_failures import LaunchPause, find_launch_pause
from shared.model.karpenter.node_pool import NodePool
from shared.model.karpenter.pause import (
    CLUSTER_NAMESPACE,
    LAUNCH_WORDS,
    SET_BY_PERSON_TEXT,
    WORDS_BY_ANNOTATION,
    Pause,
    PauseScope,
    parse_pauses_cached,
)


class ActivePause(msgspec.Struct, frozen=True, kw_only=True):
    """A pause, and the object whose annotation has it."""

    pool: PauseScope = ""
    key: str
    """The key of the annotation."""
    pause: Pause
    is_intentional: bool = True
    """Whether a person has set it; an annotation that cannot be read or parsed is treated as a pause."""
    windows: str = ""
    """The names of the open windows of the NodePool's schedule, if the schedule pauses."""
    failures: LaunchPause | None = None
    """Why Joiner itself pauses launches: nodes of the NodePool's EC2NodeClass do not register."""

    def build_message(self) -> str:
        """Return who paused, and how to resume."""
        if self.failures is not None:
            return self.pause.because
        description = self.pause.describe()
        if self.windows:
            fix = f"to resume now, remove paused= from window {self.windows}"
            return f"{description}; {SCHEDULE} of NodePool {self.pool} {SET_BY_PERSON_TEXT}: {fix}"
        owner = f"NodePool {self.pool}" if self._is_on_node_pool() else f"Namespace {CLUSTER_NAMESPACE}"
        message = f"{self.key} of {owner} {SET_BY_PERSON_TEXT}: to resume, run {self.get_resume_command()}"
        return f"{description}; {message}" if description else message

    def get_resume_command(self) -> str:
        """Return the command that ends the pause, or for a schedule the change of the annotation."""
        if self.failures is not None:
            return f"`kubectl annotate ec2nodeclass {self.failures.node_class} {LAUNCH_FAILURES}-`"
        if self.windows:
            return f"a change of window {self.windows} in {SCHEDULE}"
        return f"`joiner resume{f' --nodepool {self.pool}' if self._is_on_node_pool() else ''}`"

    def _is_on_node_pool(self) -> bool:
        """Return whether the annotation is on the NodePool itself."""
        return bool(self.pool and not self.pause.pools)


def list_active_pauses(cluster: ClusterSnapshot) -> tuple[tuple[ActivePause, ...], tuple[Problem, ...]]:
    """Return the active pauses, those of the cluster first, and the problems of annotations that cannot be parsed.

    An annotation that cannot be parsed pauses everything that it might apply to.
    """
    active_pauses: list[ActivePause] = []
    problems: list[Problem] = []
    for pool, annotations in _iterate_annotations(cluster):
        for key, words in WORDS_BY_ANNOTATION.items():
            text = dict(annotations).get(key, "")
            is_meant = True
            try:
                pauses = parse_pauses_cached(text, words)
                _check_pools(pool, pauses)
            except ValueError as error:
                kind, name = ("NodePool", pool) if pool else ("Namespace", CLUSTER_NAMESPACE)
                affected = "of it" if pool else "at all"
                effect = f"nothing {affected} is {'disrupted' if key == DISRUPTION_PAUSED else 'launched'}"
                message = f"metadata.annotations[{key}]: {error}; {effect}"
                problems.append(Problem(kind=kind, name=name, message=message))
                pauses, is_meant = (Pause(reasons=tuple(words), because=f"it cannot be read: {error}"),), False
            active_pauses += (
                ActivePause(pool=scope, key=key, pause=pause, is_intentional=is_meant)
                for pause in pauses
                if pause.is_active(cluster.taken_at)
                for scope in pause.pools or (pool,)
            )
    active_pauses += _list_scheduled_pauses(cluster)
    active_pauses += _list_failure_pauses(cluster)
    active_pauses += _build_unreadable_pauses(cluster)
    return tuple(active_pauses), tuple(problems)


def find_launch_pause_message(pool: NodePool, cluster: ClusterSnapshot) -> str:
    """Return why no node is launched for *pool*; "" if launches are not paused, or a node may be launched as a test."""
    active_pauses, _ = list_active_pauses(msgspec.structs.replace(cluster, node_pools=(pool,)))
    matching_pauses = (
        active_pause
        for active_pause in active_pauses
        if active_pause.key == LAUNCHES_PAUSED
        and active_pause.pool in ("", pool.name)
        and not (active_pause.failures is not None and active_pause.failures.is_test_due(cluster.taken_at))
    )
    return next((f"launches are paused: {active_pause.build_message()}" for active_pause in matching_pauses), "")


def count_allowed_claims(node_class: str, cluster: ClusterSnapshot) -> int | None:
    """Return how many NodeClaims of EC2NodeClass *node_class* may be created now; None: any number.

    While its launches are paused, it is one for a test that is due, unless a NodeClaim already waits for its launch.
    """
    for item in cluster.node_classes:
        pause = find_launch_pause(item, cluster.node_claims, cluster.taken_at) if item.name == node_class else None
        if pause is not None:
            has_waiting_claim = any(
                claim.node_class.name == node_class and not claim.is_launched() and not claim.is_deleting()
                for claim in cluster.node_claims
            )
            return int(pause.is_test_due(cluster.taken_at) and not has_waiting_claim)
    return None


def _iterate_annotations(cluster: ClusterSnapshot) -> Iterator[tuple[PauseScope, Pairs]]:
    yield from (("", namespace.annotations) for namespace in cluster.namespaces if namespace.name == CLUSTER_NAMESPACE)
    yield from (
        (node_pool.name, node_pool.meta.annotations)
        for node_pool in sorted(cluster.node_pools, key=lambda node_pool: node_pool.name)
    )


def _list_scheduled_pauses(cluster: ClusterSnapshot) -> Iterator[ActivePause]:
    """Yield the pauses of the NodePools' schedules."""
    paused_pools = (pool for pool in cluster.node_pools if pool.scheduled_pauses)
    for pool in sorted(paused_pools, key=lambda pool: pool.name):
        schedule = pool.schedule
        windows = (
            [] if schedule is None else [w for w in schedule.list_open_windows(cluster.taken_at) if w.values.paused]
        )
        names = ", ".join(window.name for window in windows)
        ends = [end for window in windows if (end := window.calendar.find_end(cluster.taken_at)) is not None]
        for key, words in WORDS_BY_ANNOTATION.items():
            reasons = tuple(sorted(set(words) & set(pool.scheduled_pauses)))
            if reasons:
                pause = Pause(reasons=reasons, until=max(ends, default=None), because=f"schedule window {names}")
                yield ActivePause(pool=pool.name, key=key, pause=pause, windows=names)


def _list_failure_pauses(cluster: ClusterSnapshot) -> Iterator[ActivePause]:
    """Yield a pause of launches for each NodePool whose EC2NodeClass has nodes that do not register."""
    pause_by_class = {
        node_class.name: pause
        for node_class in cluster.node_classes
        if (pause := find_launch_pause(node_class, cluster.node_claims, cluster.taken_at)) is not None
    }
    for pool in sorted(cluster.node_pools, key=lambda pool: pool.name) if pause_by_class else ():
        if (pause := pause_by_class.get(pool.node_class.name)) is not None:
            because = pause.describe(cluster.taken_at)
            yield ActivePause(
                pool=pool.name,
                key=LAUNCHES_PAUSED,
                pause=Pause(reasons=LAUNCH_WORDS, author="Joiner", since=pause.since, because=because),
                is_intentional=False,
                failures=pause,
            )


def _build_unreadable_pauses(cluster: ClusterSnapshot) -> Iterator[ActivePause]:
    """Yield a pause of everything if the Namespace with the pauses of the cluster could not be read."""
    if any(problem.kind == "Namespace" and problem.name == CLUSTER_NAMESPACE for problem in cluster.problems):
        for key, words in WORDS_BY_ANNOTATION.items():
            yield ActivePause(
                key=key, pause=Pause(reasons=words, because="the Namespace cannot be read"), is_intentional=False
            )


def _check_pools(pool: PauseScope, pauses: Iterable[Pause]) -> None:
    """Check that a NodePool's annotation does not name NodePools.

    Raises:
        ValueError: it does.
    """
    if pool and (named_pools := next((pause.pools for pause in pauses if pause.pools), ())):
        raise ValueError(
            f"'in {','.join(named_pools)}' is not allowed on a NodePool, which pauses only itself: remove it"
        )
