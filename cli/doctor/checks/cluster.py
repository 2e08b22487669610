"""Checks of the cluster: access entries, CRDs, RBAC and other autoscalers."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Final

from cli.doctor.checks.finding import CheckReporter, CheckResult
from cli.facts.model import DeploymentFacts, DoctorFacts, NodeClassFacts, ReadFailure, StackFacts
from shared.crds.compatibility import find_incompatibilities, find_missing_fields
from shared.installer.rbac import list_enabled_features
from shared.model.core.formatting import format_count, join_names

MIN_VERSION_WITH_CLAIMS: Final = (1, 34)
"""The first version of Kubernetes that serves resource.k8s.io/v1."""
REQUIRED_CRDS: Final = ("ec2nodeclasses.karpenter.k8s.aws", "nodeclaims.karpenter.sh", "nodepools.karpenter.sh")
"""CRDs without which Joiner cannot work."""
DEPLOY_FIX: Final = "run `npx cdk deploy -c cluster=NAME`"
MAX_LISTED_NAMES: Final = 3
AUTOSCALER_IDENTIFIERS: Final = {
    "karpenter": ("karpenter/controller", "karpenter"),
    "autoscaler": ("cluster-autoscaler",) * 2,
}
"""Part of the image, and the name of the Deployment."""


def check_control_plane(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that the cluster exists and is ACTIVE."""
    if facts.account is None:
        return
    control_plane, check, name = facts.account.control_plane, CheckReporter("cluster"), facts.account.cluster
    if isinstance(control_plane, ReadFailure):
        yield check.skip(f"cluster {name}", control_plane, "eks:DescribeCluster")
    elif control_plane is None:
        yield check.fail(
            f"{facts.account.region} has no cluster {name}", _suggest_cluster(name, facts.account.cluster_names)
        )
    elif control_plane.status != "ACTIVE":
        yield check.warn(f"cluster {name} is {control_plane.status}", "wait until it is ACTIVE")
    else:
        yield check.accept(f"{name}: Kubernetes {control_plane.version}, ACTIVE")


def _suggest_cluster(name: str, cluster_names: tuple[str, ...] | ReadFailure) -> str:
    """Return the fix for a cluster *name* that does not exist: the closest name, or the existing ones."""
    if isinstance(cluster_names, ReadFailure):
        return "check --cluster and --region; `aws eks list-clusters` lists the clusters"
    if not cluster_names:
        return "the region has no clusters: check --region and the account"
    close = get_close_matches(name, cluster_names, n=1)
    suggestion = f"did you mean {close[0]}? " if close else ""
    return f"{suggestion}--cluster must be one of {join_names(cluster_names, MAX_LISTED_NAMES)}"


def check_authentication(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that the cluster's authentication mode accepts access entries."""
    control_plane, check = facts.control_plane, CheckReporter("authentication")
    if control_plane is None:
        return
    if control_plane.authentication_mode == "CONFIG_MAP":
        command = "aws eks update-cluster-config --access-config authenticationMode=API_AND_CONFIG_MAP --name"
        message = f"{command} {_get_cluster_name(facts)}"
        yield check.fail("the cluster uses only the ConfigMap aws-auth: access entries have no effect", message)
    elif not control_plane.authentication_mode:
        yield check.skip("the authentication mode", ReadFailure(reason="EKS returned none"), "")
    else:
        yield check.accept(f"{control_plane.authentication_mode}: access entries are enabled")


def check_access_entries(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that the roles of functions and nodes have access entries."""
    if facts.account is None or facts.account.control_plane is None:
        return
    principal_arns, check = facts.account.access_entries, CheckReporter("access-entries")
    if isinstance(principal_arns, ReadFailure):
        yield check.skip("access entries", principal_arns, "eks:ListAccessEntries")
        return
    yield from _check_function_entries(facts.stack, principal_arns, check)
    for class_facts in facts.account.node_classes:
        yield from _check_node_entry(class_facts, principal_arns, check, _get_cluster_name(facts))


def _check_function_entries(
    stack: StackFacts | None, principal_arns: tuple[str, ...], check: CheckReporter
) -> Iterator[CheckResult]:
    if stack is None or isinstance(stack.functions, ReadFailure):
        return
    functions_without_entry = [function.name for function in stack.functions if function.role_arn not in principal_arns]
    if functions_without_entry:
        yield check.fail(
            f"no access entry for the role of {', '.join(functions_without_entry)}", "deploy the stack again"
        )
    elif stack.functions:
        yield check.accept(f"the roles of {format_count(len(stack.functions), 'function')} have access entries")


def _check_node_entry(
    class_facts: NodeClassFacts, principal_arns: tuple[str, ...], check: CheckReporter, cluster: str
) -> Iterator[CheckResult]:
    subject = f"EC2NodeClass {class_facts.node_class.name}"
    if isinstance(class_facts.role_arn, ReadFailure):
        yield check.skip(f"{subject}: the role of its nodes", class_facts.role_arn, "iam:GetInstanceProfile")
    elif class_facts.role_arn and class_facts.role_arn not in principal_arns:
        kind = "EC2_WINDOWS" if class_facts.node_class.ami_family.startswith("Windows") else "EC2_LINUX"
        command = (
            f"aws eks create-access-entry --cluster-name {cluster} --type {kind} --principal-arn {class_facts.role_arn}"
        )
        yield check.warn(
            f"{subject}: {class_facts.role_arn} has no access entry: nodes join only if aws-auth lists the role",
            command,
        )
    elif class_facts.role_arn:
        yield check.accept(f"{subject}: nodes have the role {class_facts.role_arn.rpartition('/')[2]}")


def check_crds(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that the CRDs exist, are usable and have all fields that Joiner uses."""
    if facts.kubernetes is None:
        return
    live_crds, check = facts.kubernetes.crds, CheckReporter("crds")
    if isinstance(live_crds, ReadFailure):
        yield check.skip("CustomResourceDefinitions", live_crds, "list on customresourcedefinitions")
        return
    live_by_name = {crd["metadata"]["name"]: crd for crd in live_crds}
    shipped_by_name = {crd["metadata"]["name"]: crd for crd in facts.shipped_crds}
    missing = [name for name in REQUIRED_CRDS if name not in live_by_name]
    if missing:
        yield _build_missing_result(facts, check, ", ".join(missing))
    incompatibilities = [
        f"{name}: {problem}"
        for name in shipped_by_name
        if name in live_by_name
        for problem in find_incompatibilities(shipped_by_name[name], live_by_name[name])
    ]
    for incompatibility in incompatibilities:
        yield check.fail(incompatibility, "upgrade the CRD, or let Joiner install it (docs/installer.md)")
    missing_fields_by_name = {
        name: find_missing_fields(shipped_by_name[name], live_by_name[name])
        for name in shipped_by_name
        if name in live_by_name
    }
    for name, fields in missing_fields_by_name.items():
        if fields:
            message = f"{name} lacks {join_names(fields, MAX_LISTED_NAMES)}: the API server drops these fields"
            yield check.warn(message, "upgrade the CRD if you use these fields")
    if not missing and not incompatibilities and not any(missing_fields_by_name.values()):
        yield check.accept(
            f"{format_count(len(shipped_by_name.keys() & live_by_name.keys()), 'CRD')} with all fields that Joiner uses"
        )


def _build_missing_result(facts: DoctorFacts, check: CheckReporter, names: str) -> CheckResult:
    if facts.is_installed is False:
        return check.defer(f"CRDs not installed yet: {names}", DEPLOY_FIX)
    return check.fail(f"missing CRDs: {names}", "deploy the stack again (docs/installer.md)")


def check_rbac(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that the functions' ClusterRoleBinding exists, and that its ClusterRole grants what this version needs.

    If the settings of the installation are known, this includes the permissions of the optional features that are on.
    """
    if facts.kubernetes is None:
        return
    has_binding, check = facts.kubernetes.has_role_binding, CheckReporter("permissions")
    if isinstance(has_binding, ReadFailure):
        yield check.skip("RBAC of the functions", has_binding, "get on clusterrolebindings")
    elif has_binding:
        yield _check_role(facts.kubernetes.missing_permissions, check)
        yield from _check_feature_permissions(facts.kubernetes.missing_feature_permissions, facts.stack, check)
    elif facts.is_installed is False:
        yield check.defer("no RBAC for the functions yet", DEPLOY_FIX)
    else:
        yield check.fail("ClusterRoleBinding joiner-functions is missing", "deploy the stack again (docs/installer.md)")


def _check_role(missing_permissions: tuple[str, ...] | ReadFailure, check: CheckReporter) -> CheckResult:
    if isinstance(missing_permissions, ReadFailure):
        return check.skip("permissions of the functions", missing_permissions, "get on clusterroles")
    if missing_permissions:
        message = f"ClusterRole joiner-functions lacks {join_names(missing_permissions, MAX_LISTED_NAMES)}"
        return check.fail(message, "deploy the stack again (docs/installer.md)")
    return check.accept("ClusterRole joiner-functions is bound and has all permissions")


def _check_feature_permissions(
    missing_by_feature: Mapping[str, tuple[str, ...]] | ReadFailure, stack: StackFacts | None, check: CheckReporter
) -> Iterator[CheckResult]:
    """Yield a failure for each feature that is on, and whose permissions are not granted."""
    if isinstance(missing_by_feature, ReadFailure) or stack is None or stack.settings is None:
        return
    for feature in sorted(list_enabled_features(stack.settings)):
        if missing_permissions := missing_by_feature.get(feature, ()):
            setting, names = feature.replace("_", "-"), join_names(missing_permissions, MAX_LISTED_NAMES)
            message = f"{setting} is on, but ClusterRole joiner-functions lacks {names}"
            yield check.fail(message, f"deploy the stack again, or with {setting}: off (docs/installer.md)")


def check_autoscalers(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that no other autoscaler launches nodes for the same pods."""
    check = CheckReporter("autoscalers")
    if facts.control_plane is not None and facts.control_plane.has_auto_mode:
        message = "EKS Auto Mode is enabled: it launches nodes for the same pods"
        yield check.warn(message, "make its NodePools and yours select different pods, or disable it")
    if facts.kubernetes is None:
        return
    deployments = facts.kubernetes.deployments
    if isinstance(deployments, ReadFailure):
        yield check.skip("other autoscalers", deployments, "list on deployments")
        return
    results = list(_check_autoscaler_deployments(deployments, check, is_installed=facts.is_installed is not False))
    yield from results or [check.accept("no other autoscaler runs as a Deployment")]


def _check_autoscaler_deployments(
    deployments: tuple[DeploymentFacts, ...], check: CheckReporter, *, is_installed: bool
) -> Iterator[CheckResult]:
    for deployment in deployments:
        deployment_name = f"Deployment {deployment.namespace}/{deployment.name}"
        scale = f"kubectl -n {deployment.namespace} scale deployment {deployment.name} --replicas 0"
        if deployment.replicas and _is_autoscaler("karpenter", deployment):
            message = (
                f"{deployment_name} runs Karpenter ({format_count(deployment.replicas, 'replica')}) on the same objects"
            )
            build_result = check.fail if is_installed else check.warn
            yield build_result(message, f"{scale}{'' if is_installed else ', just before you deploy'}")
        elif deployment.replicas and _is_autoscaler("autoscaler", deployment):
            message = f"{deployment_name} runs Cluster Autoscaler, which launches nodes for the same pods"
            yield check.warn(
                message, f"{scale}, after NodePools have taken over (docs/guide/migrate-from-cluster-autoscaler.md)"
            )


def _is_autoscaler(autoscaler: str, deployment: DeploymentFacts) -> bool:
    image_part, deployment_name = AUTOSCALER_IDENTIFIERS[autoscaler]
    return deployment.name == deployment_name or any(
        image_part in container_image for container_image in deployment.images
    )


def check_scheduler_log(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that the kube-scheduler log is enabled, which `reaction: logs` needs."""
    settings = facts.stack.settings if facts.stack is not None else None
    if facts.control_plane is None or settings is None or settings.reaction != "logs":
        return
    check = CheckReporter("scheduler-log")
    if "scheduler" in facts.control_plane.log_types:
        yield check.accept("the kube-scheduler log is enabled")
    else:
        message = "enable it (docs/reaction.md), or deploy with the setting reaction: watch"
        yield check.fail("the setting reaction is logs, but the kube-scheduler log is disabled", message)


def _get_cluster_name(facts: DoctorFacts) -> str:
    return facts.account.cluster if facts.account is not None else ""


def check_dynamic_resources(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that the version of the cluster serves resource.k8s.io/v1 if the setting is on."""
    settings = facts.stack.settings if facts.stack is not None else None
    if settings is None or facts.control_plane is None or settings.dynamic_resource_allocation == "off":
        return
    check, version = CheckReporter("dynamic-resources"), facts.control_plane.version
    if tuple(int(part) for part in version.split(".")[:2] if part.isdecimal()) >= MIN_VERSION_WITH_CLAIMS:
        yield check.accept(f"Kubernetes {version} serves resource.k8s.io/v1")
    else:
        message = f"dynamic-resource-allocation is on, but Kubernetes {version} does not serve resource.k8s.io/v1"
        yield check.fail(message, "upgrade the cluster to 1.34 or later, or set `dynamic-resource-allocation: off`")
