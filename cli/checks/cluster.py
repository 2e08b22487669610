"""The cluster: who is let in, what is defined, who else scales it."""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from cli.checks.facts import ClassFacts, Facts, Stack, Unseen, Workload
from cli.checks.findings import Finding, Findings
from cli.text import some
from shared.kube.compatibility import lacking, unusable

NEEDED: Final = ("ec2nodeclasses.karpenter.k8s.aws", "nodeclaims.karpenter.sh", "nodepools.karpenter.sh")
"""Definitions without which nothing goes."""
DEPLOY: Final = "`npx cdk deploy` makes it"
NAMED: Final = 3
CONTROLLERS: Final = {"karpenter": ("karpenter/controller", "karpenter"), "autoscaler": ("cluster-autoscaler",) * 2}
"""By a part of the image, and the name."""


def control_plane(facts: Facts) -> Iterator[Finding]:
    """Is there such a cluster, and is it active?"""
    if facts.account is None:
        return
    plane, say, name = facts.account.plane, Findings("cluster"), facts.account.cluster
    if isinstance(plane, Unseen):
        yield say.unseen(f"cluster {name}", plane, "eks:DescribeCluster")
    elif plane is None:
        yield say.fail(f"{facts.account.region} has no cluster {name}", _meant(name, facts.account.clusters))
    elif plane.status != "ACTIVE":
        yield say.warn(f"cluster {name} is {plane.status}", "wait until it is ACTIVE")
    else:
        yield say.ok(f"{name}: Kubernetes {plane.version}, ACTIVE")


def _meant(name: str, known: tuple[str, ...] | Unseen) -> str:
    """Say which cluster may be meant."""
    if isinstance(known, Unseen):
        return "check --cluster and --region: `aws eks list-clusters` has their names"
    if not known:
        return "it has none at all: check --region, and whose account it is"
    close = get_close_matches(name, known, n=1)
    meant = f"did you mean {close[0]}? " if close else ""
    return f"{meant}--cluster is one of {some(known, NAMED)}"


def authentication(facts: Facts) -> Iterator[Finding]:
    """Do access entries count?"""
    plane, say = facts.plane, Findings("authentication")
    if plane is None:
        return
    if plane.authentication == "CONFIG_MAP":
        command = "aws eks update-cluster-config --access-config authenticationMode=API_AND_CONFIG_MAP --name"
        yield say.fail(
            "the cluster knows only the ConfigMap aws-auth: access entries do not count", f"{command} {_name(facts)}"
        )
    elif not plane.authentication:
        yield say.unseen("whom the cluster lets in", Unseen(why="EKS does not say"), "")
    else:
        yield say.ok(f"{plane.authentication}: access entries count")


def access_entries(facts: Facts) -> Iterator[Finding]:
    """Are functions and nodes let in?"""
    if facts.account is None or facts.account.plane is None:
        return
    entries, say = facts.account.entries, Findings("access-entries")
    if isinstance(entries, Unseen):
        yield say.unseen("access entries", entries, "eks:ListAccessEntries")
        return
    yield from _functions_entries(facts.stack, entries, say)
    for one in facts.account.classes:
        yield from _nodes_entry(one, entries, say, _name(facts))


def _functions_entries(stack: Stack | None, entries: tuple[str, ...], say: Findings) -> Iterator[Finding]:
    if stack is None or isinstance(stack.functions, Unseen):
        return
    shut_out = [one.name for one in stack.functions if one.role_arn not in entries]
    if shut_out:
        yield say.fail(f"no access entry for the role of {', '.join(shut_out)}", "deploy the stack again")
    elif stack.functions:
        yield say.ok(f"the roles of {len(stack.functions)} functions have entries")


def _nodes_entry(one: ClassFacts, entries: tuple[str, ...], say: Findings, cluster: str) -> Iterator[Finding]:
    who = f"EC2NodeClass {one.node_class.name}"
    if isinstance(one.role_arn, Unseen):
        yield say.unseen(f"{who}: the role of its nodes", one.role_arn, "iam:GetInstanceProfile")
    elif one.role_arn and one.role_arn not in entries:
        kind = "EC2_WINDOWS" if one.node_class.ami_family.startswith("Windows") else "EC2_LINUX"
        made = f"aws eks create-access-entry --cluster-name {cluster} --type {kind} --principal-arn {one.role_arn}"
        yield say.warn(
            f"{who}: {one.role_arn} has no access entry: nodes join only if the ConfigMap aws-auth has it",
            made,
        )
    elif one.role_arn:
        yield say.ok(f"{who}: nodes come as {one.role_arn.rpartition('/')[2]}")


def definitions(facts: Facts) -> Iterator[Finding]:
    """Are our kinds defined, and do they know our fields?"""
    if facts.kubernetes is None:
        return
    live, say = facts.kubernetes.definitions, Findings("definitions")
    if isinstance(live, Unseen):
        yield say.unseen("CustomResourceDefinitions", live, "list on customresourcedefinitions")
        return
    known = {one["metadata"]["name"]: one for one in live}
    shipped = {one["metadata"]["name"]: one for one in facts.shipped}
    missing = [name for name in NEEDED if name not in known]
    if missing:
        yield _missing(facts, say, ", ".join(missing))
    wrong = [f"{name}: {why}" for name in shipped if name in known for why in unusable(shipped[name], known[name])]
    for line in wrong:
        yield say.fail(line, "upgrade the definition, or let Joiner have it (docs/installer.md)")
    lacks = {name: lacking(shipped[name], known[name]) for name in shipped if name in known}
    for name, fields in lacks.items():
        if fields:
            what = f"{name} does not know {some(fields, NAMED)}: what is written there is lost"
            yield say.warn(what, "upgrade the definition if you use these")
    if not missing and not wrong and not any(lacks.values()):
        yield say.ok(f"{len(shipped.keys() & known.keys())} definitions, with all our fields")


def _missing(facts: Facts, say: Findings, names: str) -> Finding:
    if facts.is_installed is False:
        return say.later(f"not defined yet: {names}", DEPLOY)
    return say.fail(f"not defined: {names}", "deploy the stack again; docs/installer.md")


def rights(facts: Facts) -> Iterator[Finding]:
    """May the functions do anything in the cluster?"""
    if facts.kubernetes is None:
        return
    bound, say = facts.kubernetes.is_bound, Findings("rights")
    if isinstance(bound, Unseen):
        yield say.unseen("the functions' rights", bound, "get on clusterrolebindings")
    elif bound:
        yield say.ok("ClusterRoleBinding joiner-functions is there")
    elif facts.is_installed is False:
        yield say.later("the functions have no rights in the cluster yet", DEPLOY)
    else:
        yield say.fail("there is no ClusterRoleBinding joiner-functions", "deploy the stack again; docs/installer.md")


def autoscalers(facts: Facts) -> Iterator[Finding]:
    """Does somebody else make nodes?"""
    say = Findings("autoscalers")
    if facts.plane is not None and facts.plane.has_auto_mode:
        what = "EKS Auto Mode is on: it makes nodes for the same pods"
        yield say.warn(what, "let its NodePools and yours select different pods, or switch it off")
    if facts.kubernetes is None:
        return
    workloads = facts.kubernetes.workloads
    if isinstance(workloads, Unseen):
        yield say.unseen("other autoscalers", workloads, "list on deployments")
        return
    found = list(_active(workloads, say, is_installed=facts.is_installed is not False))
    yield from found or [say.ok("no other autoscaler runs as a Deployment")]


def _active(workloads: tuple[Workload, ...], say: Findings, *, is_installed: bool) -> Iterator[Finding]:
    for one in workloads:
        where = f"Deployment {one.namespace}/{one.name}"
        scale = f"kubectl -n {one.namespace} scale deployment {one.name} --replicas 0"
        if one.replicas and _is("karpenter", one):
            what = f"{where} is a Karpenter with {one.replicas} replicas, which acts on the same objects"
            made = say.fail if is_installed else say.warn
            yield made(what, f"{scale}{'' if is_installed else ', just before you deploy'}")
        elif one.replicas and _is("autoscaler", one):
            what = f"{where} is a Cluster Autoscaler: it makes nodes of its groups for the same pods"
            yield say.warn(
                what, f"{scale}, once NodePools have taken over (docs/guide/migrate-from-cluster-autoscaler.md)"
            )


def _is(which: str, one: Workload) -> bool:
    image, name = CONTROLLERS[which]
    return one.name == name or any(image in each for each in one.images)


def scheduler_log(facts: Facts) -> Iterator[Finding]:
    """Is the log on that `joiner:reaction=logs` is told by?"""
    settings = facts.stack.settings if facts.stack is not None else None
    if facts.plane is None or settings is None or settings.reaction != "logs":
        return
    say = Findings("scheduler-log")
    if "scheduler" in facts.plane.logs:
        yield say.ok("the scheduler's log is on")
    else:
        yield say.fail(
            "joiner:reaction is logs, and the scheduler's log is off",
            "switch it on (docs/reaction.md), or deploy with joiner:reaction=watch",
        )


def _name(facts: Facts) -> str:
    return facts.account.cluster if facts.account is not None else ""
