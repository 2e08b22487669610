"""Dry-run requests to EC2, and their errors."""

import msgspec

from shared.model.ec2.launch_template import LaunchTemplate


class DryRunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A launch to validate with EC2's dry run."""

    template: LaunchTemplate
    instance_type: str
    subnet_ids: tuple[str, ...]
    """One of them must pass."""
    context: str = ""


class DryRunRefusal(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """EC2's refusal of a dry run: the call, the error code and the message."""

    action: str
    """As spelled by EC2: ``RunInstances``."""
    code: str
    message: str
