"""The session of a running playground: state samples, typed commands, and crashes of the control plane."""

import shlex
import sys
from datetime import datetime, timedelta
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final

from cli.playground.session_commands import PLAYGROUND_COMMANDS
from shared.errors import Fault
from sim.playground.playground import Playground
from sim.playground.reporter import PlaygroundReporter

SAMPLE_INTERVAL: Final = timedelta(seconds=2)


class PlaygroundSession:
    """Monitors a running playground and executes typed commands."""

    def __init__(self, playground: Playground, commentary: PlaygroundReporter, find_crash: Any) -> None:  # noqa: ANN401
        """Monitor *playground* and print events with *commentary*; *find_crash* returns the processes that crashed."""
        self.crash_message = ""
        """The process that exited by itself, with its last output; "" while all processes run."""
        self._playground, self._commentary, self._find_crash = playground, commentary, find_crash
        self._sampled_at: datetime | None = None
        self._command_lines: SimpleQueue[str] = SimpleQueue()
        Thread(target=self._read_commands, name="orders", daemon=True).start()

    def poll(self) -> bool:
        """Run what is due; return whether the session is over."""
        now = self._playground.clock.get_time()
        if self._sampled_at is None or now - self._sampled_at >= SAMPLE_INTERVAL:
            self._sampled_at = now
            self.crash_message = str(self._find_crash())
            if self._commentary.update_sample():
                self._commentary.report("", "")
        return bool(self.crash_message) or self._run_commands()

    def _read_commands(self) -> None:
        """Read typed lines until standard input ends."""
        for line in sys.stdin:
            self._command_lines.put(line)
            self._playground.drive.notify()

    def _run_commands(self) -> bool:
        """Run the commands that were typed; return whether one of them was `quit`."""
        while True:
            try:
                words = shlex.split(self._command_lines.get_nowait())
            except Empty:
                return False
            except ValueError as error:
                self._commentary.report("you", f"invalid command: {error}")
                continue
            if words[:1] == ["quit"]:
                return True
            if words:
                self._run_command(*words[:2])

    def _run_command(self, command: str, node: str = "") -> None:
        cloud = self._playground.cloud
        actions_by_command = {
            "interrupt": cloud.instances.interrupt,
            "rebalance": cloud.instances.send_rebalance_recommendation,
            "kill": cloud.instances.terminate_immediately,
        }
        try:
            if command in actions_by_command:
                node_name = node or self._playground.find_busiest_node()
                actions_by_command[command](self._playground.find_instance_id(node_name))
                self._commentary.report("you", f"{command} {node_name}")
            elif command == "status":
                self._commentary.update_sample()
                self._commentary.report("you", "status")
            else:
                sys.stdout.writelines(
                    f"  {name:18} {description}\n" for name, description in PLAYGROUND_COMMANDS.items()
                )
        except (Fault, ValueError) as error:
            self._commentary.report("you", f"{command} {node}".rstrip() + ": failed", str(error))
