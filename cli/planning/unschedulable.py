"""Unschedulable pods as text: grouped by cause, with their workloads and the reason for each NodePool."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from cli.terminal.text import Palette, wrap_text
from shared.model.core.formatting import format_count, join_names
from shared.model.decisions.placement import Unschedulable
from shared.model.kubernetes.pod import Pod
from shared.model.kubernetes.pod_workload import find_deployment_name

MAX_LISTED_PODS: Final = 3
"""Maximum number of names in a list, unless all are requested."""
_POOL_PATTERN: Final = re.compile(r"(?:^|; )(?:NodePool|pool) (?P<name>\S+): ")
"""Messages of earlier versions say ``pool NAME``."""


def describe_workload(pod: Pod) -> str:
    """Return the workload of the pod, such as ``Deployment shop/web``; "" if there is none."""
    owner = next((reference for reference in pod.meta.owners if reference.controller), None)
    if owner is None:
        return ""
    if deployment_name := find_deployment_name(owner, pod):
        return f"Deployment {pod.meta.namespace}/{deployment_name}"
    return f"{owner.kind} {pod.meta.namespace}/{owner.name}"


def group_messages_by_pool(message: str) -> list[tuple[list[str], str]]:
    """Return pairs of NodePools and their message, in order; no NodePools if the message is not about NodePools.

    >>> group_messages_by_pool("NodePool a: too small; NodePool b: needs toleration x; NodePool c: too small")
    [(['a', 'c'], 'too small'), (['b'], 'needs toleration x')]
    >>> group_messages_by_pool("pool a: too small; pool b: needs toleration x")
    [(['a'], 'too small'), (['b'], 'needs toleration x')]
    >>> group_messages_by_pool("no NodePool exists: create one")
    [([], 'no NodePool exists: create one')]
    """
    matches = list(_POOL_PATTERN.finditer(message))
    if not matches or matches[0].start():
        return [([], message)]
    ends = [match.start() for match in matches[1:]] + [len(message)]
    pools_by_message: dict[str, list[str]] = {}
    for match, end in zip(matches, ends, strict=True):
        pools_by_message.setdefault(message[match.end() : end], []).append(match["name"])
    return [(pools, words) for words, pools in pools_by_message.items()]


def render_pool_messages(message: str, width: int | None, indent: str, max_names: int | None) -> Iterator[str]:
    """Yield lines with the reason for each NodePool."""
    for pools, words in group_messages_by_pool(message):
        prefix = format_pools(pools, max_names) if pools else ""
        yield from wrap_text(prefix + words, width, indent)


def format_pools(pools: Sequence[str], max_names: int | None) -> str:
    """Return the beginning of a message about *pools*.

    >>> format_pools(["a"], None), format_pools(["a", "b", "c"], 2)
    ('NodePool a: ', 'NodePools a, b and 1 more: ')
    """
    return f"{'NodePool' if len(pools) == 1 else 'NodePools'} {join_names(pools, max_names)}: "


def render_unschedulable_pods(
    failures: Iterable[Unschedulable],
    pods: Mapping[str, Pod],
    palette: Palette,
    *,
    width: int | None,
    max_groups: int | None,
) -> Iterator[str]:
    """Yield the lines about *failures*, largest group first; *max_groups* None: all, with all names."""
    sorted_failures = sorted(failures, key=lambda failure: (*_get_cause(failure), failure.pod))
    groups = [(cause, [failure.pod for failure in same]) for cause, same in groupby(sorted_failures, _get_cause)]
    groups.sort(key=lambda pair: (-len(pair[1]), pair[0]))
    max_names = None if max_groups is None else MAX_LISTED_PODS
    for (reason, message), names in groups[:max_groups]:
        title = f"{_describe_owners(names, pods, max_names)}: {reason}"
        yield from (palette.colorize("yellow", line) for line in wrap_text(title, width, "  "))
        yield from render_pool_messages(message, width, "    ", max_names)
    if hidden_groups := groups[len(groups) if max_groups is None else max_groups :]:
        pods_text = format_count(sum(len(names) for _, names in hidden_groups), "pod")
        reasons_text = format_count(len(hidden_groups), "other reason")
        yield f"  … and {pods_text} more for {reasons_text} (--all shows them)"


def _get_cause(failure: Unschedulable) -> tuple[str, str]:
    """Return what pods with the same cause share: the message without the pod's name, which volume claims contain."""
    name = failure.pod.partition("/")[2]
    pattern = rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])"
    return failure.reason, re.sub(pattern, "<pod>", failure.message) if name else failure.message


def _describe_owners(names: list[str], pods: Mapping[str, Pod], max_names: int | None) -> str:
    """Return the number of pods as text, with their workloads or their names."""
    owners = Counter(describe_workload(pods[name]) if name in pods else "" for name in names)
    ownerless_count = owners.pop("", 0)
    total = format_count(len(names), "pod")
    if not owners:
        return f"{total}: {join_names(names, max_names)}"
    if len(owners) == 1 and not ownerless_count:
        return f"{total} of {next(iter(owners))}"
    sorted_owners = sorted(owners.items(), key=lambda pair: (-pair[1], pair[0]))
    parts = [f"{number:,} of {owner}" for owner, number in sorted_owners]
    if ownerless_count:
        parts.append(f"{ownerless_count:,} without owner")
    return f"{total}: {join_names(parts, max_names)}"
