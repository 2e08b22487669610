"""Launches: dry runs, repeated client tokens, the duration of CreateFleet, and an exceeded quota."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from botocore.exceptions import ClientError

from tests.e2e_aws.cleanup import list_instance_ids
from tests.e2e_aws.environment import Environment
from tests.e2e_aws.results import Observation, StepFailed, StepSkipped, compare
from tests.e2e_aws.steps.fleet_requests import (
    SMALL_ARM64_TYPES,
    build_fleet_call,
    build_name,
    build_template_call,
    create_template,
    find_network,
    list_error_codes,
    list_launched_ids,
    wait_until_visible,
)

ACCEPTED_CODE: Final = "DryRunOperation"
MISSING_TEMPLATE_CODE: Final = "InvalidLaunchTemplateName.NotFoundException"
REPEAT_DELAY: Final = timedelta(seconds=5)
MAX_FLEET_SECONDS: Final = 30
"""Joiner's read timeout of CreateFleet."""
FLEET_COUNT: Final = 20
STANDARD_QUOTA: Final = ("ec2", "L-1216C47A")
"""vCPUs of running on-demand instances of the standard families."""
LARGE_TYPES: Final = ((64, "m6g.16xlarge"), (192, "m8g.48xlarge"))
"""vCPUs and instance types; the first type above the quota is requested, so that nothing can be launched."""
QUOTA_CODE: Final = "VcpuLimitExceeded"


def get_error_code(call: Callable[[], Any]) -> str:
    """Return the code of the error that *call* raises, "" if it raises none."""
    try:
        call()
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return ""


def check_dry_runs(environment: Environment) -> Observation:
    """Call CreateLaunchTemplate, RunInstances and CreateFleet with DryRun."""
    ec2, network = environment.get_client("ec2"), find_network(environment)
    name = build_name(environment, "dry-run")
    template_call = build_template_call(environment, name, network)
    data = template_call["LaunchTemplateData"]
    interfaces = [{**data["NetworkInterfaces"][0], "SubnetId": network.subnets[0][1]}]
    instance_call = {"ImageId": data["ImageId"], "InstanceType": SMALL_ARM64_TYPES[0], "NetworkInterfaces": interfaces}
    fleet_call = build_fleet_call(environment, name, network)
    codes = {
        "CreateLaunchTemplate": get_error_code(lambda: ec2.create_launch_template(**template_call, DryRun=True)),
        "RunInstances": get_error_code(lambda: ec2.run_instances(**instance_call, MinCount=1, MaxCount=1, DryRun=True)),
        "CreateFleet": get_error_code(lambda: ec2.create_fleet(**fleet_call, DryRun=True)),
    }
    allowed_codes = (ACCEPTED_CODE, MISSING_TEMPLATE_CODE)
    is_expected = codes["CreateFleet"] in allowed_codes and all(
        codes[action] == ACCEPTED_CODE for action in ("CreateLaunchTemplate", "RunInstances")
    )
    observed = ", ".join(f"{action}: {code or 'no error'}" for action, code in codes.items())
    return compare(observed, is_expected=is_expected, evidence=codes)


def check_repeated_token(environment: Environment) -> Observation:
    """Send one CreateFleet request three times: then after five seconds, then after its template was deleted."""
    ec2, network = environment.get_client("ec2"), find_network(environment)
    with create_template(environment, "token", network) as template:
        call = build_fleet_call(environment, template, network) | {"ClientToken": f"{template}-1"}
        first_ids = list_launched_ids(ec2.create_fleet(**call))
        if not first_ids:
            raise StepFailed("EC2 launched no instance for the first request")
        environment.wait_until(lambda: False, REPEAT_DELAY)
        answers = {"after 5s": _describe_repetition(ec2, call, first_ids)}
        ec2.delete_launch_template(LaunchTemplateName=template)
        answers["after the template was deleted"] = _describe_repetition(ec2, call, first_ids)
        is_visible = wait_until_visible(environment, template, first_ids)
        environment.wait_until(lambda: False, REPEAT_DELAY)
        instance_ids = list_instance_ids(environment, template)
    observed = "; ".join(f"{moment}: {answer}" for moment, answer in answers.items())
    evidence = {"answers": answers, "instances": len(instance_ids), "firstInstances": first_ids}
    return compare(
        f"{observed}; instances: {len(instance_ids)}",
        is_expected=is_visible and instance_ids == first_ids,
        evidence=evidence,
    )


def _describe_repetition(ec2: Any, call: dict[str, Any], first_ids: list[str]) -> str:
    try:
        response = ec2.create_fleet(**call)
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    instance_ids = list_launched_ids(response)
    if instance_ids == first_ids:
        return "the same instance"
    codes = ", ".join(list_error_codes(response))
    return "another instance" if instance_ids else f"no instances, errors: {codes or 'none'}"


def measure_fleets(environment: Environment) -> Observation:
    """Measure CreateFleet for 1 and for 20 instances."""
    ec2, network = environment.get_client("ec2"), find_network(environment)
    seconds_by_count, launched_by_count, codes = dict[str, float](), dict[str, int](), set[str]()
    with create_template(environment, "fleet", network) as template:
        for count in (1, FLEET_COUNT):
            call = build_fleet_call(environment, template, network, count=count)
            started_at = environment.get_now()
            response = ec2.create_fleet(**call, ClientToken=f"{template}-{count}")
            seconds_by_count[str(count)] = round((environment.get_now() - started_at).total_seconds(), 2)
            launched_by_count[str(count)] = len(list_launched_ids(response))
            codes |= set(list_error_codes(response))
            wait_until_visible(environment, template, list_launched_ids(response))
    observed = ", ".join(
        f"{launched_by_count[count]} of {count} in {seconds:.1f}s" for count, seconds in seconds_by_count.items()
    )
    is_expected = max(seconds_by_count.values()) < MAX_FLEET_SECONDS and launched_by_count == {
        "1": 1,
        str(FLEET_COUNT): FLEET_COUNT,
    }
    evidence = {"seconds": seconds_by_count, "launched": launched_by_count, "errors": sorted(codes)}
    return compare(observed, is_expected=is_expected, evidence=evidence)


def check_exceeded_quota(environment: Environment) -> Observation:
    """Request one instance with more vCPUs than the account's quota.

    Raises:
        StepSkipped: no instance type exceeds the quota.
    """
    service, quota_code = STANDARD_QUOTA
    response = environment.get_client("service-quotas").get_service_quota(ServiceCode=service, QuotaCode=quota_code)
    quota = int(response["Quota"]["Value"])
    instance_type = next((name for vcpus, name in LARGE_TYPES if vcpus > quota), "")
    if not instance_type:
        raise StepSkipped(f"the quota of {quota} vCPUs is larger than every instance type of the test")
    ec2, network = environment.get_client("ec2"), find_network(environment)
    with create_template(environment, "quota", network) as template:
        fleet = build_fleet_call(environment, template, network, instance_types=(instance_type,))
        answer = ec2.create_fleet(**fleet)
        codes, launched_ids = list_error_codes(answer), list_launched_ids(answer)
        wait_until_visible(environment, template, launched_ids)
    observed = f"{instance_type} with a quota of {quota} vCPUs: {', '.join(codes) or 'no error'}"
    evidence = {"quota": quota, "errors": codes, "launched": len(launched_ids)}
    return compare(observed, is_expected=codes == [QUOTA_CODE] and not launched_ids, evidence=evidence)
