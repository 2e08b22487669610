"""Pods without a place, as a person reads of them: by what kept them out, whose they are, and NodePool by NodePool."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Final

from cli.text import Palette, count, folded, some
from shared.model.pods import Pod
from shared.scheduling.placement import Unschedulable

NAMED: Final = 3
"""So many pods are named where there may be thousands."""
_POOL: Final = re.compile(r"(?:^|; )pool (?P<name>\S+): ")
_HASH: Final = "pod-template-hash"


def workload_of(pod: Pod) -> str:
    """Answer whose the pod is, as ``Deployment shop/web``; "" if nobody's."""
    owner = next((one for one in pod.meta.owners if one.controller), None)
    if owner is None:
        return ""
    suffix = f"-{pod.meta.label(_HASH)}"
    if owner.kind == "ReplicaSet" and len(suffix) > 1 and owner.name.endswith(suffix):
        return f"Deployment {pod.meta.namespace}/{owner.name.removesuffix(suffix)}"
    return f"{owner.kind} {pod.meta.namespace}/{owner.name}"


def by_pool(message: str) -> list[tuple[list[str], str]]:
    """Answer what NodePools say, each saying with its pools in order; no pools where it is not a pool that says it.

    >>> by_pool("pool a: too small; pool b: needs toleration x; pool c: too small")
    [(['a', 'c'], 'too small'), (['b'], 'needs toleration x')]
    >>> by_pool("there is no NodePool: create one")
    [([], 'there is no NodePool: create one')]
    """
    found = list(_POOL.finditer(message))
    if not found or found[0].start():
        return [([], message)]
    ends = [match.start() for match in found[1:]] + [len(message)]
    said: dict[str, list[str]] = {}
    for match, end in zip(found, ends, strict=True):
        said.setdefault(message[match.end() : end], []).append(match["name"])
    return [(pools, words) for words, pools in said.items()]


def pool_lines(message: str, width: int | None, indent: str, most: int | None) -> Iterator[str]:
    """Iterate over lines of what each pool says."""
    for pools, words in by_pool(message):
        whose = f"{'pool' if len(pools) == 1 else 'pools'} {some(pools, most)}: " if pools else ""
        yield from folded(whose + words, width, indent)


def left_out_lines(
    left_out: Iterable[Unschedulable],
    pods: Mapping[str, Pod],
    palette: Palette,
    *,
    width: int | None,
    most: int | None,
) -> Iterator[str]:
    """Iterate over lines for the pods *left_out*, most pods first; *most* groups, None: all, with every name."""
    causes = sorted(left_out, key=lambda one: (*_cause(one), one.pod))
    groups = [(cause, [one.pod for one in same]) for cause, same in groupby(causes, _cause)]
    groups.sort(key=lambda pair: (-len(pair[1]), pair[0]))
    named = None if most is None else NAMED
    for (reason, message), names in groups[:most]:
        head, *rest = folded(f"{_whose(names, pods, named)}: {reason}", width, "  ")
        yield from (palette.paint("yellow", line) for line in (head, *rest))
        yield from pool_lines(message, width, "    ", named)
    others = groups[len(groups) if most is None else most :]
    if others:
        number = sum(len(names) for _, names in others)
        yield f"  … and {count(number, 'pod')} more for {count(len(others), 'other reason')} (--all shows them)"


def _cause(one: Unschedulable) -> tuple[str, str]:
    """Answer what several pods have in common; their own names, in those of their volume claims, are not it."""
    name = re.escape(one.pod.partition("/")[2])
    return one.reason, re.sub(rf"(?<![a-z0-9]){name}(?![a-z0-9])", "<pod>", one.message) if name else one.message


def _whose(names: list[str], pods: Mapping[str, Pod], most: int | None) -> str:
    """Say how many pods there are, and of whom, or which."""
    owners = Counter(workload_of(pods[name]) if name in pods else "" for name in names)
    bare = owners.pop("", 0)
    total = count(len(names), "pod")
    if not owners:
        return f"{total}: {some(names, most)}"
    if len(owners) == 1 and not bare:
        return f"{total} of {next(iter(owners))}"
    ranked = sorted(owners.items(), key=lambda pair: (-pair[1], pair[0]))
    said = [f"{number:,} of {owner}" for owner, number in ranked] + ([f"{bare:,} without owner"] if bare else [])
    return f"{total}: {some(said, most)}"
