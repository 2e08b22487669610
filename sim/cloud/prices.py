"""Prices that are computed, not listed: SYNTHETIC, but near enough to order a catalogue as EC2's own list would.

On demand, a type costs per vCPU and per GiB of memory, times what its family name says: `c7gn` is category `c`,
generation 7, attributes `g` and `n`. Local disks and accelerators are added. Burstable types are priced by memory
alone. Everything else is a rate per vCPU, so that inside one family twice the size is exactly twice the price.

Spot is a walk between 28 % and 45 % of that: each pool has its own level, which drifts over the days and trembles by
the hour. It is a function of seed, type, zone and hour, with no state: any hour can be asked for, in any order.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from types import MappingProxyType
from typing import Final

from shared.model.ec2 import GpuDevice, InstanceTypeInfo, SpotPrice
from sim.cloud import chance
from sim.cloud.types import instance_types

VCPU_USD: Final = 0.036
GIB_USD: Final = 0.0033
BURSTABLE_GIB_USD: Final = 0.0104
DISK_GB_USD: Final = {"i": 0.00009, "d": 0.00005, "h": 0.00005}
"""By category; hard disks are cheaper than flash, and flash is cheaper where there is much of it."""
FLASH_GB_USD: Final = 0.00016
DEVICE_GIB_USD: Final = {"g": 0.03, "gr": 0.03, "p": 0.055}
NEURON_GIB_USD: Final = 0.018

AGE: Final = {1: 1.7, 2: 1.7, 3: 1.3, 4: 1.05}
"""What the first generations of c, m and r cost more than the fifth."""
WIDE: Final = {5: 1.2, 6: 1.35}
"""What `n` (network) and `b` (EBS) cost more, by generation; later ones 1.55."""
FAST: Final = 1.38
EXTRA: Final = 1.3
FLEX: Final = 0.95

SPOT_LOW: Final = 0.28
SPOT_HIGH: Final = 0.45
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
_EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
_FAMILY: Final = re.compile(r"(?P<category>[a-z]+)(?:-\d+tb)?(?P<generation>\d+)(?P<attributes>[a-z]*)")


def on_demand_price(info: InstanceTypeInfo) -> float:
    """Answer synthetic USD per hour: Linux, shared tenancy.

    Raises:
        ValueError: the name is not made as EC2's are.
    """
    category, generation, attributes = _family(info.name)
    if category == "t":
        return info.memory_mib / 1024 * round(BURSTABLE_GIB_USD * _maker(info, generation), 6)
    per_vcpu = (VCPU_USD + GIB_USD * _gib_per_vcpu(info)) * _maker(info, generation) * _age(category, generation)
    per_vcpu *= _attributes(category, generation, attributes) * (FLEX if "-flex." in info.name else 1.0)
    per_vcpu += DISK_GB_USD.get(category, FLASH_GB_USD) * _disk_gb_per_vcpu(info)
    return info.vcpus * round(per_vcpu, 6) + _devices(category, info)


@cache
def on_demand_prices() -> Mapping[str, float]:
    """Answer `on_demand_price` of every type, by name."""
    return MappingProxyType({name: on_demand_price(info) for name, info in instance_types().items()})


def spot_share(seed: int, instance_type: str, zone: str, at: datetime) -> float:
    """Answer the fraction of the on-demand price that the pool asks in the hour of *at*: in [SPOT_LOW, SPOT_HIGH]."""
    pool = (seed, "spot", instance_type, zone)
    day, into = divmod(at - _EPOCH, DAY)
    hour = into // HOUR
    drift = chance.share(*pool, day) * (24 - hour) / 24 + chance.share(*pool, day + 1) * hour / 24
    level = 0.6 * chance.share(*pool) + 0.3 * drift + 0.1 * chance.share(*pool, day, hour)
    return SPOT_LOW + (SPOT_HIGH - SPOT_LOW) * level


def hour_of(at: datetime) -> datetime:
    """Answer the instant at which the spot prices of *at* began to hold."""
    return at - (at - _EPOCH) % HOUR


class PriceList:
    """What the types of one region cost."""

    def __init__(self, offers: tuple[tuple[str, str], ...], seed: int) -> None:
        """Price what *offers* has: (type, zone) pairs, sorted."""
        self.on_demand = on_demand_prices()
        self._offers = _spot_offers(offers)
        self._seed = seed
        self._hour = _EPOCH
        self._asked: dict[tuple[str, str], float] = {}
        self._newest: tuple[SpotPrice, ...] = ()

    def spot(self, instance_type: str, zone: str, at: datetime) -> float:
        """Answer synthetic USD per hour of the pool in the hour of *at*."""
        since = hour_of(at)
        if since != self._hour:
            self._hour, self._asked = since, {}
        pool = (instance_type, zone)
        if pool not in self._asked:
            share = spot_share(self._seed, instance_type, zone, at)
            self._asked[pool] = round(self.on_demand[instance_type] * share, 6)
        return self._asked[pool]

    def spot_list(self, at: datetime) -> tuple[SpotPrice, ...]:
        """Answer what holds at *at* for every pool, sorted."""
        since = hour_of(at)
        if not self._newest or self._newest[0].at != since:
            self._newest = tuple(self._spot(kind, zone, since) for kind, zone in self._offers)
        return self._newest

    def _spot(self, instance_type: str, zone: str, at: datetime) -> SpotPrice:
        price = self.spot(instance_type, zone, at)
        return SpotPrice(instance_type=instance_type, zone=zone, price_usd_per_hour=price, at=at)


@cache
def _spot_offers(offers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    types = instance_types()
    return tuple((kind, zone) for kind, zone in offers if "spot" in types[kind].usage_classes)


def _family(name: str) -> tuple[str, int, str]:
    match = _FAMILY.match(name)
    if match is None:
        raise ValueError(f"not an instance type: {name}")
    return match["category"], int(match["generation"]), match["attributes"]


def _maker(info: InstanceTypeInfo, generation: int) -> float:
    """Graviton is a fifth cheaper than Intel and gains 8 % a generation; AMD a tenth, until it sold whole cores."""
    newer = max(generation, 6) - 6
    if "arm64" in info.architectures:
        return 0.8 * 1.08**newer
    if info.cpu_manufacturer == "AMD":
        return 1.15 * 1.05**newer if newer else 0.9
    return 1.05**newer


def _age(category: str, generation: int) -> float:
    return AGE.get(generation, 1.0) if category in {"c", "m", "r"} else 1.0


def _attributes(category: str, generation: int, attributes: str) -> float:
    wide = WIDE.get(generation, 1.55) if category in {"c", "m", "r"} else 1.0
    factor = wide if set("nb") & set(attributes) else 1.0
    factor *= FAST if "z" in attributes or category == "z" else 1.0
    return factor * (EXTRA if "e" in attributes and category != "i" else 1.0)


def _gib_per_vcpu(info: InstanceTypeInfo) -> float:
    return info.memory_mib / 1024 / info.vcpus


def _disk_gb_per_vcpu(info: InstanceTypeInfo) -> int:
    """To the next 5 GB: makers' sizes are a little uneven inside a family."""
    return round(info.local_storage_gb / info.vcpus / 5) * 5


def _devices(category: str, info: InstanceTypeInfo) -> float:
    rate = DEVICE_GIB_USD.get(category, DEVICE_GIB_USD["g"])
    neurons = info.neurons or info.inference_accelerators
    return rate * sum(map(_device_gib, info.gpus)) + NEURON_GIB_USD * sum(map(_device_gib, neurons))


def _device_gib(device: GpuDevice) -> float:
    return max(device.count, 1) * device.memory_mib / 1024
