"""Leaked resources, as in `joiner audit`, limited to the facts that `joiner doctor` reads anyway."""

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from cli.audit.assets import Asset, AuditEvidence
from cli.audit.rules import list_assets
from cli.doctor.checks.finding import CheckReporter, CheckResult
from cli.facts.model import AccountFacts, DoctorFacts, KubernetesFacts, ReadFailure
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count, join_names
from shared.state.cluster_state import ClusterState

MAX_LISTED_NAMES: Final = 5
AUDIT_COMMAND: Final = "joiner audit"
_LAUNCH_TEMPLATE_KIND: Final = "LaunchTemplate"
_CLUSTER_FIELDS: Final = ("nodes", "node_pools", "node_classes", "node_claims")


def check_leaks(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that instances, NodeClaims and Nodes belong together."""
    if facts.account is None or facts.kubernetes is None:
        return
    check, evidence = CheckReporter("leaks"), _build_evidence(facts, facts.account)
    if isinstance(evidence.instances, ReadFailure):
        yield check.skip("instances", evidence.instances, "ec2:DescribeInstances")
        return
    if isinstance(evidence.cluster_state, ReadFailure):
        yield check.skip("NodeClaims", evidence.cluster_state, "list on nodes and on nodeclaims.karpenter.sh")
        return
    assets = [asset for asset in list_assets(evidence) if asset.kind != _LAUNCH_TEMPLATE_KIND]
    leaked = [asset for asset in assets if asset.is_leaked]
    for (kind, cause), same_assets in groupby(leaked, key=lambda asset: (asset.kind, _get_cause(asset))):
        names = [asset.name for asset in same_assets]
        message = f"`{AUDIT_COMMAND}` prints the command that removes it"
        yield check.fail(f"{format_count(len(names), kind)}: {join_names(names, MAX_LISTED_NAMES)}: {cause}", message)
    if not leaked:
        yield check.accept(f"{format_count(len(evidence.instances), 'instance')}, each with a NodeClaim")


def _get_cause(asset: Asset) -> str:
    """Return why *asset* is a leak, without the details of that asset."""
    return asset.leak_reason.partition(":")[0].partition(", held by")[0]


def check_launch_templates(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that there are no launch templates of an earlier installation."""
    if facts.account is None:
        return
    launch_templates, check = facts.account.launch_templates, CheckReporter("launch-templates")
    if isinstance(launch_templates, ReadFailure):
        yield check.skip("launch templates", launch_templates, "ec2:DescribeLaunchTemplates")
        return
    leaked_templates = [
        asset
        for asset in list_assets(_build_evidence(facts, facts.account))
        if asset.kind == _LAUNCH_TEMPLATE_KIND and asset.is_leaked
    ]
    if leaked_templates:
        names = join_names([template.name for template in leaked_templates], MAX_LISTED_NAMES)
        yield check.warn(
            f"{format_count(len(leaked_templates), 'launch template')} of an earlier installation: {names}",
            leaked_templates[0].fix,
        )
    else:
        yield check.accept(format_count(len(launch_templates), "launch template"))


def _build_evidence(facts: DoctorFacts, account: AccountFacts) -> AuditEvidence:
    return AuditEvidence(
        now=facts.now,
        cluster_name=account.cluster,
        cluster_state=_get_cluster_state(facts),
        instances=account.instances,
        templates=account.launch_templates,
        attached=(),
        named_resources=(),
        commands=(),
        is_installed=facts.is_installed,
    )


def _get_cluster_state(facts: DoctorFacts) -> ClusterState | ReadFailure:
    """Return the indexed cluster snapshot; if a part could not be read, its failure."""
    kubernetes = facts.kubernetes
    if kubernetes is None:
        return ReadFailure(reason="the cluster is not checked")
    failures = (failure for name in _CLUSTER_FIELDS if isinstance(failure := getattr(kubernetes, name), ReadFailure))
    return next(failures, None) or _build_cluster_state(kubernetes, facts)


def _build_cluster_state(kubernetes: KubernetesFacts, facts: DoctorFacts) -> ClusterState:
    fields = {name: getattr(kubernetes, name) for name in _CLUSTER_FIELDS}
    return ClusterState(ClusterSnapshot(taken_at=facts.now, **fields))
