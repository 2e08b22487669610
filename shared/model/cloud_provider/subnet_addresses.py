"""Free IP addresses of subnets."""

from datetime import datetime

import msgspec


class SubnetAddresses(msgspec.Struct, frozen=True, kw_only=True):
    """Free addresses by subnet id, as EC2 reported them at one time."""

    at: datetime
    free: tuple[tuple[str, int], ...]
