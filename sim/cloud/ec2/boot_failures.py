"""Which instances run without becoming nodes."""

from collections import Counter


class BootFailures:
    """The instances that will fail to boot: the next ones, and all of some instance types."""

    def __init__(self) -> None:
        """Start without failures."""
        self._failed_boots_by_type: Counter[str] = Counter()
        self._failing_types: set[str] = set()

    def fail_next_boot(self, instance_type: str = "") -> None:
        """Make the next instance (of *instance_type*, if given) run without becoming a node."""
        self._failed_boots_by_type[instance_type] += 1

    def set_boot_failure(self, instance_type: str, *, failing: bool = True) -> None:
        """Make all new instances of *instance_type* run without becoming nodes, or stop doing so."""
        (self._failing_types.add if failing else self._failing_types.discard)(instance_type)

    def consume_boot_failure(self, instance_type: str) -> bool:
        """Return whether a new instance of *instance_type* fails to boot; a failure of one instance is used up."""
        for failing_type in (instance_type, ""):
            if self._failed_boots_by_type[failing_type] > 0:
                self._failed_boots_by_type[failing_type] -= 1
                return True
        return instance_type in self._failing_types
