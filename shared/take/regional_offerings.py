"""The regional catalog: instance types, offerings and prices of the region.

A part is queried when its stored answer is too old. There are four queries with about forty API calls in total. Each
part is stored with the time of its query. If a query fails, the stored part is used and a Problem reports its age:
instance types and zones seldom change, and an old price sorts a catalog better than no price. Fallbacks for on-demand
prices are the last answer, a price list in the bucket, and a price list shipped with the deployment; the newest of them
is used. No price is ever estimated: an instance type without a price is not offered.
"""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final, TypeVar, cast

import msgspec

from shared.errors import Fault, NotFound, Unreachable
from shared.model.cloud_provider.regional_offerings import RegionalOfferings, list_unpriced_types
from shared.model.core.labels import ON_DEMAND, SPOT
from shared.model.core.metadata import Problem
from shared.model.ec2.instance_type_info import InstanceTypeInfo, SpotPrice
from shared.ports.world import World
from shared.store.catalog_format import compress_body, decompress_body

T = TypeVar("T")

PART_TTL: Final = {
    "types": timedelta(hours=12),
    "offerings": timedelta(hours=12),
    "on_demand": timedelta(hours=12),
    "spot": timedelta(minutes=30),
}
"""How long the answer to each query is used."""
_PRICE_PARTS: Final = (("on_demand", ON_DEMAND), ("spot", SPOT))
_PROBLEM_KIND: Final = "Market"


class PriceListFile(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A file of on-demand prices, for networks without access to the pricing service.

    `joiner catalog prices` writes it.
    """

    region: str
    priced_at: datetime
    on_demand: dict[str, float]
    """By instance type, in USD per hour (CNY in China)."""


class _StoredParts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The stored answers, each with the time of its query."""

    types: tuple[datetime, tuple[InstanceTypeInfo, ...]] | None = None
    offerings: tuple[datetime, tuple[tuple[str, str], ...]] | None = None
    on_demand: tuple[datetime, dict[str, float]] | None = None
    spot: tuple[datetime, tuple[SpotPrice, ...]] | None = None


class RegionalCatalog(msgspec.Struct, frozen=True, kw_only=True):
    """The instance types, offerings and prices of the region."""

    infos: tuple[InstanceTypeInfo, ...]
    market: RegionalOfferings
    counts: dict[str, float] = {}
    """The age of the prices of each capacity type in seconds, and the number of instance types without an on-demand
    price.
    """
    problems: tuple[Problem, ...] = ()


def build_market_key(region: str) -> str:
    """Return the object key of the stored answers for *region*."""
    return f"market/{region}.json.gz"


def build_price_list_key(region: str) -> str:
    """Return the object key of a `PriceListFile` for *region*."""
    return f"market/prices-{region}.json"


def load_regional_catalog(world: World) -> RegionalCatalog:
    """Return the regional catalog.

    Raises:
        Fault: instance types, zones, or all prices are available neither from AWS nor from stored answers.
    """
    with world.trace("take"):
        return _CatalogQuery(world).run()


class _CatalogQuery:
    """One run of the four queries."""

    def __init__(self, world: World) -> None:
        """Read the stored answers."""
        self._world, self._now, self._region = world, world.clock(), world.settings.region
        self._problems: list[Problem] = []
        self._outdated_parts: set[str] = set()
        self._stored_parts = self._initial_parts = (
            self._read_stored(build_market_key(self._region), _StoredParts) or _StoredParts()
        )

    def run(self) -> RegionalCatalog:
        """Query the outdated parts, store them, and return all parts.

        Raises:
            Fault: see `load_regional_catalog`.
        """
        ec2, region = self._world.ec2, self._region
        _, types = self._get_part("types", ec2.describe_instance_types)
        _, offerings = self._get_part("offerings", ec2.describe_offerings)
        no_on_demand_prices: dict[str, float] = {}
        on_demand = self._get_part(
            "on_demand", lambda: dict(self._world.prices.get_on_demand_prices(region)), fallback=no_on_demand_prices
        )
        no_spot_prices: tuple[SpotPrice, ...] = ()
        spot = self._get_part("spot", ec2.describe_spot_prices, fallback=no_spot_prices)
        priced_at_by_name = {name: at for name, (at, prices) in (("OnDemand", on_demand), ("Spot", spot)) if prices}
        if not priced_at_by_name:
            raise Unreachable(f"{region}: no prices: {'; '.join(problem.message for problem in self._problems)}")
        if self._stored_parts != self._initial_parts:
            self._world.bucket.put(
                build_market_key(region), compress_body(msgspec.json.encode(self._stored_parts, order="deterministic"))
            )
        market = RegionalOfferings(
            region=region,
            offerings=offerings,
            on_demand=on_demand[1],
            spot=spot[1],
            priced_at=min(priced_at_by_name.values()),
            estimated_capacity_types=frozenset(name for part, name in _PRICE_PARTS if part in self._outdated_parts),
        )
        counts = {f"{name}PriceAgeSeconds": (self._now - at).total_seconds() for name, at in priced_at_by_name.items()}
        counts["UnpricedInstanceTypes"] = float(len(list_unpriced_types(types, market)))
        return RegionalCatalog(infos=types, market=market, counts=counts, problems=tuple(self._problems))

    def _get_part(self, name: str, query: Callable[[], T], fallback: T | None = None) -> tuple[datetime, T]:
        """Return one part and the time of its query: the stored answer while valid, else a new or older answer."""
        stored_answer: tuple[datetime, T] | None = getattr(self._stored_parts, name)
        if stored_answer is not None and timedelta() <= self._now - stored_answer[0] < PART_TTL[name]:
            return stored_answer
        try:
            answer = (self._now, query())
        except Fault as fault:
            return self._get_older_part(name, stored_answer, fault, fallback)
        self._stored_parts = msgspec.structs.replace(self._stored_parts, **{name: answer})
        return answer

    def _get_older_part(
        self, name: str, stored_answer: tuple[datetime, T] | None, fault: Fault, fallback: T | None
    ) -> tuple[datetime, T]:
        self._outdated_parts.add(name)
        older_answers = [stored_answer] if stored_answer is not None else []
        if name == "on_demand":
            older_answers += [
                (price_list.priced_at, cast("T", price_list.on_demand)) for price_list in self._read_price_lists()
            ]
        if older_answers:
            older_answer = max(older_answers, key=lambda dated_answer: dated_answer[0])
            explanation = f"the response of {older_answer[0]:%Y-%m-%d %H:%M} UTC is used"
        elif fallback is not None:
            older_answer, explanation = (self._now, fallback), "there is no earlier response"
        else:
            raise fault
        message = f"could not be read: {type(fault).__name__}: {fault}; {explanation}"
        self._problems.append(Problem(kind=_PROBLEM_KIND, name=name, message=message))
        return older_answer

    def _read_price_lists(self) -> Iterator[PriceListFile]:
        """Yield the price lists of the operator: the one in the bucket and the one shipped with the deployment."""
        bucket_source = (build_price_list_key(self._region), self._world.bucket.get)
        packaged_source = (self._world.settings.price_list, self._world.read_packaged_file)
        for name, read in (bucket_source, packaged_source):
            price_list = (
                _decode_or_none(name, read, PriceListFile, self._problems) if name and read is not None else None
            )
            if price_list is not None and price_list.region == self._region:
                yield price_list
            elif price_list is not None:
                message = f"has the prices of {price_list.region}, not of {self._region}; it is ignored"
                self._problems.append(Problem(kind=_PROBLEM_KIND, name=name, message=message))

    def _read_stored(self, key: str, kind: type[T]) -> T | None:
        return _decode_or_none(key, self._world.bucket.get, kind, self._problems)


def _decode_or_none(name: str, read: Callable[[str], bytes], kind: type[T], problems: list[Problem]) -> T | None:
    """Decode the document *name* that *read* returns; None if it is missing or, with a Problem, cannot be decoded."""
    try:
        return msgspec.json.decode(decompress_body(read(name)), type=kind)
    except NotFound:
        return None
    except (Fault, OSError, ValueError) as error:
        problems.append(
            Problem(kind=_PROBLEM_KIND, name=name, message=f"{type(error).__name__}: {error}; it is ignored")
        )
        return None
