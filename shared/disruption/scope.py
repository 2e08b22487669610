"""What methods of disruption decide on: a snapshot, indexed once, with what is known of pods that come and go."""

from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from shared.disruption.candidates import Blocked, Candidate, Field, assess, field_of
from shared.disruption.drifting import DRIFTED
from shared.disruption.drifts import recovered
from shared.disruption.eligibility import refuses_pods
from shared.disruption.exchange import Exchanges
from shared.disruption.layout import Layout, lay_out
from shared.disruption.rooms import Rooms
from shared.disruption.terms import Terms
from shared.model.cluster import Cluster
from shared.model.objects import is_true
from shared.model.state import StateNode, pool_usage
from shared.scheduling.headroom import plan
from shared.scheduling.placement import Options
from shared.scheduling.results import units_of

DEFAULT: Final = Terms()
NOWHERE: Final[Mapping[str, str]] = MappingProxyType({})


class Scope:
    """What methods decide on; one for a sweep, or for looking at one command again."""

    def __init__(
        self, cluster: Cluster, options: Options, busy: frozenset[str], homes: Mapping[str, str], terms: Terms
    ) -> None:
        """Index the snapshot, and plan where pods will be that wait or that leave nodes which are going."""
        self.cluster, self.options, self.busy, self.terms = cluster, options, busy, terms
        planned = plan(cluster, excluded=busy, options=options)
        self.headroom = planned.holding()
        engaged = {pod.name for pod in cluster.pods if pod.node_name in busy}
        fits = {pod: fit.node for fit in planned.of_pods().existing for pod in fit.pods if pod not in engaged}
        self.expected = {pod: node for pod, node in homes.items() if pod in engaged} | fits
        self.field: Field = field_of(cluster, frozenset(self.expected.values()))
        self.rooms = Rooms(self.field, terms, busy)
        self._recovered = recovered(cluster)

    def has_drifted(self, state: StateNode) -> bool:
        """Whether its claim is called drifted, and nothing in the snapshot speaks against it."""
        claim = state.claim
        return claim is not None and is_true(claim.conditions, DRIFTED) and claim.name not in self._recovered

    def assessed(self, *, eventual: bool = False) -> dict[str, Candidate | Blocked]:
        """Answer, by name, what each node is that is not in a command."""
        return {
            one.name: assess(one, self.field, "eventual" if eventual else "graceful")
            for one in self.field.states
            if one.name not in self.busy
        }

    def lay_out(self, last: Iterable[Candidate], gone: Collection[str]) -> Layout:
        """Lay out the ground without nodes *gone*: what stays is filled first, the *last* in their order last."""
        places = {one.name: place for place, one in enumerate(reversed(list(last)), start=1)}
        states = sorted(
            self.field.states,
            key=lambda one: (not one.is_initialized(), self.has_drifted(one), places.get(one.name, 0), one.name),
        )
        layout = lay_out(self.cluster, states, {*self.busy, *gone}, self.expected, self.options)
        self.close(layout, lambda state: not state.is_initialized())
        if self.terms.frees_limits:
            layout.ground.frees = self._frees(layout)
        return layout

    def _frees(self, layout: Layout) -> dict[int, tuple[str, Mapping[str, int]]]:
        """Answer, by node of a NodePool with limits, that pool and what the node takes of them."""
        limited = {pool.name for pool in self.cluster.node_pools if pool.limits is not None}
        some = (one for one in self.field.states if one.pool in limited and one.name in layout.ground.numbers)
        return {layout.ground.numbers[one.name]: (one.pool, dict(pool_usage((one,), one.pool).amounts)) for one in some}

    def close(self, layout: Layout, when: Callable[[StateNode], bool]) -> None:
        """Let nodes take no more pods for which *when* says so."""
        ground = layout.ground
        for state in self.field.states:
            number = ground.numbers.get(state.name)
            if number is not None and when(state):
                ground.sealed |= 1 << number

    def exchanges(self, layout: Layout) -> Exchanges:
        """Answer who judges exchanges."""
        return Exchanges(
            layout.axes,
            units_of(layout.ground, self.cluster),
            spot_to_spot=self.terms.spot_to_spot,
            most_types=self.options.max_instance_types,
            taken=frozenset(claim.name for claim in self.cluster.node_claims),
        )

    def quiet(self, layout: Layout) -> None:
        """Leave pods alone that have just come to their nodes, as consolidation has to."""
        self.close(layout, lambda state: refuses_pods(state, self.field))
