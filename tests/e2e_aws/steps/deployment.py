"""The stack: first deployment, access entries, alarms, canary, rollback, removal."""

from collections.abc import Iterator
from typing import Any, Final

from tests.e2e_aws.cleanup import find_stack, list_object_names
from tests.e2e_aws.environment import Environment, get_stack_name
from tests.e2e_aws.results import Observation, StepFailed, compare
from tests.e2e_aws.steps.permissions import FUNCTIONS_GROUP

ALARM_WAIT_MINUTES: Final = 10
CRDS_PATH: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OUR_CRDS: Final = frozenset({"nodeclaims.karpenter.sh", "nodepools.karpenter.sh", "ec2nodeclasses.karpenter.k8s.aws"})
LIVE_ALIAS: Final = "live"


def deploy_stack(environment: Environment) -> Observation:
    """Deploy the stack for the first time."""
    environment.ledger.record("stack", get_stack_name(environment.cluster), "run")
    output = environment.deploy("first")
    stack = find_stack(environment) or {}
    bucket = get_stack_outputs(environment).get("JoinerBucketName")
    if bucket:
        environment.ledger.record("bucket", bucket, "run")
    if output:
        raise StepFailed(output)
    environment.deployed_at = environment.get_now()
    missing = sorted(OUR_CRDS - set(list_object_names(environment, CRDS_PATH)))
    status = stack.get("StackStatus", "no stack")
    return compare(
        f"{status}; missing CRDs: {', '.join(missing) or 'none'}",
        is_expected=status == "CREATE_COMPLETE" and not missing,
    )


def check_access_entries(environment: Environment) -> Observation:
    """Compare the access entries of the stack with what its functions and nodes need."""
    eks, arns_by_type = environment.get_client("eks"), dict[str, list[str]]()
    for arn in list_physical_ids(environment, "AWS::EKS::AccessEntry"):
        # The physical id of an access entry is PRINCIPAL_ARN|CLUSTER.
        entry = eks.describe_access_entry(
            clusterName=environment.cluster, principalArn=next(part for part in arn.split("|") if ":role/" in part)
        )["accessEntry"]
        groups = entry.get("kubernetesGroups", [])
        kind = f"{entry['type']} with {', '.join(groups)}" if groups else entry["type"]
        arns_by_type.setdefault(kind, []).append(entry["principalArn"])
    # Each function except the installer has a deployment group; the installer has an access policy instead of a group.
    functions = list_physical_ids(environment, "AWS::CodeDeploy::DeploymentGroup")
    counts = {kind: len(arns) for kind, arns in sorted(arns_by_type.items())}
    observed = ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "no access entries"
    is_expected = counts.get(f"STANDARD with {FUNCTIONS_GROUP}", 0) >= len(functions) > 0 and "EC2_LINUX" in {
        kind.partition(" ")[0] for kind in counts
    }
    return compare(observed, is_expected=is_expected, evidence={"entries": counts, "functions": len(functions)})


def check_alarms(environment: Environment) -> Observation:
    """Wait until the stack is ten minutes old, then list its alarms that were raised."""
    started_at = environment.deployed_at or environment.get_now()
    end = started_at + ALARM_WAIT_MINUTES * environment.minute
    environment.wait_until(lambda: environment.get_now() >= end, ALARM_WAIT_MINUTES * environment.minute)
    alarms = list(list_alarms(environment))
    raised = sorted(alarm["AlarmName"] for alarm in alarms if alarm["StateValue"] == "ALARM")
    states = sorted(alarm["StateValue"] for alarm in alarms)
    observed = f"{len(alarms)} alarms, {len(raised)} in ALARM{': ' if raised else ''}{', '.join(raised)}"
    evidence = {"raised": raised, "states": {state: states.count(state) for state in states}}
    return compare(observed, is_expected=bool(alarms) and not raised, evidence=evidence)


def roll_out_next_version(environment: Environment) -> Observation:
    """Deploy another version; its aliases move after the canary phase."""
    versions = get_live_versions(environment)
    output = environment.deploy("next")
    status = (find_stack(environment) or {}).get("StackStatus", "no stack")
    new_versions = get_live_versions(environment)
    moved = sum(versions.get(name) != version for name, version in new_versions.items())
    observed = f"{status}; {moved} of {len(new_versions)} aliases moved"
    is_expected = not output and status == "UPDATE_COMPLETE" and moved == len(new_versions) > 0
    return compare(observed, is_expected=is_expected, evidence={"output": output} if output else {})


def roll_back_broken_version(environment: Environment) -> Observation:
    """Deploy a version whose functions fail; the alarm must stop the deployment."""
    versions = get_live_versions(environment)
    output = environment.deploy("broken")
    status = (find_stack(environment) or {}).get("StackStatus", "no stack")
    is_restored = get_live_versions(environment) == versions
    reason = next(iter(_list_failure_reasons(environment)), "")
    observed = f"{status}; aliases {'lead to the previous versions' if is_restored else 'have moved'}: {reason}"
    return compare(
        observed,
        is_expected=status == "UPDATE_ROLLBACK_COMPLETE" and is_restored and "larm" in reason,
        evidence={"reason": reason, "cdkFailed": bool(output)},
    )


def destroy_stack(environment: Environment) -> Observation:
    """Delete the stack, whose setting is `on-destroy: purge`."""
    output = environment.destroy()
    stack = find_stack(environment)
    status = "DELETE_COMPLETE" if stack is None else stack["StackStatus"]
    remaining = sorted(OUR_CRDS & set(list_object_names(environment, CRDS_PATH)))
    observed = f"{status}; remaining CRDs: {', '.join(remaining) or 'none'}"
    is_expected = not output and status == "DELETE_COMPLETE"
    return compare(observed, is_expected=is_expected, evidence={"output": output} if output else {})


def audit_leaks(environment: Environment) -> Observation:
    """Run `joiner audit` after the deletion of the stack."""
    report = environment.run_audit()
    leaked = [f"{asset['kind']} {asset['name']}" for asset in report["assets"] if asset["leaked"]]
    # Joiner does not delete launch templates with its stack; they cost nothing, and the kit deletes them.
    costly = [name for name in leaked if not name.startswith("LaunchTemplate")]
    unreadable = report["unreadable"]
    observed = f"{len(costly)} leaked resources, {len(leaked) - len(costly)} unused launch templates"
    evidence = {"leaked": leaked, "unreadable": unreadable}
    return compare(observed, is_expected=not costly and not unreadable, evidence=evidence)


def list_alarms(environment: Environment) -> Iterator[dict[str, Any]]:
    """Yield the alarms of the stack."""
    cloudwatch, names = environment.get_client("cloudwatch"), list_physical_ids(environment, "AWS::CloudWatch::Alarm")
    for start in range(0, len(names), 100):
        yield from cloudwatch.describe_alarms(AlarmNames=names[start : start + 100])["MetricAlarms"]


def get_live_versions(environment: Environment) -> dict[str, str]:
    """Return the version of each function that its alias leads to."""
    lambda_ = environment.get_client("lambda")
    names = {name.rpartition(":")[2] for name in list_physical_ids(environment, "AWS::Lambda::Function")}
    versions = dict[str, str]()
    for name in sorted(names):
        for alias in lambda_.list_aliases(FunctionName=name)["Aliases"]:
            if alias["Name"] == LIVE_ALIAS:
                versions[name] = alias["FunctionVersion"]
    return versions


def get_stack_outputs(environment: Environment) -> dict[str, str]:
    """Return the outputs of the stack; none if there is no stack."""
    return {output["OutputKey"]: output["OutputValue"] for output in (find_stack(environment) or {}).get("Outputs", ())}


def list_physical_ids(environment: Environment, resource_type: str) -> list[str]:
    """Return the physical ids of the stack's resources of one type, sorted."""
    pages = (
        environment.get_client("cloudformation")
        .get_paginator("list_stack_resources")
        .paginate(StackName=get_stack_name(environment.cluster))
    )
    summaries = (summary for page in pages for summary in page["StackResourceSummaries"])
    return sorted(summary["PhysicalResourceId"] for summary in summaries if summary["ResourceType"] == resource_type)


def _list_failure_reasons(environment: Environment) -> Iterator[str]:
    """Yield the reasons of the failed resources of the latest update, newest first."""
    pages = (
        environment.get_client("cloudformation")
        .get_paginator("describe_stack_events")
        .paginate(StackName=get_stack_name(environment.cluster))
    )
    for page in pages:
        for event in page["StackEvents"]:
            if event["ResourceStatus"] == "UPDATE_FAILED" and "cancelled" not in event.get("ResourceStatusReason", ""):
                yield str(event.get("ResourceStatusReason", ""))
