"""What is held back: by people, until when and why, or by Joiner itself; and how it goes on."""

from collections.abc import Iterable, Iterator
from typing import Final

from cli.checks.facts import Facts, Kubernetes, Notice, Unseen
from cli.checks.findings import Finding, Findings
from cli.paused import paused_text
from cli.text import age, some
from shared.model.cluster import Cluster
from shared.model.holds import held_in

NAMED: Final = 3


def pauses(facts: Facts) -> Iterator[Finding]:
    """Is something held back that somebody may have forgotten, or that nobody meant?"""
    seen, say = facts.kubernetes, Findings("pauses")
    if seen is None:
        return
    if isinstance(seen.namespaces, Unseen):
        yield say.unseen("what is paused", seen.namespaces, "list on namespaces")
        return
    if isinstance(seen.node_pools, Unseen):
        yield say.unseen("what is paused of NodePools", seen.node_pools, "list on nodepools.karpenter.sh")
    pools = () if isinstance(seen.node_pools, Unseen) else seen.node_pools
    cluster = Cluster(taken_at=facts.now, node_pools=pools, namespaces=seen.namespaces)
    held, unread = held_in(cluster)
    for one in unread:
        yield say.fail(
            f"{one.kind} {one.name}: {one.message}", "`joiner resume` clears it, `joiner pause` writes it anew"
        )
    for each in held:
        yield say.warn(paused_text(each, facts.now), f"{each.resumed_by()} ends it now")
    itself = list(_by_itself(seen, facts, say))
    if not held and not any(one.level == "warn" for one in itself):
        also = ", and Joiner holds nothing back by itself" if seen.notices == () else ""
        yield say.ok(f"nothing is paused by an annotation{also}")
    yield from itself


def _by_itself(seen: Kubernetes, facts: Facts, say: Findings) -> Iterator[Finding]:
    if isinstance(seen.notices, Unseen):
        yield say.unseen("what Joiner holds back by itself", seen.notices, "list on events in the namespace default")
        return
    for message, told in sorted(_by_message(seen.notices or ()).items()):
        pools = sorted({one.pool for one in told})
        when = age(facts.now - max(one.at for one in told))
        what = f"NodePool {some(pools, NAMED)}: {message} (it said so {when} ago)"
        yield say.warn(what, f"`joiner explain nodepool {pools[0]}` has what led to it; it goes on by itself")


def _by_message(told: Iterable[Notice]) -> dict[str, list[Notice]]:
    found: dict[str, list[Notice]] = {}
    for one in told:
        found.setdefault(one.message, []).append(one)
    return found
