"""Messages about topology groups: which domains are occupied, have the fewest pods, or do not exist."""

from collections.abc import Iterable
from typing import Final

from shared.decide.scheduling.topology.topology_group import TopologyGroup
from shared.model.core.formatting import join_names
from shared.model.core.labels import HOSTNAME

_MAX_DOMAINS_NAMED: Final = 3


def describe_topology_group(group: TopologyGroup) -> str:
    """Return the constraint of *group* with the counts that explain it, for the author of the constraint."""
    detail = _describe_spread(group) if group.rule.kind == "spread" else _describe_affinity(group)
    return f"{group.rule} ({detail})" if detail else str(group.rule)


def _describe_spread(group: TopologyGroup) -> str:
    rule = group.rule
    if rule.key == HOSTNAME:
        return f"maxSkew {rule.max_skew}"
    counts = {domain: count for domain, count in group.counts.items() if rule.is_domain_allowed(domain)}
    if not counts:
        return "no existing or possible node for the pod has that label"
    if rule.min_domains is not None and len(counts) < rule.min_domains:
        return f"minDomains {rule.min_domains} while there are {len(counts)}"
    lowest_count = min(counts.values())
    lowest_domains = [domain for domain, count in counts.items() if count == lowest_count]
    verb = "has" if len(lowest_domains) == 1 else "have"
    return f"maxSkew {rule.max_skew} while {_format_domains(lowest_domains)} {verb} {lowest_count}"


def _describe_affinity(group: TopologyGroup) -> str:
    """Return the domains that contain matching pods, for affinity and anti-affinity; "" for the hostname.

    Host names would not help the reader.
    """
    if group.rule.key == HOSTNAME:
        return ""
    occupied_domains = _format_domains(domain for domain, count in group.counts.items() if count)
    if group.rule.kind == "affinity":
        return f"matching pods are in {occupied_domains}" if occupied_domains else "no matching pod is scheduled"
    return f"matching pods are in {occupied_domains}" if occupied_domains else ""


def _format_domains(domains: Iterable[str]) -> str:
    return join_names(sorted(domains), _MAX_DOMAINS_NAMED)
