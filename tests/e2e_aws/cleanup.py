"""Removes what the ledger lists, and checks that nothing of the run remains."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Final

from botocore.exceptions import ClientError

from shared.errors import Fault, NotFound
from sim.playground.kubectl import NODE_CLAIMS_PATH
from tests.e2e_aws.environment import PREFIX, RUN_TAG, Environment, get_stack_name
from tests.e2e_aws.ledger import LedgerEntry, Lifetime

REMOVAL_TIMEOUT: Final = timedelta(minutes=15)
STACK_TIMEOUT: Final = timedelta(minutes=90)
LIVE_STATES: Final = ("pending", "running", "shutting-down", "stopping", "stopped")
NODE_POOLS_PATH: Final = "/apis/karpenter.sh/v1/nodepools"
NODE_CLASSES_PATH: Final = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
_MISSING_CODES: Final = ("NotFound", "NoSuchEntity", "NoSuchBucket", "ResourceNotFoundException", "ValidationError")


class CleanupFailed(Exception):
    """Something could not be removed; the message names it."""


def remove_step_entries(environment: Environment) -> list[str]:
    """Remove the entries of a step; return an error for each that could not be removed.

    The removal of Kubernetes objects and instances only begins: nodes and instances end during the next steps. The end
    of the run waits for them.
    """
    errors = []
    for entry in environment.ledger.list_entries("step"):
        if entry.kind not in _STARTERS:
            continue
        try:
            _STARTERS[entry.kind](environment, entry)
        except NotFound:
            environment.ledger.discard(entry)
        except (ClientError, Fault) as error:
            errors.append(f"{entry.kind} {entry.name}: {error}")
        else:
            environment.ledger.postpone(entry)
    return [*errors, *(error for error in remove_entries(environment, "step") if error not in errors)]


def remove_entries(environment: Environment, *lifetimes: Lifetime) -> list[str]:
    """Remove all entries of *lifetimes*, newest first; return an error for each that could not be removed."""
    errors = []
    for entry in environment.ledger.list_entries(*lifetimes):
        try:
            _REMOVERS[entry.kind](environment, entry)
        except (ClientError, Fault, OSError, CleanupFailed) as error:
            errors.append(f"{entry.kind} {entry.name}: {error}")
        else:
            environment.ledger.discard(entry)
    return errors


def list_remains(environment: Environment) -> list[str]:
    """Return what still exists of the run: by its tag in the account, by its prefix in the cluster."""
    ec2 = environment.get_client("ec2")
    filters = build_run_filters(environment)
    remains = [f"instance {instance_id}" for instance_id in list_instance_ids(environment)]
    remains += [f"launch template {name}" for name in _list_template_names(environment)]
    remains += [f"capacity reservation {name}" for name in _list_reservation_ids(environment)]
    remains += [f"volume {volume['VolumeId']}" for volume in ec2.describe_volumes(Filters=filters)["Volumes"]]
    if find_stack(environment) is not None:
        remains.append(f"stack {get_stack_name(environment.cluster)}")
    for path, kind in ((NODE_POOLS_PATH, "NodePool"), (NODE_CLASSES_PATH, "EC2NodeClass")):
        remains += [f"{kind} {name}" for name in list_object_names(environment, path) if name.startswith(PREFIX)]
    return sorted(remains)


def build_run_filters(environment: Environment, name: str = "") -> list[dict[str, Any]]:
    """Return the EC2 filters of what this run has created, or of what it has created as *name*."""
    filters = [{"Name": f"tag:{RUN_TAG}", "Values": [environment.run_id]}]
    return [*filters, {"Name": "tag:Name", "Values": [name]}] if name else filters


def list_instance_ids(environment: Environment, name: str = "") -> list[str]:
    """Return the ids of the run's instances that are not terminated, sorted."""
    states = {"Name": "instance-state-name", "Values": [*LIVE_STATES]}
    filters = [*build_run_filters(environment, name), states]
    pages = environment.get_client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
    reservations = (reservation for page in pages for reservation in page["Reservations"])
    return sorted(instance["InstanceId"] for reservation in reservations for instance in reservation["Instances"])


def list_object_names(environment: Environment, path: str) -> list[str]:
    """Return the names of the objects at *path*; none if their kind is not served."""
    try:
        return [item["metadata"]["name"] for item in environment.kubectl.list_objects(path)]
    except NotFound:
        return []


def find_stack(environment: Environment) -> dict[str, Any] | None:
    """Return the description of the test's stack, None if there is none."""
    cloudformation = environment.get_client("cloudformation")
    try:
        [stack] = cloudformation.describe_stacks(StackName=get_stack_name(environment.cluster))["Stacks"]
    except ClientError as error:
        if is_missing(error):
            return None
        raise
    return dict(stack)


def is_missing(error: ClientError) -> bool:
    """Return whether AWS says that there is no such resource."""
    return any(code in str(error.response["Error"]["Code"]) for code in _MISSING_CODES)


def _remove_stack(environment: Environment, _: LedgerEntry) -> None:
    """Delete the stack when CloudFormation has ended what was interrupted."""

    def is_settled() -> bool:
        return not (find_stack(environment) or {}).get("StackStatus", "").endswith("_IN_PROGRESS")

    if not environment.wait_until(is_settled, STACK_TIMEOUT):
        raise CleanupFailed(f"still in progress after {STACK_TIMEOUT}")
    if find_stack(environment) is None:
        return
    output = environment.destroy()
    if output:
        raise CleanupFailed(output)


def _remove_object(environment: Environment, entry: LedgerEntry) -> None:
    kube = environment.kubectl.kube
    try:
        kube.delete(entry.name)
    except NotFound:
        return

    def is_gone() -> bool:
        try:
            kube.read(entry.name)
        except NotFound:
            return True
        return False

    if not environment.wait_until(is_gone, REMOVAL_TIMEOUT):
        raise CleanupFailed(f"it still exists after {REMOVAL_TIMEOUT}; see metadata.finalizers")
    if not entry.name.startswith(NODE_POOLS_PATH):
        return
    pool = entry.name.rpartition("/")[2]
    if not environment.wait_until(lambda: not list_claim_names(environment, pool), REMOVAL_TIMEOUT):
        raise CleanupFailed(f"its NodeClaims still exist after {REMOVAL_TIMEOUT}")


def list_claim_names(environment: Environment, pool: str) -> list[str]:
    """Return the names of the NodeClaims of the NodePool *pool*."""
    try:
        claims = environment.kubectl.list_objects(NODE_CLAIMS_PATH)
    except NotFound:
        return []
    return [
        claim["metadata"]["name"]
        for claim in claims
        if claim["metadata"].get("labels", {}).get("karpenter.sh/nodepool") == pool
    ]


def _remove_instances(environment: Environment, entry: LedgerEntry) -> None:
    name = "" if entry.name == environment.run_id else entry.name
    instance_ids = _terminate_instances(environment, name)
    if not environment.wait_until(lambda: not list_instance_ids(environment, name), REMOVAL_TIMEOUT):
        raise CleanupFailed(f"not terminated after {REMOVAL_TIMEOUT}: {', '.join(instance_ids)}")


def _terminate_instances(environment: Environment, name: str) -> list[str]:
    """Terminate the instances called *name*, or all of the run; return their ids."""
    instance_ids = list_instance_ids(environment, name)
    if instance_ids:
        environment.get_client("ec2").terminate_instances(InstanceIds=instance_ids)
    return instance_ids


def _remove_launch_template(environment: Environment, entry: LedgerEntry) -> None:
    """Delete one launch template, or with the id of the run those that Joiner created for its instances."""
    names = _list_template_names(environment) if entry.name == environment.run_id else [entry.name]
    for name in names:
        _delete_template(environment, name)


def _delete_template(environment: Environment, name: str) -> None:
    ec2 = environment.get_client("ec2")
    _ignore_missing(lambda: ec2.delete_launch_template(LaunchTemplateName=name))


def _list_template_names(environment: Environment) -> list[str]:
    pages = environment.get_client("ec2").get_paginator("describe_launch_templates")
    filters = build_run_filters(environment)
    return sorted(
        template["LaunchTemplateName"]
        for page in pages.paginate(Filters=filters)
        for template in page["LaunchTemplates"]
    )


def _list_reservation_ids(environment: Environment, name: str = "") -> Iterator[str]:
    filters = [*build_run_filters(environment, name), {"Name": "state", "Values": ["active", "pending"]}]
    response = environment.get_client("ec2").describe_capacity_reservations(Filters=filters)
    yield from sorted(item["CapacityReservationId"] for item in response["CapacityReservations"])


def _remove_reservation(environment: Environment, entry: LedgerEntry) -> None:
    for reservation_id in _list_reservation_ids(environment, entry.name):
        environment.get_client("ec2").cancel_capacity_reservation(CapacityReservationId=reservation_id)


def _remove_fis_template(environment: Environment, entry: LedgerEntry) -> None:
    fis = environment.get_client("fis")
    for page in fis.get_paginator("list_experiment_templates").paginate():
        for template in page["experimentTemplates"]:
            if template.get("tags", {}).get("Name") == entry.name:
                fis.delete_experiment_template(id=template["id"])


def _remove_role(environment: Environment, entry: LedgerEntry) -> None:
    iam = environment.get_client("iam")
    for policy in _ignore_missing(lambda: iam.list_role_policies(RoleName=entry.name)["PolicyNames"]) or ():
        iam.delete_role_policy(RoleName=entry.name, PolicyName=policy)
    _ignore_missing(lambda: iam.delete_role(RoleName=entry.name))


def _remove_bucket(environment: Environment, entry: LedgerEntry) -> None:
    """Delete the bucket with the journal, which a deleted stack keeps, with all versions of its objects."""
    s3 = environment.get_client("s3")
    pages = s3.get_paginator("list_object_versions").paginate(Bucket=entry.name)
    for page in _ignore_missing(lambda: list(pages)) or ():
        versions = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
        objects = [{"Key": version["Key"], "VersionId": version["VersionId"]} for version in versions]
        if objects:
            s3.delete_objects(Bucket=entry.name, Delete={"Objects": objects, "Quiet": True})
    _ignore_missing(lambda: s3.delete_bucket(Bucket=entry.name))


def _ignore_missing(call: Callable[[], Any]) -> Any:
    """Return the response of *call*, None if the resource does not exist."""
    try:
        return call()
    except ClientError as error:
        if is_missing(error):
            return None
        raise


_STARTERS: Final[dict[str, Callable[[Environment, LedgerEntry], object]]] = {
    "instances": lambda environment, entry: _terminate_instances(environment, entry.name),
    "object": lambda environment, entry: environment.kubectl.kube.delete(entry.name),
}
"""Kinds whose removal takes minutes, and how it begins."""
_REMOVERS: Final[dict[str, Callable[[Environment, LedgerEntry], None]]] = {
    "bucket": _remove_bucket,
    "capacity-reservation": _remove_reservation,
    "fis-template": _remove_fis_template,
    "instances": _remove_instances,
    "launch-template": _remove_launch_template,
    "object": _remove_object,
    "role": _remove_role,
    "stack": _remove_stack,
}
