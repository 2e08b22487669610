"""EC2NodeClasses from files, for the commands that resolve them in an account."""

from collections.abc import Sequence
from datetime import datetime

from cli.inputs.documents import iterate_objects, read_documents
from cli.inputs.files import ErrorReporter
from cli.terminal.errors import InputError
from shared.model.karpenter.node_class import EC2NodeClass
from shared.take.manifests.snapshot_from_manifests import build_snapshot_from_documents

_NODE_CLASS_KINDS = ("EC2NodeClass", "AWSNodeTemplate")


def read_node_classes(filenames: Sequence[str], now: datetime, report_error: ErrorReporter) -> tuple[EC2NodeClass, ...]:
    """Read node classes, sorted by name; errors are passed to *report_error*, other kinds are ignored.

    Raises:
        InputError: there is no node class.
    """
    messages: list[str] = []
    documents = iterate_objects(read_documents(filenames, messages.append), messages.append)
    cluster = build_snapshot_from_documents(tuple(document.source for document in documents), now)
    messages.extend(
        f"{problem.kind} {problem.name}: {problem.message}"
        for problem in cluster.problems
        if problem.kind in _NODE_CLASS_KINDS
    )
    for line in messages:
        report_error(line)
    if cluster.node_classes:
        return cluster.node_classes
    if messages:
        raise InputError("no EC2NodeClass could be read")
    raise InputError(f"{', '.join(filenames)}: no EC2NodeClass of karpenter.k8s.aws/v1 in the input")
