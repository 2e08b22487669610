"""The kinds of objects that `joiner explain` explains."""

from typing import Final, Literal, TypeAlias

ExplainKind: TypeAlias = Literal["pod", "node", "nodepool", "nodeclaim", "command"]
EXPLAIN_KINDS: Final[dict[ExplainKind, str]] = {
    "pod": "Pod",
    "node": "Node",
    "nodepool": "NodePool",
    "nodeclaim": "NodeClaim",
    "command": "Command",
}
"""Each kind as the journal spells it."""
