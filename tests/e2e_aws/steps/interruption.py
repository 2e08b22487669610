"""A Spot interruption that AWS Fault Injection Service (FIS) causes: how soon Joiner taints the node."""

import json
from datetime import timedelta
from typing import Any, Final

from botocore.exceptions import ClientError

from shared.errors import NotFound
from tests.e2e_aws.environment import Environment
from tests.e2e_aws.results import Observation, StepFailed, compare
from tests.e2e_aws.steps.fleet_requests import build_name
from tests.e2e_aws.steps.nodes import (
    DISRUPTED_TAINT,
    INTERRUPTED,
    MAX_TAINT_SECONDS,
    has_taint,
    launch_node,
    read_node,
)

ACTION: Final = "aws:ec2:send-spot-instance-interruptions"
ROLE_TIMEOUT: Final = timedelta(minutes=2)
TAINT_TIMEOUT: Final = timedelta(minutes=4)
REMOVAL_TIMEOUT: Final = timedelta(minutes=10)
_TRUST: Final = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "fis.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
_POLICY: Final = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Action": "ec2:SendSpotInstanceInterruptions", "Resource": "arn:*:ec2:*:*:instance/*"},
        {"Effect": "Allow", "Action": "ec2:DescribeInstances", "Resource": "*"},
    ],
}


def interrupt_spot_node(environment: Environment) -> Observation:
    """Launch a Spot node, interrupt its instance, and measure the seconds until the node has Joiner's taint.

    Raises:
        StepFailed: the experiment cannot be started.
    """
    node = launch_node(environment, INTERRUPTED)
    name, instance_id = node["metadata"]["name"], node["spec"]["providerID"].rpartition("/")[2]
    template_id = _create_experiment_template(environment, instance_id)
    fis, started_at = environment.get_client("fis"), environment.get_now()
    experiment = fis.start_experiment(experimentTemplateId=template_id)["experiment"]

    def is_tainted() -> bool:
        try:
            return has_taint(read_node(environment, name), DISRUPTED_TAINT)
        except NotFound:
            return True

    if not environment.wait_until(is_tainted, TAINT_TIMEOUT):
        state = fis.get_experiment(id=experiment["id"])["experiment"]["state"]
        if state["status"] in {"failed", "stopped"}:
            raise StepFailed(f"the experiment {state['status']}: {state.get('reason', '')}")
        return compare("no taint within four minutes", is_expected=False, evidence={"experiment": state["status"]})
    seconds = round((environment.get_now() - started_at).total_seconds(), 1)
    is_removed = environment.wait_until(lambda: not _has_node(environment, name), REMOVAL_TIMEOUT)
    observed = f"taint after {seconds:.0f}s; the node is {'removed' if is_removed else 'still there'}"
    evidence = {"secondsToTaint": seconds, "removed": is_removed}
    return compare(observed, is_expected=seconds <= MAX_TAINT_SECONDS and is_removed, evidence=evidence)


def _has_node(environment: Environment, name: str) -> bool:
    try:
        read_node(environment, name)
    except NotFound:
        return False
    return True


def _create_experiment_template(environment: Environment, instance_id: str) -> str:
    """Create the role and the template of the experiment; return the id of the template.

    Raises:
        StepFailed: FIS does not accept the new role in time.
    """
    iam, role = environment.get_client("iam"), environment.ledger.record("role", build_name(environment, "fis"))
    role_arn = iam.create_role(RoleName=role, AssumeRolePolicyDocument=json.dumps(_TRUST))["Role"]["Arn"]
    iam.put_role_policy(RoleName=role, PolicyName="interrupt", PolicyDocument=json.dumps(_POLICY))
    template = environment.ledger.record("fis-template", build_name(environment, "interruption"))
    partition, account = role_arn.split(":")[1], role_arn.split(":")[4]
    target = {
        "resourceType": "aws:ec2:spot-instance",
        "resourceArns": [f"arn:{partition}:ec2:{environment.region}:{account}:instance/{instance_id}"],
        "selectionMode": "ALL",
    }
    action = {
        "actionId": ACTION,
        "parameters": {"durationBeforeInterruption": "PT2M"},
        "targets": {"SpotInstances": "node"},
    }
    call: dict[str, Any] = {
        "clientToken": template,
        "description": "Spot interruption of one node of the Joiner test",
        "roleArn": role_arn,
        "stopConditions": [{"source": "none"}],
        "targets": {"node": target},
        "actions": {"interrupt": action},
        "tags": {"Name": template},
    }
    fis, ids, errors = environment.get_client("fis"), list[str](), list[str]()

    def try_to_create() -> bool:
        try:
            ids.append(fis.create_experiment_template(**call)["experimentTemplate"]["id"])
        except ClientError as error:
            errors.append(str(error))
        return bool(ids)

    if not environment.wait_until(try_to_create, ROLE_TIMEOUT):
        raise StepFailed(f"FIS rejects the experiment: {errors[-1]}")
    return ids[0]
