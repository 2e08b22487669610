"""KMS keys of volumes: an instance whose volumes cannot be decrypted terminates while it is pending.

Source: Amazon EC2 User Guide, "Troubleshoot instance launch issues" ("Instance terminates immediately"): a caller
without permissions for the key gets no error from RunInstances or CreateFleet.
"""

from collections.abc import Callable
from typing import Final

from shared.model.ec2.launch_template import BlockDevice, LaunchTemplate

LAUNCH_ERROR: Final = "Client.InternalError: Client error on launch"


class VolumeKeys:
    """The account's default key for EBS, and who may use customer-managed keys."""

    def __init__(self) -> None:
        """Start with the key of AWS as the default, which needs no permissions."""
        self.default_key = ""
        """ARN of the customer-managed key that encrypts every new volume; empty: volumes are not encrypted by default,
        or with the key of AWS.
        """
        self.can_use_key: Callable[[str], bool] = lambda _: True
        """Whether the caller of the current launch may use a customer-managed key, by ARN or key id."""

    def find_launch_error(self, template: LaunchTemplate) -> str:
        """Return the state reason of an instance whose volumes use a key without permission, empty if there is none."""
        keys = {
            key for device in template.block_devices or (BlockDevice(device_name=""),) if (key := self._get_key(device))
        }
        return LAUNCH_ERROR if not all(map(self.can_use_key, sorted(keys))) else ""

    def _get_key(self, device: BlockDevice) -> str:
        """Return the key of the volume of *device*; a default key encrypts the volumes that name no key."""
        return device.kms_key_id or self.default_key
