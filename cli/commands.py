"""The commands of `joiner`: their names, groups and one line of help for each."""

from typing import Final

COMMANDS: Final = {
    "audit": "find leaked resources: instances, nodes and other objects without an owner",
    "catalog": "build and show a catalog of instance types, prices and zones",
    "completion": "print the completion script for your shell",
    "consolidate": "show which nodes disruption would remove or replace, and the savings",
    "convert": "convert manifests of older Karpenter versions to v1",
    "cost": "show node costs by day, NodePool, instance type or label",
    "demo": "run a scenario on a simulated cloud and cluster",
    "doctor": "check that the cluster, the account and the installation are ready and healthy",
    "drift": "list drifted nodes, with the old and the new value",
    "explain": "explain the state of a pod, node, NodePool, NodeClaim or command",
    "group": "show what the clusters of a group use of their limit in USD per hour",
    "history": "show the workload history, or build it from decision records",
    "hub": "show many clusters, also of several accounts, in one table",
    "lint": "check manifests for mistakes, without a cluster",
    "nodeclass": "show the subnets, images and instance types that an EC2NodeClass selects",
    "pause": "pause disruption or launches for a while",
    "plan": "show where pending pods would be scheduled, and the price",
    "playground": "start a real control plane with a simulated cloud",
    "rebalance": "compare the fleet with the cheapest possible fleet",
    "replay": "run a recorded decision again, with the current code or changed objects",
    "report": "write a report of the fleet, its cost, decisions and blocked nodes",
    "resume": "end a pause",
    "status": "show nodes, cost, pending pods and problems",
    "top": "list nodes, most expensive first, and refresh the list",
    "ui": "show the fleet on an interactive page: map, timeline, charts, reasons, what-if",
    "uninstall": "remove all nodes of Joiner from a cluster, before `cdk destroy`",
}
COMMAND_GROUPS: Final = {
    "Inspect": ("status", "top", "ui", "cost", "explain", "drift", "report", "replay", "history", "group", "hub"),
    "Plan": ("plan", "consolidate", "rebalance", "catalog", "nodeclass"),
    "Control": ("pause", "resume"),
    "Check": ("doctor", "audit", "lint"),
    "Install and migrate": ("convert", "uninstall"),
    "Try it": ("demo", "playground"),
    "Shell": ("completion",),
}
"""Commands by topic, in display order; a command without a group is listed last."""
HELP_COMMAND: Final = "help"
MODULES: Final = {
    "nodeclass": "cli.node_class.command",
    "rebalance": "cli.consolidate.rebalance_command",
    "resume": "cli.pause.resume_command",
    "top": "cli.status.top_command",
}
"""Modules of the commands that have no folder of their own name."""


def get_command_module(command: str) -> str:
    """Return the dotted name of the module that implements *command*."""
    return MODULES.get(command, f"cli.{command}.command")
