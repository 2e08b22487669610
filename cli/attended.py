"""Looks after a playground that runs: samples, orders that are typed, and whether the control plane lives."""

import shlex
import sys
from datetime import datetime, timedelta
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final

from shared.errors import Fault
from sim.playground import Playground
from sim.playground_told import Commentary

ORDERS: Final = {
    "interrupt [NODE]": "EC2 takes a spot node back in two minutes (without NODE: the busiest)",
    "rebalance [NODE]": "EC2 says that a spot node is in danger",
    "kill [NODE]": "the instance dies at once",
    "status": "count nodes, pods and dollars now",
    "help": "this list",
    "quit": "end, as Ctrl-C does",
}
LOOK_EVERY: Final = timedelta(seconds=2)


class Attended:
    """Who looks after it while it runs."""

    def __init__(self, playground: Playground, commentary: Commentary, deaths: Any) -> None:  # noqa: ANN401
        """Look after *playground*, and say what happens by *commentary*; *deaths* answers what ended by itself."""
        self.died = ""
        """What ended by itself, with its last words."""
        self._playground, self._commentary, self._deaths = playground, commentary, deaths
        self._looked: datetime | None = None
        self._orders: SimpleQueue[str] = SimpleQueue()
        Thread(target=self._listen, name="orders", daemon=True).start()

    def tend(self) -> bool:
        """Do what is due; answer whether it is over."""
        now = self._playground.clock.now()
        if self._looked is None or now - self._looked >= LOOK_EVERY:
            self._looked = now
            self.died = str(self._deaths())
            if self._commentary.look():
                self._commentary.say("", "")
        return bool(self.died) or self._obey()

    def _listen(self) -> None:
        """Read what is typed, until there is nothing more to read."""
        for line in sys.stdin:
            self._orders.put(line)
            self._playground.drive.wake()

    def _obey(self) -> bool:
        """Follow the orders that came; answer whether one of them was to end."""
        while True:
            try:
                words = shlex.split(self._orders.get_nowait())
            except Empty:
                return False
            except ValueError as error:
                self._commentary.say("you", f"not understood: {error}")
                continue
            if words[:1] == ["quit"]:
                return True
            if words:
                self._follow(*words[:2])

    def _follow(self, order: str, node: str = "") -> None:
        cloud = self._playground.cloud
        strikes = {"interrupt": cloud.interrupt_spot, "rebalance": cloud.recommend_rebalance, "kill": cloud.kill}
        try:
            if order in strikes:
                chosen = node or self._playground.busiest()
                strikes[order](self._playground.instance_of(chosen))
                self._commentary.say("you", f"{order} {chosen}")
            elif order == "status":
                self._commentary.look()
                self._commentary.say("you", "status")
            else:
                sys.stdout.writelines(f"  {name:18} {says}\n" for name, says in ORDERS.items())
        except (Fault, ValueError) as error:
            self._commentary.say("you", f"{order} {node}".rstrip() + ": cannot be done", str(error))
