"""What EC2 would refuse: calls with DryRun, which are judged and make nothing.

Who may call what is not modelled; a test says what is denied.
"""

from collections.abc import Callable
from functools import partial

from shared.errors import Fault, Gone, Invalid
from shared.model.ec2 import LaunchTemplate, Probe, Refusal
from sim.cloud.images import Shelf
from sim.cloud.network import Network
from sim.cloud.refusals import Refused
from sim.cloud.reservations import Reservations
from sim.cloud.shapes import check_shape
from sim.cloud.templates import check_template
from sim.cloud.types import instance_types

UNAUTHORIZED = "UnauthorizedOperation"


class DryRuns:
    """The judge of one account's calls."""

    def __init__(self, images: Shelf, network: Network, set_aside: Reservations) -> None:
        """Begin with everything allowed."""
        self._images, self._network, self._set_aside = images, network, set_aside
        self._denied: dict[str, str] = {}
        self._missing_profiles: set[str] = set()

    def deny(self, action: str, message: str = "You are not authorized to perform this operation.") -> None:
        """Refuse *action*, spelled as EC2 does, until `allow`."""
        self._denied[action] = message

    def allow(self, action: str) -> None:
        """Take `deny` back."""
        self._denied.pop(action, None)

    def lose_profile(self, name: str) -> None:
        """Let there be no instance profile *name*; of all others it is believed that they exist."""
        self._missing_profiles.add(name)

    def permit(self, action: str) -> None:
        """Judge the right to call *action*.

        Raises:
            Invalid: it is denied.
        """
        if action in self._denied:
            raise Invalid(self._denied[action], code=UNAUTHORIZED)

    def run(self, template: LaunchTemplate, instance_type: str, subnet_id: str) -> None:
        """Judge RunInstances with what *template* says.

        Raises:
            Invalid: it is denied, or a part is wrong.
            Gone: something that it names does not exist.
        """
        self.permit("RunInstances")
        image = self._images.find(template.image_id)
        self._network.subnet(subnet_id)
        for group_id in template.security_group_ids:
            if not self._network.has_security_group(group_id):
                raise Gone(f"InvalidGroup.NotFound: The security group '{group_id}' does not exist")
        if template.instance_profile in self._missing_profiles:
            raise Invalid(
                f"Value ({template.instance_profile}) for parameter iamInstanceProfile.name is invalid. "
                "Invalid IAM Instance Profile name",
                code="InvalidParameterValue",
            )
        types = instance_types()
        if instance_type not in types:
            raise Invalid(f"The instance type '{instance_type}' does not exist", code="InvalidInstanceType")
        if image.architecture not in types[instance_type].architectures:
            raise Invalid(
                f"The architecture of '{instance_type}' does not match the architecture '{image.architecture}' of the "
                "specified AMI.",
                code="InvalidParameterValue",
            )
        try:
            check_shape(template, types[instance_type], self._set_aside)
        except Refused as refused:
            raise Invalid(str(refused), code=refused.code) from refused

    def make_template(self, template: LaunchTemplate) -> None:
        """Judge CreateLaunchTemplate.

        Raises:
            Invalid: it is denied, or *template* is wrong.
        """
        self.permit("CreateLaunchTemplate")
        check_template(template)

    def refusals(self, probe: Probe) -> tuple[Refusal, ...]:
        """Answer what is refused, sorted by action; of the subnets the first one's reason counts."""
        in_subnets = [
            refusal_of("RunInstances", partial(self.run, probe.template, probe.instance_type, one))
            for one in probe.subnet_ids
        ]
        found = (
            refusal_of("CreateFleet", partial(self.permit, "CreateFleet")),
            refusal_of("CreateLaunchTemplate", partial(self.make_template, probe.template)),
            in_subnets[0] if in_subnets and None not in in_subnets else None,
        )
        return tuple(one for one in found if one is not None)


def refusal_of(action: str, judged: Callable[[], None]) -> Refusal | None:
    """Answer why *judged* refuses, None if it does not."""
    try:
        judged()
    except Fault as fault:
        code, _, text = str(fault).partition(": ")
        if isinstance(fault, Invalid):
            code, text = fault.code, str(fault)
        return Refusal(action=action, code=code, message=text)
    return None
