"""Checks before anything is created: the test refuses a cluster that it could disturb."""

from collections.abc import Iterator
from typing import Any, Final

from botocore.exceptions import ClientError

from shared.stack_name import format_stack_name
from tests.e2e_aws.cleanup import NODE_CLASSES_PATH, NODE_POOLS_PATH, is_missing, list_object_names
from tests.e2e_aws.environment import PREFIX, Environment, get_stack_name
from tests.e2e_aws.results import StepFailed
from tests.e2e_aws.steps.fleet_requests import DISCOVERY_TAG, find_network

BOOTSTRAP_STACK: Final = "CDKToolkit"
DELETED_STATUS: Final = "DELETE_COMPLETE"


def list_refusals(environment: Environment) -> list[str]:
    """Return the reasons not to start, each with its fix; none if the test can start."""
    try:
        cluster = environment.get_client("eks").describe_cluster(name=environment.cluster)["cluster"]
    except ClientError as error:
        if not is_missing(error):
            raise
        return [f"EKS has no cluster {environment.cluster} in {environment.region}: check CLUSTER and REGION"]
    return [*_list_cluster_refusals(cluster), *_list_account_refusals(environment), *_list_object_refusals(environment)]


def _list_cluster_refusals(cluster: dict[str, Any]) -> Iterator[str]:
    if cluster["status"] != "ACTIVE":
        yield f"the cluster is {cluster['status']}: wait until it is ACTIVE"
    if cluster.get("accessConfig", {}).get("authenticationMode", "CONFIG_MAP") == "CONFIG_MAP":
        yield (
            "the cluster has no access entries: aws eks update-cluster-config --access-config "
            "authenticationMode=API_AND_CONFIG_MAP"
        )


def _list_account_refusals(environment: Environment) -> Iterator[str]:
    cluster = environment.cluster
    if _has_stack(environment, format_stack_name(cluster)):
        yield f"the cluster has a Joiner stack, {format_stack_name(cluster)}: use another cluster, or delete the stack"
    if _has_stack(environment, get_stack_name(cluster)):
        yield f"the stack {get_stack_name(cluster)} of an earlier test exists: run make e2e-aws-clean, or delete it"
    if not _has_stack(environment, BOOTSTRAP_STACK):
        yield f"the account is not bootstrapped in {environment.region}: npx cdk bootstrap -c cluster={cluster}"
    try:
        find_network(environment)
    except StepFailed as error:
        yield f"{error}: tag the subnets and the security group of the nodes with {DISCOVERY_TAG}={cluster}"


def _list_object_refusals(environment: Environment) -> Iterator[str]:
    for path, kind in ((NODE_POOLS_PATH, "NodePool"), (NODE_CLASSES_PATH, "EC2NodeClass")):
        names = list_object_names(environment, path)
        foreign = [name for name in names if not name.startswith(PREFIX)]
        if foreign:
            yield f"the cluster has {kind} objects, {', '.join(foreign)}: use a cluster without Karpenter and Joiner"
        if len(foreign) < len(names):
            yield f"{kind} objects of an earlier test exist: run make e2e-aws-clean, or delete them"


def _has_stack(environment: Environment, name: str) -> bool:
    try:
        stacks = environment.get_client("cloudformation").describe_stacks(StackName=name)["Stacks"]
    except ClientError as error:
        if is_missing(error):
            return False
        raise
    return any(stack["StackStatus"] != DELETED_STATUS for stack in stacks)
