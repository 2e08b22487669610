"""The commands of `joiner`: their names, groups and one line of help for each."""

from typing import Final

COMMANDS: Final = {
    "audit": "what there is of ours in account and cluster, and what nothing accounts for",
    "catalog": "what the cloud sells, as the file that `plan` reads",
    "completion": "the script that completes commands, options and names in your shell",
    "consolidate": "what disruption would do, step by step, and what it saves",
    "convert": "older manifests, as karpenter.sh/v1",
    "cost": "what nodes cost, by the day, NodePool, type or label, and what was saved and idle",
    "demo": "the main job on an embedded cloud and cluster",
    "doctor": "whether cluster, account and installation are fit, with remedies",
    "drift": "which nodes have drifted, from what to what",
    "explain": "why a pod, node, NodePool, NodeClaim or command is as it is",
    "lint": "what is wrong with manifests, before a cluster sees them",
    "nodeclass": "what an EC2NodeClass comes to in an account",
    "pause": "hold disruption or launches back for a while, without a deployment",
    "plan": "where pending pods would go, and for how much",
    "playground": "a real control plane with an embedded cloud, to play with",
    "rebalance": "what the best fleet would cost, what lies between, and the steps there",
    "replay": "a stored decision, made again by today's code or with other objects",
    "report": "one page: the fleet, its cost over time, decisions, what is blocked and why",
    "resume": "take back what `pause` said",
    "status": "what there is, what it costs, what waits and what is wrong",
    "top": "the nodes, dearest first, refreshed like `top`",
    "uninstall": "what leads to an empty cluster and account before `cdk destroy`",
}
COMMAND_GROUPS: Final = {
    "look": ("status", "top", "cost", "explain", "drift", "report", "replay"),
    "plan": ("plan", "consolidate", "rebalance", "catalog", "nodeclass"),
    "steer": ("pause", "resume"),
    "check": ("doctor", "audit", "lint"),
    "come and go": ("convert", "uninstall"),
    "try out": ("demo", "playground"),
    "shell": ("completion",),
}
"""Commands by topic, in display order; a command without a group is listed last."""
HELP_COMMAND: Final = "help"


MODULES: Final = {
    "nodeclass": "cli.node_class.command",
    "rebalance": "cli.consolidate.rebalance_command",
    "resume": "cli.pause.resume_command",
    "top": "cli.status.top_command",
}
"""Modules of the commands that do not have a folder of their name."""


def get_command_module(command: str) -> str:
    """Return the dotted name of the module that implements *command*."""
    return MODULES.get(command, f"cli.{command}.command")
