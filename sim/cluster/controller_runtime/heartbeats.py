"""Heartbeats of kubelets, kept as state: a lease renewal every ten seconds would change nothing but a timestamp."""

from collections.abc import Callable

HeartbeatListener = Callable[[str], None]


class Heartbeats:
    """The nodes with a known kubelet, and whether each still sends heartbeats."""

    def __init__(self) -> None:
        """Start without known nodes."""
        self._is_alive_by_node: dict[str, bool] = {}
        self._listeners: list[HeartbeatListener] = []

    def add_listener(self, listener: HeartbeatListener) -> None:
        """Call *listener* with the name of each node that starts or stops sending heartbeats."""
        self._listeners.append(listener)

    def start(self, node: str) -> None:
        """Mark *node* as sending heartbeats from now on."""
        self._set_state(node, is_alive=True)

    def stop(self, node: str) -> None:
        """Mark *node* as silent from now on."""
        self._set_state(node, is_alive=False)

    def is_silent(self, node: str) -> bool:
        """Return whether *node* stopped sending heartbeats; False for a node without a simulated kubelet."""
        return self._is_alive_by_node.get(node) is False

    def _set_state(self, node: str, *, is_alive: bool) -> None:
        self._is_alive_by_node[node] = is_alive
        for listener in self._listeners:
            listener(node)
