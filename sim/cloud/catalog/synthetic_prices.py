"""Prices that are computed, not listed: SYNTHETIC, but they order a catalog about as EC2's prices do.

On demand, a type costs an amount per vCPU and per GiB of memory, times factors that follow from its family name: `c7gn`
is category `c`, generation 7, attributes `g` and `n`. Local disks and accelerators are added. Burstable types are
priced by memory alone. Everything else is a rate per vCPU, so that within a family twice the size is exactly twice the
price.

The spot price is a random walk between 28 % and 45 % of the on-demand price: each pool has its own level, which drifts
over the days and varies by the hour. It is a function of seed, type, zone and hour, without state: the hours can be
requested in any order.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Final

from shared.model.ec2.instance_type_info import GpuDevice, InstanceTypeInfo, SpotPrice
from sim.cloud import seeded_random
from sim.cloud.catalog.instance_types import load_instance_types

VCPU_USD_PER_HOUR: Final = 0.036
MEMORY_GIB_USD_PER_HOUR: Final = 0.0033
BURSTABLE_GIB_USD_PER_HOUR: Final = 0.0104
DISK_GB_USD_PER_HOUR_BY_CATEGORY: Final = {"i": 0.00009, "d": 0.00005, "h": 0.00005}
"""By category. Hard disks are cheaper than flash, and flash is cheaper in types with much of it."""
FLASH_GB_USD_PER_HOUR: Final = 0.00016
DEVICE_GIB_USD_PER_HOUR_BY_CATEGORY: Final = {"g": 0.03, "gr": 0.03, "p": 0.055}
NEURON_GIB_USD_PER_HOUR: Final = 0.018

OLD_GENERATION_FACTORS: Final = {1: 1.7, 2: 1.7, 3: 1.3, 4: 1.05}
"""Price of the first generations of c, m and r, relative to the fifth."""
HIGH_BANDWIDTH_FACTORS: Final = {5: 1.2, 6: 1.35}
"""Price factor of `n` (network) and `b` (EBS) by generation; later generations: 1.55."""
HIGH_FREQUENCY_FACTOR: Final = 1.38
EXTRA_MEMORY_FACTOR: Final = 1.3
FLEX_FACTOR: Final = 0.95

MIN_SPOT_PRICE_RATIO: Final = 0.28
MAX_SPOT_PRICE_RATIO: Final = 0.45
SPOT_PRICE_INTERVAL: Final = timedelta(hours=1)
SPOT_DRIFT_INTERVAL: Final = timedelta(days=1)
MAX_CACHED_POOL_HOURS_COUNT: Final = 1 << 16
"""Number of cached prices. Simulations of one process often begin in the same hour, with the same seed."""
_EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
_FAMILY_PATTERN: Final = re.compile(r"(?P<category>[a-z]+)(?:-\d+tb)?(?P<generation>\d+)(?P<attributes>[a-z]*)")


def compute_on_demand_price(info: InstanceTypeInfo) -> float:
    """Return the synthetic USD per hour: Linux, shared tenancy.

    Raises:
        ValueError: the name is not in EC2's format.
    """
    category, generation, attributes = _parse_family(info.name)
    if category == "t":
        return info.memory_mib / 1024 * round(BURSTABLE_GIB_USD_PER_HOUR * _compute_cpu_factor(info, generation), 6)
    per_vcpu = (
        (VCPU_USD_PER_HOUR + MEMORY_GIB_USD_PER_HOUR * _compute_gib_per_vcpu(info))
        * _compute_cpu_factor(info, generation)
        * _compute_generation_factor(category, generation)
    )
    per_vcpu *= _compute_attribute_factor(category, generation, attributes) * (
        FLEX_FACTOR if "-flex." in info.name else 1.0
    )
    per_vcpu += DISK_GB_USD_PER_HOUR_BY_CATEGORY.get(category, FLASH_GB_USD_PER_HOUR) * _compute_disk_gb_per_vcpu(info)
    return info.vcpus * round(per_vcpu, 6) + _compute_accelerator_price(category, info)


@cache
def compute_on_demand_prices() -> Mapping[str, float]:
    """Return `compute_on_demand_price` of every type, by name."""
    return MappingProxyType({name: compute_on_demand_price(info) for name, info in load_instance_types().items()})


@lru_cache(maxsize=MAX_CACHED_POOL_HOURS_COUNT)
def compute_spot_price_ratio(seed: int, instance_type: str, zone: str, at: datetime) -> float:
    """Return the pool's spot price in the hour of *at*, as a fraction of the on-demand price.

    The value is in [MIN_SPOT_PRICE_RATIO, MAX_SPOT_PRICE_RATIO].
    """
    pool = (seed, "spot", instance_type, zone)
    day, time_of_day = divmod(at - _EPOCH, SPOT_DRIFT_INTERVAL)
    hour = time_of_day // SPOT_PRICE_INTERVAL
    drift = (
        seeded_random.draw_fraction(*pool, day) * (24 - hour) / 24
        + seeded_random.draw_fraction(*pool, day + 1) * hour / 24
    )
    level = 0.6 * seeded_random.draw_fraction(*pool) + 0.3 * drift + 0.1 * seeded_random.draw_fraction(*pool, day, hour)
    return MIN_SPOT_PRICE_RATIO + (MAX_SPOT_PRICE_RATIO - MIN_SPOT_PRICE_RATIO) * level


def truncate_to_hour(at: datetime) -> datetime:
    """Return the start of the hour of *at*, since when its spot prices are valid."""
    return at - (at - _EPOCH) % SPOT_PRICE_INTERVAL


class PriceList:
    """The prices of the instance types in one region."""

    def __init__(self, offerings: tuple[tuple[str, str], ...], seed: int) -> None:
        """Use *offerings*: (type, zone) pairs, sorted."""
        self.on_demand = compute_on_demand_prices()
        self._spot_offerings = _filter_spot_offerings(offerings)
        self._seed = seed
        self._hour_start = _EPOCH
        self._price_by_pool: dict[tuple[str, str], float] = {}
        self._current_prices: tuple[SpotPrice, ...] = ()

    def get_spot_price(self, instance_type: str, zone: str, at: datetime) -> float:
        """Return the synthetic USD per hour of the pool in the hour of *at*."""
        hour_start = truncate_to_hour(at)
        if hour_start != self._hour_start:
            self._hour_start, self._price_by_pool = hour_start, {}
        pool = (instance_type, zone)
        if pool not in self._price_by_pool:
            ratio = compute_spot_price_ratio(self._seed, instance_type, zone, hour_start)
            self._price_by_pool[pool] = round(self.on_demand[instance_type] * ratio, 6)
        return self._price_by_pool[pool]

    def list_spot_prices(self, at: datetime) -> tuple[SpotPrice, ...]:
        """Return the spot prices that are valid at *at* for every pool, sorted."""
        hour_start = truncate_to_hour(at)
        if not self._current_prices or self._current_prices[0].at != hour_start:
            self._current_prices = tuple(
                self._build_spot_price(instance_type, zone, hour_start) for instance_type, zone in self._spot_offerings
            )
        return self._current_prices

    def _build_spot_price(self, instance_type: str, zone: str, at: datetime) -> SpotPrice:
        price = self.get_spot_price(instance_type, zone, at)
        return SpotPrice(instance_type=instance_type, zone=zone, price_usd_per_hour=price, at=at)


@cache
def _filter_spot_offerings(offerings: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    types_by_name = load_instance_types()
    return tuple(
        (instance_type, zone)
        for instance_type, zone in offerings
        if "spot" in types_by_name[instance_type].usage_classes
    )


def _parse_family(name: str) -> tuple[str, int, str]:
    match = _FAMILY_PATTERN.match(name)
    if match is None:
        raise ValueError(f"not an instance type: {name}")
    return match["category"], int(match["generation"]), match["attributes"]


def _compute_cpu_factor(info: InstanceTypeInfo, generation: int) -> float:
    """Return the price factor of the CPU, relative to Intel's sixth generation.

    Graviton is a fifth cheaper than Intel and 8 % more expensive with each generation; AMD is a tenth cheaper until the
    generation in which a vCPU became a whole core.
    """
    newer_generations = max(generation, 6) - 6
    if "arm64" in info.architectures:
        return 0.8 * 1.08**newer_generations
    if info.cpu_manufacturer == "AMD":
        return 1.15 * 1.05**newer_generations if newer_generations else 0.9
    return 1.05**newer_generations


def _compute_generation_factor(category: str, generation: int) -> float:
    return OLD_GENERATION_FACTORS.get(generation, 1.0) if category in {"c", "m", "r"} else 1.0


def _compute_attribute_factor(category: str, generation: int, attributes: str) -> float:
    bandwidth_factor = HIGH_BANDWIDTH_FACTORS.get(generation, 1.55) if category in {"c", "m", "r"} else 1.0
    factor = bandwidth_factor if set("nb") & set(attributes) else 1.0
    factor *= HIGH_FREQUENCY_FACTOR if "z" in attributes or category == "z" else 1.0
    return factor * (EXTRA_MEMORY_FACTOR if "e" in attributes and category != "i" else 1.0)


def _compute_gib_per_vcpu(info: InstanceTypeInfo) -> float:
    return info.memory_mib / 1024 / info.vcpus


def _compute_disk_gb_per_vcpu(info: InstanceTypeInfo) -> int:
    """Return the local disk per vCPU, rounded to 5 GB: the sizes are slightly uneven within a family."""
    return round(info.local_storage_gb / info.vcpus / 5) * 5


def _compute_accelerator_price(category: str, info: InstanceTypeInfo) -> float:
    rate = DEVICE_GIB_USD_PER_HOUR_BY_CATEGORY.get(category, DEVICE_GIB_USD_PER_HOUR_BY_CATEGORY["g"])
    neurons = info.neurons or info.inference_accelerators
    return rate * sum(map(_compute_device_gib, info.gpus)) + NEURON_GIB_USD_PER_HOUR * sum(
        map(_compute_device_gib, neurons)
    )


def _compute_device_gib(device: GpuDevice) -> float:
    return max(device.count, 1) * device.memory_mib / 1024
