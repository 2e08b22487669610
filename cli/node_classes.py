"""EC2NodeClasses from files, for the commands that ask what an account has for them."""

from collections.abc import Sequence
from datetime import datetime

from cli.files import InputError, Tell
from cli.inputs import documents_in, objects_of
from shared.model.nodeclasses import EC2NodeClass
from shared.snapshot.documents import cluster_from_documents

_KINDS = ("EC2NodeClass", "AWSNodeTemplate")


def node_classes_in(filenames: Sequence[str], now: datetime, tell: Tell) -> tuple[EC2NodeClass, ...]:
    """Read node classes, sorted by name; what cannot be read is told, what is something else is passed over.

    Raises:
        InputError: there is none.
    """
    told: list[str] = []
    objects = (one.source for one in objects_of(documents_in(filenames, told.append), told.append))
    cluster = cluster_from_documents(tuple(objects), now)
    told.extend(f"{one.kind} {one.name}: {one.message}" for one in cluster.problems if one.kind in _KINDS)
    for line in told:
        tell(line)
    if cluster.node_classes:
        return cluster.node_classes
    if told:
        raise InputError("no EC2NodeClass could be read")
    raise InputError(f"{', '.join(filenames)}: holds no EC2NodeClass of karpenter.k8s.aws/v1: name a file that does")
