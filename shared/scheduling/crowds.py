"""What other pods leave open, in words: which domains are taken, empty, or do not exist."""

from collections.abc import Iterable
from typing import Final

from shared.model.labels import HOSTNAME
from shared.scheduling.topology import Group

_NAMED: Final = 3


def told(group: Group) -> str:
    """Answer the rule of *group* with what its counts say, for whoever wrote the constraint."""
    detail = _spread(group) if group.rule.kind == "spread" else _neighbours(group)
    return f"{group.rule} ({detail})" if detail else str(group.rule)


def _spread(group: Group) -> str:
    rule = group.rule
    if rule.key == HOSTNAME:
        return f"maxSkew {rule.max_skew}"
    counts = {domain: count for domain, count in group.counts.items() if rule.allows(domain)}
    if not counts:
        return "no node that the pod may be on has that label, or can be made with it"
    if rule.min_domains is not None and len(counts) < rule.min_domains:
        return f"minDomains {rule.min_domains} while there are {len(counts)}"
    least = min(counts.values())
    fewest = [domain for domain, count in counts.items() if count == least]
    return f"maxSkew {rule.max_skew} while {_names(fewest)} {'has' if len(fewest) == 1 else 'have'} {least}"


def _neighbours(group: Group) -> str:
    """Answer where the pods are that have to be near, or must not be; of hosts that would say nothing."""
    if group.rule.key == HOSTNAME:
        return ""
    where = _names(domain for domain, count in group.counts.items() if count)
    if group.rule.kind == "affinity":
        return f"such pods are in {where}" if where else "no such pod has a place"
    return f"taken: {where}" if where else ""


def _names(domains: Iterable[str]) -> str:
    some = sorted(domains)
    more = len(some) - _NAMED
    return ", ".join(some[:_NAMED]) + (f" and {more} more" if more > 0 else "")
