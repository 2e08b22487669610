"""What can be explained."""

from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["pod", "node", "nodepool", "nodeclaim", "command"]
KINDS: Final[dict[Kind, str]] = {
    "pod": "Pod",
    "node": "Node",
    "nodepool": "NodePool",
    "nodeclaim": "NodeClaim",
    "command": "Command",
}
"""As the journal spells them."""
