"""Everything that is to be planned with: files, a live cluster, or both."""

import argparse
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from cli.files import InputError, Tell
from cli.inputs import documents_in, objects_of
from cli.installation import Beside, Installation
from cli.left_out import NAMED
from cli.manifests import Manifests, manifests
from cli.progress import progress
from cli.telling import tell
from cli.text import some
from shared.model.cluster import Cluster
from shared.model.objects import Problem
from shared.snapshot.documents import cluster_from_documents
from shared.snapshot.flat import Source
from shared.snapshot.kinds import LISTINGS
from shared.snapshot.optional import OPTIONAL

KEPT: Final = timedelta(minutes=5)
"""For so long a catalogue is not read again by who looks again and again."""
_CLAIM: Final = "PersistentVolumeClaim"


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """What was found."""

    cluster: Cluster
    told: tuple[str, ...]
    """What could not be read."""
    notes: tuple[str, ...]
    hints: tuple[str, ...] = ()
    """What may tell the region: ARN and endpoint of a live cluster."""
    places: Mapping[tuple[str, str], str] = {}
    """Where objects are written, by kind and name."""

    def placed(self, problem: Problem) -> str:
        """Answer *problem* in words, with the place where its object is written."""
        where = self.places.get((problem.kind, problem.name))
        return f"{f'{where}: ' if where else ''}{problem.kind} {problem.name}: {problem.message}"


def look_at(chosen: argparse.Namespace, now: datetime) -> Looked:
    """Read what *chosen* names, as of *now*.

    Raises:
        InputError: a live cluster cannot be read, or nothing of the files. What cannot be read of them is told.
    """
    told: list[str] = []
    assumed = chosen.assume_unschedulable
    if chosen.context is None and chosen.kubeconfig is None:
        with progress(f"reading {some(chosen.filename, NAMED)}"):
            found = _files(chosen.filename, told.append, {})
            if told and not found.objects:
                raise InputError("; ".join(told))
            cluster = cluster_from_documents(found.objects, now, assume_unschedulable=assumed is not False)
        return Looked(cluster=cluster, told=tuple(told), notes=found.notes, places=found.places)
    return _live(chosen, now, told)


def look_and_price(chosen: argparse.Namespace, *, is_live: bool, now: datetime) -> tuple[Looked, Cluster]:
    """Read what *chosen* names, and give the cluster the catalogue that is named; where none is, nothing has a price.

    Raises:
        InputError: a catalogue or a live cluster cannot be read.
    """
    from cli.catalogues import AWS, catalogue_at  # noqa: PLC0415 - the client library takes half a second
    from cli.sources import default_catalogue  # noqa: PLC0415

    looked = look_at(chosen, now)
    source = chosen.instance_types or default_catalogue(is_live=is_live)
    if source in ("", AWS):
        return looked, looked.cluster
    catalogue, problems = catalogue_at(source, looked.cluster, looked.hints, now)
    every = tuple(sorted({*looked.cluster.problems, *problems}))
    return looked, msgspec.structs.replace(looked.cluster, catalogue=catalogue, problems=every)


class Looking:
    """Looks again and again: the cluster each time, the catalogue, which is made once an hour, now and then."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        """Look at what *chosen* names."""
        self._chosen = chosen
        self._is_live = chosen.context is not None or chosen.kubeconfig is not None
        self._priced: Cluster | None = None

    def __call__(self) -> tuple[Looked, Cluster]:
        """Answer how it is now.

        Raises:
            InputError: as `look_and_price`.
        """
        now = datetime.now(UTC)
        if self._priced is None or now - self._priced.taken_at > KEPT:
            looked, self._priced = look_and_price(self._chosen, is_live=self._is_live, now=now)
            return looked, self._priced
        looked = look_at(self._chosen, now)
        return looked, msgspec.structs.replace(looked.cluster, catalogue=self._priced.catalogue)


def current_unless_named(chosen: argparse.Namespace) -> bool:
    """Mean the current context where *chosen* names neither files nor a cluster; answer whether one is looked at."""
    if not chosen.filename and chosen.context is None and chosen.kubeconfig is None:
        chosen.context = ""
    return chosen.context is not None or chosen.kubeconfig is not None


def current_and_told(chosen: argparse.Namespace, command: str) -> bool:
    """Do as `current_unless_named`; which context that is, *command* says before anything of it is listed.

    Raises:
        InputError: there is neither a name nor a kubeconfig.
    """
    if chosen.filename or chosen.context is not None or chosen.kubeconfig is not None:
        return current_unless_named(chosen)
    from cli.contexts import current  # noqa: PLC0415 - the client library takes half a second

    try:
        name = current("")
    except InputError as error:
        raise InputError(f"{error}; or name files with -f") from None
    if name:
        tell(command, [f"of the current context, {name}: -f names files, --context another"])
    return current_unless_named(chosen)


class Watched:
    """Looks again and again at a cluster, and at the installation beside it."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        """Look at what *chosen* names."""
        self._looking, self._beside = Looking(chosen), Beside(chosen)

    def __call__(self) -> tuple[Looked, Cluster, Installation | None]:
        """Answer how it is now.

        Raises:
            InputError: as `Looking`.
        """
        looked, cluster = self._looking()
        return looked, cluster, self._beside(looked.hints, cluster.taken_at)


def _live(chosen: argparse.Namespace, now: datetime, told: list[str]) -> Looked:
    from cli.kubeconfig import reach  # noqa: PLC0415 - the client library takes half a second
    from cli.live import all_waiting, default_storage_class, joined, live_cluster, running_labels  # noqa: PLC0415

    reached = reach(chosen.kubeconfig or "", chosen.context or "")
    wanted = (*OPTIONAL, *LISTINGS) if _are_features_on() else LISTINGS
    cluster, notes = live_cluster(reached.kube, now, reached.context, wanted)
    if chosen.assume_unschedulable:
        cluster = all_waiting(cluster)
    found = _files(chosen.filename, told.append, running_labels(cluster))
    found = msgspec.structs.replace(found, objects=tuple(_classed(found.objects, default_storage_class(cluster))))
    applied = cluster_from_documents(found.objects, now, assume_unschedulable=chosen.assume_unschedulable is not False)
    return Looked(
        cluster=joined(cluster, applied),
        told=tuple(told),
        notes=(*notes, *found.notes),
        hints=(reached.cluster, reached.server),
        places=found.places,
    )


def _files(sources: Iterable[str], tell: Tell, running: Mapping[str, list[Mapping[str, str]]]) -> Manifests:
    return manifests(objects_of(documents_in(sources, tell), tell), tell, running, are_features_on=_are_features_on())


def _are_features_on() -> bool:
    """Whether objects may count that otherwise nothing depends on."""
    return bool(os.environ.get("FEATURE_GATES") or os.environ.get("SCHEDULER_CONFIG"))


def _classed(objects: Iterable[Source], default: str) -> Iterator[Source]:
    """Iterate over *objects*; volume claims without class have the live cluster's default."""
    for one in objects:
        spec = one.get("spec") if isinstance(one, dict) else None
        if default and isinstance(one, dict) and one.get("kind") == _CLAIM and isinstance(spec, dict):
            yield one | {"spec": {"storageClassName": default} | spec}
        else:
            yield one
