"""Calls with DryRun: which calls EC2 would refuse; nothing is created.

IAM permissions are not modeled: a test sets the denied actions.
"""

from collections.abc import Callable
from functools import partial

from shared.errors import Fault, Invalid, NotFound
from shared.model.ec2.dry_run import DryRunRefusal, DryRunRequest
from shared.model.ec2.launch_template import LaunchTemplate
from sim.cloud.catalog.instance_types import load_instance_types
from sim.cloud.ec2.launch_checks import check_hardware_support
from sim.cloud.ec2.launch_refusal import Refused
from sim.cloud.ec2.launch_templates import check_launch_template
from sim.cloud.ec2.reservations import Reservations
from sim.cloud.resources.images import ImageRegistry
from sim.cloud.resources.network import Network

UNAUTHORIZED = "UnauthorizedOperation"


class DryRunValidator:
    """Validates the dry-run calls of one account."""

    def __init__(self, images: ImageRegistry, network: Network, reservations: Reservations) -> None:
        """Allow every action."""
        self._images, self._network, self._reservations = images, network, reservations
        self._denied: dict[str, str] = {}
        self._missing_profiles: set[str] = set()

    def deny(self, action: str, message: str = "You are not authorized to perform this operation.") -> None:
        """Refuse *action*, spelled as EC2 does, until `allow`."""
        self._denied[action] = message

    def allow(self, action: str) -> None:
        """Undo `deny`."""
        self._denied.pop(action, None)

    def delete_profile(self, name: str) -> None:
        """Make the instance profile *name* nonexistent; all other names are assumed to exist."""
        self._missing_profiles.add(name)

    def check_permission(self, action: str) -> None:
        """Check the permission to call *action*.

        Raises:
            Invalid: it is denied.
        """
        if action in self._denied:
            raise Invalid(self._denied[action], code=UNAUTHORIZED)

    def check_run_instances(self, template: LaunchTemplate, instance_type: str, subnet_id: str) -> None:
        """Check a RunInstances call with *template*.

        Raises:
            Invalid: it is denied, or a parameter is wrong.
            NotFound: a resource that it names does not exist.
        """
        self.check_permission("RunInstances")
        image = self._images.find(template.image_id)
        self._network.get_subnet(subnet_id)
        for group_id in template.security_group_ids:
            if not self._network.has_security_group(group_id):
                raise NotFound(f"InvalidGroup.NotFound: The security group '{group_id}' does not exist")
        if template.instance_profile in self._missing_profiles:
            raise Invalid(
                f"Value ({template.instance_profile}) for parameter iamInstanceProfile.name is invalid. "
                "Invalid IAM Instance Profile name",
                code="InvalidParameterValue",
            )
        types_by_name = load_instance_types()
        if instance_type not in types_by_name:
            raise Invalid(f"The instance type '{instance_type}' does not exist", code="InvalidInstanceType")
        if image.architecture not in types_by_name[instance_type].architectures:
            raise Invalid(
                f"The architecture of '{instance_type}' does not match the architecture '{image.architecture}' of the "
                "specified AMI.",
                code="InvalidParameterValue",
            )
        try:
            check_hardware_support(template, types_by_name[instance_type], self._reservations)
        except Refused as error:
            raise Invalid(str(error), code=error.code) from error

    def check_create_launch_template(self, template: LaunchTemplate) -> None:
        """Check a CreateLaunchTemplate call.

        Raises:
            Invalid: it is denied, or *template* is wrong.
        """
        self.check_permission("CreateLaunchTemplate")
        check_launch_template(template)

    def list_refusals(self, probe: DryRunRequest) -> tuple[DryRunRefusal, ...]:
        """Return the refused calls, sorted by action; if every subnet is refused, the first subnet's refusal counts."""
        subnet_refusals = [
            find_refusal(
                "RunInstances", partial(self.check_run_instances, probe.template, probe.instance_type, subnet_id)
            )
            for subnet_id in probe.subnet_ids
        ]
        refusals = (
            find_refusal("CreateFleet", partial(self.check_permission, "CreateFleet")),
            find_refusal("CreateLaunchTemplate", partial(self.check_create_launch_template, probe.template)),
            subnet_refusals[0] if subnet_refusals and None not in subnet_refusals else None,
        )
        return tuple(refusal for refusal in refusals if refusal is not None)


def find_refusal(action: str, call: Callable[[], None]) -> DryRunRefusal | None:
    """Return the refusal that *call* raises, None if it passes."""
    try:
        call()
    except Fault as fault:
        code, _, text = str(fault).partition(": ")
        if isinstance(fault, Invalid):
            code, text = fault.code, str(fault)
        return DryRunRefusal(action=action, code=code, message=text)
    return None
