"""What a simulated week consists of: NodePools, workloads, and the churn of a seed."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime

import msgspec

from sim.cloud.resources.commitments import AccountCommitments
from sim.soak.worlds.churn import ChurnEvent
from sim.soak.worlds.soak_workloads import ServiceWorkload, SoakNodePool, build_deployment, build_node_pool
from sim.world import manifests
from sim.world.manifests import Json


class WorldDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of cluster: everything is a function of the seed, the length and the size."""

    name: str
    description: str
    node_pools: tuple[SoakNodePool, ...]
    list_services: Callable[[float, int], tuple[ServiceWorkload, ...]]
    """Returns the Deployments that exist from the start, of a size and a seed."""
    build_churn: Callable[[float, int, float], tuple[ChurnEvent, ...]]
    """Returns the events of a number of days, a seed and a size, in order."""
    add_commitments: Callable[[AccountCommitments, float, datetime], None] | None = None
    """Adds Savings Plans and Reserved Instances for a size; None: the account has none."""

    def build_manifests(self, size: float = 1.0, seed: int = 1) -> Iterator[Json]:
        """Yield all initial manifests; *size* scales the number of pods."""
        yield manifests.build_node_class()
        yield from map(build_node_pool, self.node_pools)
        containers = [manifests.build_container("100m", "128Mi")]
        agent_spec = {"tolerations": [{"operator": "Exists"}], "containers": containers}
        yield manifests.build_workload("DaemonSet", "agent", agent_spec, "kube-system")
        for service in self.list_services(size, seed):
            yield build_deployment(service, service.replicas[0])
            if service.pod_budget:
                yield manifests.build_pod_budget(service.name, **service.pod_budget)


def with_policy(
    definition: WorldDefinition,
    policy: str,
    annotations: Iterable[tuple[str, str, str]],
    excluded_capacity_type: str = "",
) -> WorldDefinition:
    """Return *definition* with another consolidation policy and more annotations of NodePools.

    *policy*: for all NodePools; "" keeps theirs. *annotations*: NodePool (``*`` for all), key and value.
    *excluded_capacity_type*: NodePools with several capacity types do not allow it.
    """
    node_pools = tuple(
        msgspec.structs.replace(
            pool,
            policy=policy or pool.policy,
            capacity_types=tuple(name for name in pool.capacity_types if name != excluded_capacity_type)
            or pool.capacity_types,
            annotations={**pool.annotations, **_select_annotations(pool.name, annotations)},
        )
        for pool in definition.node_pools
    )
    return msgspec.structs.replace(definition, node_pools=node_pools)


def _select_annotations(pool: str, annotations: Iterable[tuple[str, str, str]]) -> Mapping[str, str]:
    return {key: value for pool_name, key, value in annotations if pool_name in (pool, "*")}
