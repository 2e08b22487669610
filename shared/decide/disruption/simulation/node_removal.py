"""Nodes that are removed one after the other in a simulation, which is used only when it is needed."""

from shared.decide.disruption.simulation.simulation import SchedulingSimulation
from shared.model.kubernetes.pod import Pod


class NodeRemoval:
    """Nodes whose pods are placed elsewhere with at most one new node, each node on top of the earlier ones."""

    def __init__(self, simulation: SchedulingSimulation, first_node: str) -> None:
        """Remove *first_node* when a trial needs it."""
        self._simulation, self._nodes, self._simulated_count = simulation, [first_node], 0
        self.open_count_before = len(simulation.packing.open_nodes)
        """Number of new nodes that are not for these pods."""

    def can_place_first(self) -> bool:
        """Remove the first node and return whether all its pods are placed."""
        self._simulation.begin(max_new_nodes=1)
        self._simulated_count = 1
        return not self._simulation.place_pods(self._clear(self._nodes[0]))

    def begin_trial(self, node: str) -> list[Pod]:
        """Begin a trial in which *node* is removed too; return its pods."""
        if not self._simulated_count:
            self.can_place_first()
        for accepted_node in self._nodes[self._simulated_count :]:
            self._simulation.place_pods(self._begin(accepted_node))
            self._simulation.commit()
        self._simulated_count = len(self._nodes)
        return self._begin(node)

    def commit_trial(self, node: str) -> None:
        """Keep *node* removed after its trial."""
        self._simulation.commit()
        self._nodes.append(node)
        self._simulated_count = len(self._nodes)

    def add_without_trial(self, node: str) -> None:
        """Keep *node* removed; it is simulated before the next trial."""
        self._nodes.append(node)

    def roll_back_trial(self) -> None:
        """Undo the trial."""
        self._simulation.roll_back()

    def roll_back(self) -> None:
        """Undo the removal of all nodes."""
        if self._simulated_count:
            self._simulation.roll_back()

    def _begin(self, node: str) -> list[Pod]:
        new_node_count = len(self._simulation.packing.open_nodes) - self.open_count_before
        self._simulation.begin(max_new_nodes=1 - new_node_count)
        return self._clear(node)

    def _clear(self, node: str) -> list[Pod]:
        return self._simulation.clear_node(self._simulation.node_numbers[node])
