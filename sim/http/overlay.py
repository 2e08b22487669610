"""Which calls the cloud model answers instead of moto, and how its faults become AWS's errors."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from shared.errors import Fault, Invalid, Throttled
from sim.cloud.cloud import Cloud
from sim.http.catalogue import CatalogueCalls
from sim.http.instances import InstanceCalls
from sim.http.protocol import ApiError
from sim.http.queries import Wire
from sim.http.services import ServiceCalls
from sim.http.statuses import StatusCalls
from sim.http.templates import TemplateCalls, run_from, template_from

Handler: TypeAlias = Callable[[Wire], Wire]
Overlay: TypeAlias = Mapping[tuple[str, str], Handler]
Judge: TypeAlias = Callable[[Cloud, Wire], None]

_TOO_BUSY: Final = 503
_DRY_RUN: Final = 412
_JUDGES: Final[Mapping[str, Judge]] = {
    "CreateFleet": lambda cloud, _: cloud.dry_runs.permit("CreateFleet"),
    "CreateLaunchTemplate": lambda cloud, said: cloud.dry_runs.make_template(template_from(said)),
    "RunInstances": lambda cloud, said: cloud.dry_runs.run(*run_from(said)),
}
"""Who says whether a call with DryRun would be refused; of other calls nothing is refused."""


def overlay(cloud: Cloud) -> Overlay:
    """Answer the handlers by service and action."""
    instances, templates = InstanceCalls(cloud), TemplateCalls(cloud)
    catalogue, services = CatalogueCalls(cloud), ServiceCalls(cloud)
    handlers: dict[tuple[str, str], Handler] = {
        ("ec2", "CreateFleet"): instances.create_fleet,
        ("ec2", "DescribeInstances"): instances.describe_instances,
        ("ec2", "DescribeInstanceStatus"): StatusCalls(cloud).describe_instance_status,
        ("ec2", "TerminateInstances"): instances.terminate_instances,
        ("ec2", "CreateTags"): instances.create_tags,
        ("ec2", "CreateLaunchTemplate"): templates.create_launch_template,
        ("ec2", "DescribeLaunchTemplates"): templates.describe_launch_templates,
        ("ec2", "DeleteLaunchTemplate"): templates.delete_launch_template,
        ("ec2", "DescribeInstanceTypes"): catalogue.describe_instance_types,
        ("ec2", "DescribeInstanceTypeOfferings"): catalogue.describe_instance_type_offerings,
        ("ec2", "DescribeSpotPriceHistory"): catalogue.describe_spot_price_history,
        ("ec2", "DescribeSubnets"): catalogue.describe_subnets,
        ("ec2", "DescribeSecurityGroups"): catalogue.describe_security_groups,
        ("ec2", "DescribeImages"): catalogue.describe_images,
        ("ec2", "DescribeCapacityReservations"): catalogue.describe_capacity_reservations,
        ("ec2", "DescribePlacementGroups"): catalogue.describe_placement_groups,
        ("ec2", "RunInstances"): templates.run_instances,
        ("ssm", "GetParameter"): services.get_parameter,
        ("pricing", "GetProducts"): services.get_products,
        ("eks", "DescribeCluster"): services.describe_cluster,
        ("servicequotas", "GetServiceQuota"): services.get_service_quota,
    }
    return {(service, action): _admitted(cloud, action, handler) for (service, action), handler in handlers.items()}


def _admitted(cloud: Cloud, action: str, handler: Handler) -> Handler:
    def handle(said: Wire) -> dict[str, Any]:
        try:
            cloud.admit(action)
            if said.get("DryRun"):
                judge = _JUDGES.get(action)
                if judge is not None:
                    judge(cloud, said)
                raise ApiError("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", _DRY_RUN)
            return dict(handler(said))
        except Fault as fault:
            raise _error(fault) from fault

    return handle


def _error(fault: Fault) -> ApiError:
    """Answer AWS's error: the model's faults carry the code, as an attribute or before the first colon."""
    if isinstance(fault, Invalid):
        return ApiError(fault.code, str(fault))
    code, _, text = str(fault).partition(": ")
    return ApiError(code, text, _TOO_BUSY if isinstance(fault, Throttled) else 400)
