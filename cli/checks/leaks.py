"""What is left over, as `joiner audit` judges it: of what is looked at here anyway."""

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from cli.audit_facts import Asset, Evidence
from cli.audited import audited
from cli.checks.facts import Account, Facts, Kubernetes, Unseen
from cli.checks.findings import Finding, Findings
from cli.text import count, some
from shared.model.cluster import Cluster

NAMED: Final = 5
AUDIT: Final = "joiner audit"
_TEMPLATE: Final = "LaunchTemplate"
_PARTS: Final = ("nodes", "node_pools", "node_classes", "node_claims")


def leaks(facts: Facts) -> Iterator[Finding]:
    """Do instances, NodeClaims and Nodes belong together?"""
    if facts.account is None or facts.kubernetes is None:
        return
    say, evidence = Findings("leaks"), _evidence(facts, facts.account)
    if isinstance(evidence.instances, Unseen):
        yield say.unseen("instances", evidence.instances, "ec2:DescribeInstances")
        return
    if isinstance(evidence.cluster, Unseen):
        yield say.unseen("NodeClaims", evidence.cluster, "list on nodes and on nodeclaims.karpenter.sh")
        return
    found = [one for one in audited(evidence) if one.kind != _TEMPLATE]
    leaked = [one for one in found if one.is_leaked]
    for (kind, why), same in groupby(leaked, key=lambda one: (one.kind, _cause(one))):
        names = [one.name for one in same]
        yield say.fail(f"{count(len(names), kind)}: {some(names, NAMED)}: {why}", f"`{AUDIT}` has what removes it")
    if not leaked:
        yield say.ok(f"{count(len(evidence.instances), 'instance')}, each with its NodeClaim")


def _cause(one: Asset) -> str:
    """Answer why it is a leak, without what is of this one only."""
    return one.why.partition(":")[0].partition(", held by")[0]


def templates(facts: Facts) -> Iterator[Finding]:
    """Are launch templates collected?"""
    if facts.account is None:
        return
    found, say = facts.account.templates, Findings("launch-templates")
    if isinstance(found, Unseen):
        yield say.unseen("launch templates", found, "ec2:DescribeLaunchTemplates")
        return
    left = [one for one in audited(_evidence(facts, facts.account)) if one.kind == _TEMPLATE and one.is_leaked]
    if left:
        names = some([one.name for one in left], NAMED)
        yield say.warn(f"{count(len(left), 'launch template')} of an earlier installation: {names}", left[0].remedy)
    else:
        yield say.ok(count(len(found), "launch template"))


def _evidence(facts: Facts, account: Account) -> Evidence:
    return Evidence(
        now=facts.now,
        name=account.cluster,
        cluster=_cluster(facts),
        instances=account.instances,
        templates=account.templates,
        attached=(),
        named=(),
        commands=(),
        is_installed=facts.is_installed,
    )


def _cluster(facts: Facts) -> Cluster | Unseen:
    """Answer what the API server has; of a part that was not seen nothing else could be said."""
    seen = facts.kubernetes
    if seen is None:
        return Unseen(why="it was not asked")
    hidden = (one for name in _PARTS if isinstance(one := getattr(seen, name), Unseen))
    return next(hidden, None) or _whole(seen, facts)


def _whole(seen: Kubernetes, facts: Facts) -> Cluster:
    return Cluster(taken_at=facts.now, **{name: getattr(seen, name) for name in _PARTS})
