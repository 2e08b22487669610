"""The name of a cluster's CloudFormation stack, for the deployment and for the commands that read the stack."""

from hashlib import sha256
from typing import Final

_DIGEST_CHARS: Final = 6


def format_stack_name(cluster: str) -> str:
    """Return the name of the stack of *cluster*.

    EKS allows ``_`` in cluster names, CloudFormation only letters, digits and ``-`` in stack names. A digest keeps
    clusters apart whose names differ only there.

    >>> format_stack_name("prod"), format_stack_name("prod_eu")
    ('joiner-prod', 'joiner-prod-eu-c0dc85')
    """
    if "_" not in cluster:
        return f"joiner-{cluster}"
    return f"joiner-{cluster.replace('_', '-')}-{sha256(cluster.encode()).hexdigest()[:_DIGEST_CHARS]}"
