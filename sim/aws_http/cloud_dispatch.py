"""Which calls the cloud model handles instead of moto, and how its faults become AWS errors."""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias

from shared.errors import Fault, Invalid, Throttled
from sim.aws_http.commitment_calls import CommitmentApi, assume_payer_role
from sim.aws_http.describe_calls import CatalogApi
from sim.aws_http.instance_calls import InstanceApi
from sim.aws_http.launch_template_calls import LaunchTemplateApi, parse_launch_template, parse_run_instances
from sim.aws_http.protocol import ApiDict, ApiError
from sim.aws_http.reservation_calls import ReservationApi
from sim.aws_http.services import ServicesApi
from sim.cloud import seeded_random
from sim.cloud.cloud import Cloud

Handler: TypeAlias = Callable[[ApiDict], ApiDict]
Overlay: TypeAlias = Mapping[tuple[str, str], Handler]
DryRunCheck: TypeAlias = Callable[[Cloud, ApiDict], None]

_SERVICE_UNAVAILABLE_STATUS: Final = 503
_DRY_RUN_STATUS: Final = 412
_DRY_RUN_CHECKS: Final[Mapping[str, DryRunCheck]] = {
    "CreateFleet": lambda cloud, _: cloud.dry_runs.check_permission("CreateFleet"),
    "CreateLaunchTemplate": lambda cloud, parameters: cloud.dry_runs.check_create_launch_template(
        parse_launch_template(parameters)
    ),
    "RunInstances": lambda cloud, parameters: cloud.dry_runs.check_run_instances(*parse_run_instances(parameters)),
}
"""What decides whether a call with DryRun would be refused; other calls are never refused."""


def build_overlay(cloud: Cloud) -> Overlay:
    """Return the handlers by service and action."""
    instances, templates = InstanceApi(cloud), LaunchTemplateApi(cloud)
    catalog, services, reservations = CatalogApi(cloud), ServicesApi(cloud), ReservationApi(cloud)
    commitments = CommitmentApi(cloud, cloud.commitments)
    handlers: dict[tuple[str, str], Handler] = {
        ("ec2", "CancelCapacityReservation"): reservations.cancel_capacity_reservation,
        ("ec2", "CreateCapacityReservation"): reservations.create_capacity_reservation,
        ("ec2", "CreateFleet"): instances.create_fleet,
        ("ec2", "DescribeInstances"): instances.describe_instances,
        ("ec2", "DescribeInstanceStatus"): instances.describe_instance_status,
        ("ec2", "TerminateInstances"): instances.terminate_instances,
        ("ec2", "CreateTags"): instances.create_tags,
        ("ec2", "CreateLaunchTemplate"): templates.create_launch_template,
        ("ec2", "DescribeLaunchTemplates"): templates.describe_launch_templates,
        ("ec2", "DeleteLaunchTemplate"): templates.delete_launch_template,
        ("ec2", "DescribeInstanceTypes"): catalog.describe_instance_types,
        ("ec2", "DescribeInstanceTypeOfferings"): catalog.describe_instance_type_offerings,
        ("ec2", "DescribeSpotPriceHistory"): catalog.describe_spot_price_history,
        ("ec2", "DescribeSubnets"): catalog.describe_subnets,
        ("ec2", "DescribeSecurityGroups"): catalog.describe_security_groups,
        ("ec2", "DescribeImages"): catalog.describe_images,
        ("ec2", "DescribeCapacityReservations"): catalog.describe_capacity_reservations,
        ("ec2", "DescribeReservedInstances"): commitments.describe_reserved_instances,
        ("savingsplans", "DescribeSavingsPlans"): commitments.describe_savings_plans,
        ("savingsplans", "DescribeSavingsPlanRates"): commitments.describe_savings_plan_rates,
        ("ec2", "DescribePlacementGroups"): catalog.describe_placement_groups,
        ("ec2", "RunInstances"): templates.run_instances,
        ("sts", "AssumeRole"): partial(assume_payer_role, cloud),
        ("ssm", "GetParameter"): services.get_parameter,
        ("pricing", "GetProducts"): services.get_products,
        ("eks", "DescribeCluster"): services.describe_cluster,
        ("arc-zonal-shift", "GetManagedResource"): services.get_managed_resource,
        ("servicequotas", "GetServiceQuota"): services.get_service_quota,
    }
    return {(service, action): _wrap_handler(cloud, action, handler) for (service, action), handler in handlers.items()}


def build_payer_overlay(cloud: Cloud) -> Overlay:
    """Return the handlers of the payer account of *cloud*, by service and action."""
    commitments = CommitmentApi(cloud, cloud.payer.commitments)
    handlers: dict[tuple[str, str], Handler] = {
        ("ec2", "DescribeReservedInstances"): commitments.describe_reserved_instances,
        ("savingsplans", "DescribeSavingsPlans"): commitments.describe_savings_plans,
        ("savingsplans", "DescribeSavingsPlanRates"): commitments.describe_savings_plan_rates,
    }
    return {(service, action): _wrap_handler(cloud, action, handler) for (service, action), handler in handlers.items()}


def _wrap_handler(cloud: Cloud, action: str, handler: Handler) -> Handler:
    def handle(parameters: ApiDict) -> dict[str, Any]:
        try:
            cloud.rate_limiter.check_call(action)
            if parameters.get("DryRun"):
                dry_run_check = _DRY_RUN_CHECKS.get(action)
                if dry_run_check is not None:
                    dry_run_check(cloud, parameters)
                raise ApiError(
                    "DryRunOperation", "Request would have succeeded, but DryRun flag is set.", _DRY_RUN_STATUS
                )
            return _shuffle_lists(dict(handler(parameters)), cloud.seed, action)
        except Fault as fault:
            raise _build_error(fault) from fault

    return handle


def _shuffle_lists(result: dict[str, Any], seed: int, action: str) -> dict[str, Any]:
    """Return *result* with its lists in the order that *seed* selects: EC2 promises no order in Describe responses.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
    """
    if not action.startswith("Describe"):
        return result
    return {
        name: [value[index] for index in _draw_order(len(value), seed)] if isinstance(value, list | tuple) else value
        for name, value in result.items()
    }


@lru_cache(maxsize=64)
def _draw_order(length: int, seed: int) -> tuple[int, ...]:
    return tuple(sorted(range(length), key=lambda index: seeded_random.draw_fraction(seed, "order", index)))


def _build_error(fault: Fault) -> ApiError:
    """Return the AWS error; the model's faults have its code as an attribute or before the first colon."""
    if isinstance(fault, Invalid):
        return ApiError(fault.code, str(fault))
    code, _, text = str(fault).partition(": ")
    return ApiError(code, text, _SERVICE_UNAVAILABLE_STATUS if isinstance(fault, Throttled) else 400)
