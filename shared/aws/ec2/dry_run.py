"""DryRun calls: whether EC2 would accept a launch. EC2 always returns an error; its code tells the result.

RunInstances is called with the content of the launch template inline, because the template does not exist yet.
CreateFleet requires an existing template: the error that the template is missing shows that all earlier checks passed.
"""

import base64
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from botocore.exceptions import ClientError

from shared.aws.clients import Clients
from shared.aws.ec2.fleet import FLEET_TAGGED_RESOURCES, build_tag_specification
from shared.aws.ec2.launch_template import build_launch_template_call
from shared.aws.errors import classify_error, get_error_code, translate_errors
from shared.errors import Throttled, Unreachable
from shared.model.ec2.dry_run import DryRunRefusal, DryRunRequest

DRY_RUN_ACCEPTED_CODE: Final = "DryRunOperation"
_TEMPLATE_MISSING_CODE: Final = "InvalidLaunchTemplateName.NotFoundException"
_EXPIRED_CREDENTIALS_CODES: Final = ("ExpiredToken", "ExpiredTokenException", "RequestExpired")
"""The credentials have expired, so the permissions of the caller are unknown."""
_RUN_INSTANCES_TAGGED_RESOURCES: Final = ("instance", "volume", "network-interface")
_TAG_SPECIFICATIONS_KEY: Final = "TagSpecifications"


def call_dry_runs(clients: Clients, probe: DryRunRequest) -> tuple[DryRunRefusal, ...]:
    """Call each operation once with DryRun; return the refusals, sorted by action.

    Raises:
        Forbidden: the credentials have expired.
        Throttled: EC2 asks to retry later.
        Unreachable: EC2 did not respond.
    """
    ec2 = clients.get_single_attempt_client("ec2")
    template = build_launch_template_call(probe.template, clients.region)
    run_instances_refusals: list[DryRunRefusal | None] = []
    for subnet_id in probe.subnet_ids:
        call = build_run_instances_call(probe, template["LaunchTemplateData"], subnet_id)
        run_instances_refusals.append(_call_dry_run("RunInstances", partial(ec2.run_instances, **call, DryRun=True)))
        if run_instances_refusals[-1] is None:
            break
    refusals = (
        _call_dry_run("CreateFleet", partial(ec2.create_fleet, **build_dry_run_fleet_call(probe), DryRun=True)),
        _call_dry_run("CreateLaunchTemplate", partial(ec2.create_launch_template, **template, DryRun=True)),
        run_instances_refusals[0] if run_instances_refusals and None not in run_instances_refusals else None,
    )
    return tuple(refusal for refusal in refusals if refusal is not None)


def build_run_instances_call(probe: DryRunRequest, data: dict[str, Any], subnet_id: str) -> dict[str, Any]:
    """Build the arguments of `run_instances` for one instance from the launch template's *data*."""
    template_data = {
        key: value
        for key, value in data.items()
        if key not in ("UserData", "NetworkInterfaces", _TAG_SPECIFICATIONS_KEY)
    }
    interfaces = [{**interface, "SubnetId": subnet_id} for interface in data["NetworkInterfaces"]]
    tags = (
        [build_tag_specification(kind, probe.template.tags) for kind in _RUN_INSTANCES_TAGGED_RESOURCES]
        if probe.template.tags
        else []
    )
    return {
        **template_data,
        "MinCount": 1,
        "MaxCount": 1,
        "InstanceType": probe.instance_type,
        # boto3 encodes the user data of RunInstances itself.
        "UserData": base64.b64decode(probe.template.user_data).decode(),
        "NetworkInterfaces": interfaces,
        **({_TAG_SPECIFICATIONS_KEY: tags} if tags else {}),
    }


def build_dry_run_fleet_call(probe: DryRunRequest) -> dict[str, Any]:
    """Build the arguments of `create_fleet` for one instance in any of the subnets."""
    overrides = [{"InstanceType": probe.instance_type, "SubnetId": subnet_id} for subnet_id in probe.subnet_ids]
    template = {"LaunchTemplateName": probe.template.name, "Version": "$Latest"}
    call: dict[str, Any] = {
        "Type": "instant",
        "LaunchTemplateConfigs": [{"LaunchTemplateSpecification": template, "Overrides": overrides}],
        "TargetCapacitySpecification": {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
        "OnDemandOptions": {"AllocationStrategy": "lowest-price"},
    }
    if probe.template.tags:
        call["TagSpecifications"] = [
            build_tag_specification(kind, probe.template.tags) for kind in FLEET_TAGGED_RESOURCES
        ]
    return call | ({"Context": probe.context} if probe.context else {})


def _call_dry_run(action: str, call: Callable[[], object]) -> DryRunRefusal | None:
    with translate_errors(f"ec2:{action} with DryRun"):
        try:
            call()
        except ClientError as error:
            code, detail = get_error_code(error), error.response.get("Error", {})
            if code in (DRY_RUN_ACCEPTED_CODE, _TEMPLATE_MISSING_CODE):
                return None
            status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400))
            if code in _EXPIRED_CREDENTIALS_CODES or isinstance(
                classify_error((code,), status, ""), (Throttled, Unreachable)
            ):
                raise
            return DryRunRefusal(action=action, code=code, message=str(detail.get("Message", "")))
    return None
