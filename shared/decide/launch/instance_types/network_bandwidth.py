"""The network bandwidth of an instance type as Karpenter labels it: the baseline that AWS documents, in Mbps.

Karpenter takes the values from the tables "Network specifications" of the EC2 instance type guide:
https://docs.aws.amazon.com/ec2/latest/instancetypes/. DescribeInstanceTypes returns the same values in two fields:

* `NetworkPerformance` is the documented bandwidth, unless it begins with ``Up to``. Network cards cannot be added
  together: the two cards of c6in.32xlarge have 200 Gbps each, and the instance has 200 Gbps.
* ``Up to`` is the burst bandwidth. The baseline is then that of the network cards. A card that does not burst is
  documented with two decimals of a Gbps: 28.125 Gbps is 28120 Mbps.

Types with a vague performance, like ``Moderate``, have no bandwidth.
"""

import re
from collections.abc import Mapping
from typing import Final

from shared.model.ec2.instance_type_info import InstanceTypeInfo

_DOCUMENTED_PERFORMANCE: Final = re.compile(r"(?:(?P<cards>[0-9]+)x )?(?P<gbps>[0-9.]+) Gigabit")
_BURST_PERFORMANCE: Final = re.compile(r"Up to [0-9.]+ Gigabit")
_MBPS_PER_GBPS: Final = 1000
DIFFERENTLY_DOCUMENTED_MBPS: Final[Mapping[str, int]] = {
    "i7ie.48xlarge": 100_000,
    "i7ie.metal-48xl": 100_000,
    "i8g.metal-48xl": 90_000,
    "i8ge.48xlarge": 180_000,
    "i8ge.metal-48xl": 180_000,
}
"""Types for which the guide and DescribeInstanceTypes contradict each other; Karpenter follows the guide:
https://docs.aws.amazon.com/ec2/latest/instancetypes/so.html
"""


def compute_network_mbps(info: InstanceTypeInfo) -> int:
    """Return the network bandwidth in Mbps; 0 where EC2 states none."""
    if info.name in DIFFERENTLY_DOCUMENTED_MBPS:
        return DIFFERENTLY_DOCUMENTED_MBPS[info.name]
    documented = _DOCUMENTED_PERFORMANCE.fullmatch(info.network_performance)
    if documented is not None:
        return round(int(documented["cards"] or 1) * float(documented["gbps"]) * _MBPS_PER_GBPS)
    if _BURST_PERFORMANCE.fullmatch(info.network_performance) is None:
        return 0
    baseline_mbps = round(sum(card.baseline_gbps for card in info.network_cards) * _MBPS_PER_GBPS)
    peak_mbps = round(sum(card.peak_gbps for card in info.network_cards) * _MBPS_PER_GBPS)
    return baseline_mbps - baseline_mbps % 10 if baseline_mbps == peak_mbps else baseline_mbps
