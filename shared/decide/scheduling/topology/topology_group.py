"""Topology groups: pods counted by domain."""

from collections.abc import Iterable
from typing import Final

import msgspec

from shared.decide.scheduling.constraints.topology_constraint import TopologyConstraint
from shared.decide.scheduling.instance_types.masks import Mask
from shared.model.core.labels import HOSTNAME
from shared.model.core.requirements import Requirement

MAX_HOST_LEVELS: Final = 64
"""Limit up to which the number of pods on a host is kept as bits; larger numbers are only counted."""
UNBOUNDED: Final = 1 << 30
NO_LABEL: Final = ("", "")
ALL_TYPES: Final[Mask] = -1
"""All instance types."""


class TopologyGroup(msgspec.Struct, kw_only=True, eq=False):
    """A topology constraint and its counts; a domain without pods has a count of 0."""

    rule: TopologyConstraint
    counts: dict[str, int]
    host_levels: list[int]
    """Over the hostname: at index k, the nodes with more than k pods, as bits."""
    allowed_domains: dict[str, bool] = msgspec.field(default_factory=dict)
    """By domain: whether the rule counts it; forks share what they find out."""
    version: int = 0
    """It increases with every change of the counts."""
    cached_counts: tuple[int, int, bool] = (-1, 0, False)
    """A version, the lowest count at that version, and whether any domain had pods."""

    def find_open_domains(self, domain_requirement: Requirement, self_count: int) -> frozenset[str]:
        """Return the domains of *domain_requirement* that the constraint allows.

        *self_count*: 1 if the pod counts itself.
        """
        possible = (
            [domain for domain in self.counts if domain_requirement.has(domain)]
            if domain_requirement.complement
            else domain_requirement.values
        )
        kind, counts = self.rule.kind, self.counts
        if kind == "affinity":
            return self._find_affinity_domains(possible, self_count)
        if kind == "spread" and self.rule.key != HOSTNAME:
            max_count = self.rule.max_skew + self._get_cached_counts()[1] - self_count
            return frozenset([domain for domain in possible if domain in counts and counts[domain] <= max_count])
        return frozenset([domain for domain in possible if self.can_admit(domain, self_count)])

    def can_admit(self, domain: str, self_count: int) -> bool:
        """Return whether a pod is allowed in *domain* if its node can be in no other domain."""
        count = self.counts.get(domain, 0)
        match self.rule.kind:
            case "spread":
                is_known = domain in self.counts or self.rule.key == HOSTNAME
                return is_known and count + self_count <= self.rule.max_skew + self._get_cached_counts()[1]
            case "affinity":
                return count > 0 or (self_count > 0 and not self.has_pods())
            case _:
                return not count

    def has_pods(self) -> bool:
        """Return whether an affinity group has any pod: kube-scheduler then allows no pod to start a second domain."""
        return self._get_cached_counts()[2]

    def get_hosts_above(self, more_than: int) -> int:
        """Return the nodes, as bits, with more than *more_than* pods; 0 if that number is not kept as bits."""
        return self.host_levels[more_than] if more_than < len(self.host_levels) else 0

    def count_host_capacity(self, host: str, self_count: int, *, is_counted: bool) -> int:
        """Return how many more pods *host* may have before the counts change.

        *is_counted*: the pods raise the counts.
        """
        count, rule = self.counts.get(host, 0), self.rule
        match rule.kind:
            case "spread":
                return rule.max_skew - count if self_count else UNBOUNDED * (count <= rule.max_skew)
            case "affinity":
                return UNBOUNDED if count else int(self.can_admit(host, self_count))
            case _:
                return 0 if count else (1 if is_counted else UNBOUNDED)

    def add_pods(self, domains: Iterable[str], count: int) -> None:
        """Add *count* pods to each of *domains*."""
        for domain in domains:
            self.counts[domain] = self.counts.get(domain, 0) + count
        self.version += 1

    def add_pods_on_host(self, host: str, node_bit: int, count: int) -> None:
        """Add *count* pods to *host*, which is the node *node_bit*."""
        previous_count = self.counts.get(host, 0)
        self.counts[host] = previous_count + count
        self.version += 1
        for more_than in range(previous_count, min(previous_count + count, len(self.host_levels))):
            self.host_levels[more_than] |= node_bit

    def _get_cached_counts(self) -> tuple[int, int, bool]:
        if self.cached_counts[0] != self.version:
            kind = self.rule.kind
            is_populated = kind == "affinity" and any(self.counts.values())
            self.cached_counts = (self.version, self._compute_min_count() if kind == "spread" else 0, is_populated)
        return self.cached_counts

    def _compute_min_count(self) -> int:
        """Return the lowest count of all domains, which a domain may exceed by the skew.

        It is 0 for the hostname, because a new host has no pods.
        """
        rule = self.rule
        if rule.key == HOSTNAME:
            return 0
        if rule.min_domains is None and rule.is_anywhere:
            return min(self.counts.values(), default=0)
        allowed_domains = self.allowed_domains
        for domain in self.counts:
            if domain not in allowed_domains:
                allowed_domains[domain] = rule.is_domain_allowed(domain)
        eligible = [count for domain, count in self.counts.items() if allowed_domains[domain]]
        has_too_few_domains = rule.min_domains is not None and len(eligible) < rule.min_domains
        return 0 if has_too_few_domains else min(eligible, default=0)

    def _find_affinity_domains(self, possible: Iterable[str], self_count: int) -> frozenset[str]:
        populated_domains = frozenset([domain for domain in possible if self.counts.get(domain, 0)])
        if populated_domains or not self_count or self.has_pods():
            return populated_domains
        return frozenset(possible)


class CountingPlan(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """How pods on a node count in their groups, if everything about the node except its hostname is known."""

    host_groups: tuple[int, ...]
    fixed_domains: tuple[tuple[int, str], ...]
    """Pairs of group and domain."""
    dynamic_groups: tuple[int, ...]
    """Groups that must be evaluated for each pod."""
    undecided_groups: tuple[int, ...]
