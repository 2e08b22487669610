"""What is left over: instances without NodeClaim, NodeClaims without instance, launch templates of nothing."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from cli.checks.facts import Facts, Unseen
from cli.checks.findings import Finding, Findings
from cli.text import count, some

YOUNG: Final = timedelta(minutes=5)
"""EC2 and the API server may tell of a machine at different times."""
OLD: Final = timedelta(days=1)
NAMED: Final = 5


def leaks(facts: Facts) -> Iterator[Finding]:
    """Do NodeClaims and instances belong together?"""
    if facts.account is None or facts.kubernetes is None:
        return
    instances, claims, say = facts.account.instances, facts.kubernetes.node_claims, Findings("leaks")
    if isinstance(instances, Unseen):
        yield say.unseen("instances", instances, "ec2:DescribeInstances")
        return
    if isinstance(claims, Unseen):
        yield say.unseen("NodeClaims", claims, "list on nodeclaims.karpenter.sh")
        return

    def is_old(since: datetime | None) -> bool:
        return since is not None and facts.now - since > YOUNG

    known = {one.instance_id for one in claims if one.is_launched()}
    orphans = sorted(
        one.instance_id
        for one in instances
        if one.instance_id not in known and one.state == "running" and is_old(one.launched_at)
    )
    there = {one.instance_id for one in instances}
    empty = sorted(
        one.name
        for one in claims
        if one.is_launched() and not one.is_deleting() and one.instance_id not in there and is_old(one.meta.created_at)
    )
    if orphans:
        what = f"{count(len(orphans), 'instance')} without NodeClaim: {some(orphans, NAMED)}"
        yield say.fail(what, "`lifecycle` ends them within minutes: see its log if it does not")
    if empty:
        what = f"{count(len(empty), 'NodeClaim')} whose instance is not there: {some(empty, NAMED)}"
        yield say.fail(what, "`lifecycle` removes them within minutes: see its log if it does not")
    if not orphans and not empty:
        yield say.ok(f"{count(len(instances), 'instance')}, each with its NodeClaim")


def templates(facts: Facts) -> Iterator[Finding]:
    """Are launch templates collected?"""
    if facts.account is None:
        return
    found, say = facts.account.templates, Findings("launch-templates")
    if isinstance(found, Unseen):
        yield say.unseen("launch templates", found, "ec2:DescribeLaunchTemplates")
        return
    left = sorted(one.name for one in found if one.created_at is not None and facts.now - one.created_at > OLD)
    if left and facts.is_installed is False:
        what = f"{count(len(left), 'launch template')} of an earlier installation: {some(left, NAMED)}"
        yield say.warn(what, "aws ec2 delete-launch-template --launch-template-name NAME")
    else:
        yield say.ok(count(len(found), "launch template"))
