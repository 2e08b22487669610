"""The commands that users type while a playground runs."""

from typing import Final

PLAYGROUND_COMMANDS: Final = {
    "interrupt [NODE]": "interrupt a Spot node, with a warning two minutes before (without NODE: the busiest node)",
    "rebalance [NODE]": "send a rebalance recommendation for a Spot node",
    "kill [NODE]": "terminate the instance immediately",
    "status": "print the number of nodes and pods, and the cost",
    "help": "list the commands",
    "quit": "stop the playground, like Ctrl-C",
}
