"""The stored form of pods: columns, and tables of the values that many pods share.

The pods of one workload differ only in their names, nodes, counters and times. What they share is stored once, and
pods refer to it by an index. A decoded pod equals the encoded one, and two pods that shared a spec share it again.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Generic, TypeVar

import msgspec

from shared.model.core.metadata import Condition, ObjectMeta, OwnerReference, Pairs
from shared.model.kubernetes.pod import Pod, PodSpec

RowT = TypeVar("RowT")


class _SharedValues(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The values that pods of one workload share; *spec_index* is an index into the specs."""

    spec_index: int
    labels: Pairs
    namespace: str
    phase: str
    nominated_node_name: str
    priority: int
    priority_class: str
    restart_policy: str
    grace_period: timedelta
    active_deadline: timedelta | None
    annotations: Pairs
    finalizers: tuple[str, ...]
    owners: tuple[OwnerReference, ...]


_ConditionState = tuple[str, str, str, str, int]
"""A condition without its time: type, status, reason, message, observed generation."""


class PodColumns(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False):
    """The pods of a list, in order: one value per pod in each column."""

    names: list[str]
    uids: list[str]
    resource_versions: list[str]
    generations: list[int]
    created_at: list[datetime | None]
    started_at: list[datetime | None]
    deleted_at: dict[int, datetime]
    """By the index of the pod: few pods are being deleted."""
    restarts: dict[int, int]
    """By the index of the pod; pods without restarts are left out."""
    claim_names: dict[int, Pairs]
    """By the index of the pod; only of pods for which ResourceClaims were created."""
    node_indexes: list[int]
    shared_indexes: list[int]
    condition_indexes: list[int]
    condition_times: list[datetime | None]
    """The times of all conditions of the first pod, then of the second pod, and so on."""
    node_names: list[str]
    specs: list[PodSpec]
    shared_values: list[_SharedValues]
    condition_states: list[tuple[_ConditionState, ...]]


class _Table(Generic[RowT]):
    """Rows with indexes; equal keys have one row."""

    def __init__(self) -> None:
        """Start empty."""
        self.rows: list[RowT] = []
        self._index_by_key: dict[Hashable, int] = {}

    def get_index(self, key: Hashable, build_row: Callable[[], RowT]) -> int:
        """Return the index of the row of *key*, which *build_row* builds if it is new."""
        index = self._index_by_key.get(key)
        if index is None:
            index = self._index_by_key[key] = len(self.rows)
            self.rows.append(build_row())
        return index


def build_pod_columns(pods: Sequence[Pod]) -> PodColumns:
    """Return the columns of *pods*."""
    nodes, shared, states, specs = _Table[str](), _Table[_SharedValues](), _StateTable(), _Table[PodSpec]()
    metas = [pod.meta for pod in pods]
    return PodColumns(
        names=[meta.name for meta in metas],
        uids=[meta.uid for meta in metas],
        resource_versions=[meta.resource_version for meta in metas],
        generations=[meta.generation for meta in metas],
        created_at=[meta.created_at for meta in metas],
        started_at=[pod.started_at for pod in pods],
        deleted_at={index: meta.deleted_at for index, meta in enumerate(metas) if meta.deleted_at is not None},
        restarts={index: pod.restarts for index, pod in enumerate(pods) if pod.restarts},
        claim_names={index: pod.claim_names for index, pod in enumerate(pods) if pod.claim_names},
        node_indexes=[nodes.get_index(pod.node_name, lambda pod=pod: pod.node_name) for pod in pods],  # type: ignore[misc] # called at once
        shared_indexes=[_get_shared_index(pod, shared, specs) for pod in pods],
        condition_indexes=[states.get_index(pod.conditions) for pod in pods],
        condition_times=[condition.since for pod in pods for condition in pod.conditions],
        node_names=nodes.rows,
        specs=specs.rows,
        shared_values=shared.rows,
        condition_states=states.rows,
    )


def _get_shared_index(pod: Pod, shared: _Table[_SharedValues], specs: _Table[PodSpec]) -> int:
    """Return the index of the values that *pod* shares.

    Specs and labels are compared by identity, which is faster: the caller keeps them alive.
    """
    meta = pod.meta
    key = (
        id(pod.spec),
        id(meta.labels),
        meta.namespace,
        pod.phase,
        pod.nominated_node_name,
        pod.priority,
        pod.priority_class,
        pod.restart_policy,
        pod.grace_period,
        pod.active_deadline,
        meta.annotations,
        meta.finalizers,
        meta.owners,
    )

    def build_row() -> _SharedValues:
        return _SharedValues(specs.get_index(key[0], lambda: pod.spec), meta.labels, *key[2:])

    return shared.get_index(key, build_row)


class _StateTable:
    """A table of condition lists without their times."""

    def __init__(self) -> None:
        """Start empty."""
        self.rows: list[tuple[_ConditionState, ...]] = []
        self._index_by_row: dict[tuple[_ConditionState, ...], int] = {}

    def get_index(self, conditions: tuple[Condition, ...]) -> int:
        """Return the index of *conditions*."""
        row = tuple(
            [
                (condition.type, condition.status, condition.reason, condition.message, condition.observed_generation)
                for condition in conditions
            ]
        )
        index = self._index_by_row.setdefault(row, len(self.rows))
        if index == len(self.rows):
            self.rows.append(row)
        return index


def build_pods(columns: PodColumns) -> tuple[Pod, ...]:
    """Return the pods of *columns*.

    Raises:
        ValueError: the columns have different lengths.
        IndexError: an index is not in its table.
    """
    specs, deleted_at, restarts = columns.specs, columns.deleted_at, columns.restarts
    claim_names = columns.claim_names
    rows = zip(
        columns.names,
        columns.uids,
        columns.resource_versions,
        columns.generations,
        columns.created_at,
        columns.started_at,
        map(columns.node_names.__getitem__, columns.node_indexes),
        map(columns.shared_values.__getitem__, columns.shared_indexes),
        _iterate_conditions(columns),
        strict=True,
    )
    return tuple(
        [
            Pod(
                meta=ObjectMeta(
                    name=name,
                    namespace=shared.namespace,
                    uid=uid,
                    resource_version=resource_version,
                    generation=generation,
                    created_at=created_at,
                    deleted_at=deleted_at.get(index),
                    labels=shared.labels,
                    annotations=shared.annotations,
                    finalizers=shared.finalizers,
                    owners=shared.owners,
                ),
                spec=specs[shared.spec_index],
                node_name=node_name,
                nominated_node_name=shared.nominated_node_name,
                phase=shared.phase,
                priority=shared.priority,
                priority_class=shared.priority_class,
                grace_period=shared.grace_period,
                started_at=started_at,
                conditions=conditions,
                restarts=restarts.get(index, 0),
                restart_policy=shared.restart_policy,
                active_deadline=shared.active_deadline,
                claim_names=claim_names.get(index, ()),
            )
            for index, (
                name,
                uid,
                resource_version,
                generation,
                created_at,
                started_at,
                node_name,
                shared,
                conditions,
            ) in enumerate(rows)
        ]
    )


def _iterate_conditions(columns: PodColumns) -> Iterator[tuple[Condition, ...]]:
    """Yield the conditions of each pod.

    Raises:
        ValueError: the number of times does not match.
    """
    states_by_pod = [columns.condition_states[index] for index in columns.condition_indexes]
    if sum(map(len, states_by_pod)) != len(columns.condition_times):
        raise ValueError("the number of times is not the number of conditions")
    times = iter(columns.condition_times)
    for states in states_by_pod:
        yield tuple(
            [
                Condition(
                    type=type_,
                    status=status,
                    reason=reason,
                    message=message,
                    since=since,
                    observed_generation=generation,
                )
                for (type_, status, reason, message, generation), since in zip(states, times, strict=False)
            ]
        )
