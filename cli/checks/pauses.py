"""What people have paused: who, until when and why, and how it goes on."""

from collections.abc import Iterator

from cli.checks.facts import Facts, Unseen
from cli.checks.findings import Finding, Findings
from cli.paused import paused_text
from shared.model.cluster import Cluster
from shared.model.holds import held_in


def pauses(facts: Facts) -> Iterator[Finding]:
    """Is something held back that somebody may have forgotten?"""
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
    if not held:
        yield say.ok("nothing is paused by an annotation")
