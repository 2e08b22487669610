"""DryRun: would EC2 let us launch? It answers an error in any case; the code says which.

RunInstances is asked with all of the template said inline, since the template itself is not made. CreateFleet wants a
template that exists: that it misses ours says that everything before was allowed.
"""

import base64
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from botocore.exceptions import ClientError

from shared.aws.clients import Clients
from shared.aws.ec2_fleet import TAGGED, tag_specification
from shared.aws.ec2_templates import launch_template_call
from shared.aws.errors import classified, code_of, faults
from shared.errors import Throttled, Unreachable
from shared.model.ec2 import Probe, Refusal

ALLOWED: Final = "DryRunOperation"
_NO_TEMPLATE: Final = "InvalidLaunchTemplateName.NotFoundException"
_NOBODY: Final = ("ExpiredToken", "ExpiredTokenException", "RequestExpired")
"""Who asked is not known: that says nothing about what they may do."""
_RUN_TAGGED: Final = ("instance", "volume", "network-interface")
_INTERFACE_TAGS: Final = "TagSpecifications"


def refused(clients: Clients, probe: Probe) -> tuple[Refusal, ...]:
    """Ask for each call, once; sorted by action.

    Raises:
        Forbidden: the credentials have expired.
        Throttled: EC2 wants to be asked later.
        Unreachable: it did not answer.
    """
    ec2 = clients.once("ec2")
    template = launch_template_call(probe.template, clients.region)
    runs: list[Refusal | None] = []
    for subnet_id in probe.subnet_ids:
        call = run_call(probe, template["LaunchTemplateData"], subnet_id)
        runs.append(_asked("RunInstances", partial(ec2.run_instances, **call, DryRun=True)))
        if runs[-1] is None:
            break
    found = (
        _asked("CreateFleet", partial(ec2.create_fleet, **fleet_probe(probe), DryRun=True)),
        _asked("CreateLaunchTemplate", partial(ec2.create_launch_template, **template, DryRun=True)),
        runs[0] if runs and None not in runs else None,
    )
    return tuple(one for one in found if one is not None)


def run_call(probe: Probe, data: dict[str, Any], subnet_id: str) -> dict[str, Any]:
    """Answer the arguments of `run_instances` that say what the template's *data* says, for one instance."""
    said = {key: value for key, value in data.items() if key not in ("UserData", "NetworkInterfaces", _INTERFACE_TAGS)}
    interfaces = [{**one, "SubnetId": subnet_id} for one in data["NetworkInterfaces"]]
    tags = [tag_specification(kind, probe.template.tags) for kind in _RUN_TAGGED] if probe.template.tags else []
    return {
        **said,
        "MinCount": 1,
        "MaxCount": 1,
        "InstanceType": probe.instance_type,
        # boto3 encodes the user data of this call itself.
        "UserData": base64.b64decode(probe.template.user_data).decode(),
        "NetworkInterfaces": interfaces,
        **({_INTERFACE_TAGS: tags} if tags else {}),
    }


def fleet_probe(probe: Probe) -> dict[str, Any]:
    """Answer the arguments of `create_fleet` for one instance in any of the subnets."""
    overrides = [{"InstanceType": probe.instance_type, "SubnetId": subnet_id} for subnet_id in probe.subnet_ids]
    template = {"LaunchTemplateName": probe.template.name, "Version": "$Latest"}
    call: dict[str, Any] = {
        "Type": "instant",
        "LaunchTemplateConfigs": [{"LaunchTemplateSpecification": template, "Overrides": overrides}],
        "TargetCapacitySpecification": {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
        "OnDemandOptions": {"AllocationStrategy": "lowest-price"},
    }
    if probe.template.tags:
        call["TagSpecifications"] = [tag_specification(kind, probe.template.tags) for kind in TAGGED]
    return call | ({"Context": probe.context} if probe.context else {})


def _asked(action: str, call: Callable[[], object]) -> Refusal | None:
    with faults(f"ec2:{action} with DryRun"):
        try:
            call()
        except ClientError as error:
            code, detail = code_of(error), error.response.get("Error", {})
            if code in (ALLOWED, _NO_TEMPLATE):
                return None
            status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400))
            if code in _NOBODY or isinstance(classified((code,), status, ""), (Throttled, Unreachable)):
                raise
            return Refusal(action=action, code=code, message=str(detail.get("Message", "")))
    return None
