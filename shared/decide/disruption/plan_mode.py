"""Plan mode: disruption is decided and reported but not started until it is enabled for the installation.

Commands that were started earlier continue. Involuntary disruption (interruption, expiration, repair) is not held back.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from shared.decide.common.events import build_event
from shared.model.decisions.action import Action
from shared.model.decisions.disruption_verdict import DisruptedVerdict, KeptVerdict, Verdict
from shared.state.cluster_state import ClusterState

PLANNED_REASON: Final = "Planned"
ENABLE_HINT: Final = "the setting disruption is plan: to enable disruption, deploy with the setting disruption: active"


def convert_to_planned(verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """Return *verdicts* with disrupted nodes as kept ones, in the same order."""
    return tuple(_keep_disrupted(verdict) if isinstance(verdict, DisruptedVerdict) else verdict for verdict in verdicts)


def _keep_disrupted(verdict: DisruptedVerdict) -> KeptVerdict:
    return KeptVerdict(
        node=verdict.node,
        reason=PLANNED_REASON,
        message=f"would be disrupted, {verdict.reason}: {verdict.message}; {ENABLE_HINT}",
    )


def describe_planned(verdicts: Iterable[Verdict], cluster_state: ClusterState) -> Iterator[Action]:
    """Yield an event for each NodePool with the number of its nodes that would be disrupted."""
    pool_by_node = {state.name: state.pool for state in cluster_state.nodes}
    count_by_pool = Counter(
        pool_by_node[verdict.node]
        for verdict in verdicts
        if verdict.reason == PLANNED_REASON and verdict.node in pool_by_node
    )
    for pool in sorted(cluster_state.snapshot.node_pools, key=lambda pool: pool.name):
        if count_by_pool[pool.name]:
            message = (
                f"{count_by_pool[pool.name]} of its nodes would be disrupted, `joiner explain node NAME` "
                f"shows why; {ENABLE_HINT}"
            )
            yield build_event("NodePool", pool.meta, "DisruptionPlanned", message, cluster_state.taken_at)
