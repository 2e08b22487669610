"""Who still gives signs of life: state, because a renewal every ten seconds would change nothing but the time."""

from collections.abc import Callable

Listener = Callable[[str], None]


class Heartbeats:
    """The nodes whose kubelet is known, and whether it still beats."""

    def __init__(self) -> None:
        """Begin knowing nobody."""
        self._beating: dict[str, bool] = {}
        self._listeners: list[Listener] = []

    def on_change(self, listener: Listener) -> None:
        """Tell *listener* the name of a node that began or ceased to beat."""
        self._listeners.append(listener)

    def begin(self, node: str) -> None:
        """*node* beats from now on."""
        self._set(node, beating=True)

    def cease(self, node: str) -> None:
        """*node* is silent from now on."""
        self._set(node, beating=False)

    def is_silent(self, node: str) -> bool:
        """Say whether *node* has ceased; a node that never had a kubelet of ours is left alone."""
        return self._beating.get(node) is False

    def _set(self, node: str, *, beating: bool) -> None:
        self._beating[node] = beating
        for listener in self._listeners:
            listener(node)
