"""What is on sale in the region: asked for where what is kept of it has grown old, and kept, with the day of each part.

Four questions of about forty calls together. A part that is not answered is that of an earlier day, and said to be:
types and zones change seldom, and an old price orders a catalogue better than none. On-demand prices of an earlier day
are the newest of what was answered last, of a list in the bucket, and of one that the deployment brought along.
Nothing is ever guessed: what has no price anywhere is not for sale.
"""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final, TypeVar, cast

import msgspec

from shared.errors import Fault, Gone, Unreachable
from shared.launch.types import Market, unpriced
from shared.model.ec2 import InstanceTypeInfo, SpotPrice
from shared.model.labels import ON_DEMAND, SPOT
from shared.model.objects import Problem
from shared.ports import World
from shared.snapshot.catalogue import packed, unpacked

T = TypeVar("T")

LASTS: Final = {
    "types": timedelta(hours=12),
    "offerings": timedelta(hours=12),
    "on_demand": timedelta(hours=12),
    "spot": timedelta(minutes=30),
}
"""How long an answer is good for."""
_PRICES: Final = (("on_demand", ON_DEMAND), ("spot", SPOT))
_KIND: Final = "Market"


class PriceList(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """On-demand prices of a day, as a file: for where no pricing service can be reached. `joiner catalog prices`."""

    region: str
    priced_at: datetime
    on_demand: dict[str, float]
    """USD per hour (CNY in China) by instance type."""


class _Kept(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept between two catalogues."""

    types: tuple[datetime, tuple[InstanceTypeInfo, ...]] | None = None
    offerings: tuple[datetime, tuple[tuple[str, str], ...]] | None = None
    on_demand: tuple[datetime, dict[str, float]] | None = None
    spot: tuple[datetime, tuple[SpotPrice, ...]] | None = None


class Shop(msgspec.Struct, frozen=True, kw_only=True):
    """What is on sale in the region."""

    infos: tuple[InstanceTypeInfo, ...]
    market: Market
    counts: dict[str, float] = {}
    """How old the prices of each capacity type are, in seconds, and how many types have no on-demand price."""
    problems: tuple[Problem, ...] = ()


def market_key(region: str) -> str:
    """Answer where a region's answers are kept."""
    return f"market/{region}.json.gz"


def price_list_key(region: str) -> str:
    """Answer where a `PriceList` is looked for."""
    return f"market/prices-{region}.json"


def shop(world: World) -> Shop:
    """Answer what is on sale.

    Raises:
        Fault: types, zones or any price at all can be had neither from AWS nor from what was kept.
    """
    return _Errand(world).done()


class _Errand:
    """One round of questions."""

    def __init__(self, world: World) -> None:
        """Read what was kept."""
        self._world, self._now, self._region = world, world.clock(), world.settings.region
        self._problems: list[Problem] = []
        self._late: set[str] = set()
        self._kept = self._was = self._read(market_key(self._region), _Kept) or _Kept()

    def done(self) -> Shop:
        """Ask for what is old, keep it, and answer all.

        Raises:
            Fault: as `shop`.
        """
        ec2, region = self._world.ec2, self._region
        _, types = self._part("types", ec2.instance_types)
        _, offerings = self._part("offerings", ec2.offerings)
        no_prices: dict[str, float] = {}
        on_demand = self._part("on_demand", lambda: dict(self._world.prices.on_demand(region)), otherwise=no_prices)
        nothing: tuple[SpotPrice, ...] = ()
        spot = self._part("spot", ec2.spot_prices, otherwise=nothing)
        days = {name: at for name, (at, prices) in (("OnDemand", on_demand), ("Spot", spot)) if prices}
        if not days:
            raise Unreachable(f"{region}: no price at all: {'; '.join(one.message for one in self._problems)}")
        if self._kept != self._was:
            self._world.bucket.put(market_key(region), packed(msgspec.json.encode(self._kept, order="deterministic")))
        market = Market(
            region=region,
            offerings=offerings,
            on_demand=on_demand[1],
            spot=spot[1],
            priced_at=min(days.values()),
            estimated=frozenset(name for part, name in _PRICES if part in self._late),
        )
        counts = {f"{name}PriceAgeSeconds": (self._now - at).total_seconds() for name, at in days.items()}
        counts["UnpricedInstanceTypes"] = float(len(unpriced(types, market)))
        return Shop(infos=types, market=market, counts=counts, problems=tuple(self._problems))

    def _part(self, name: str, ask: Callable[[], T], otherwise: T | None = None) -> tuple[datetime, T]:
        """Answer one part and its day: what is kept while it is good, else what AWS says, else the newest there is."""
        kept: tuple[datetime, T] | None = getattr(self._kept, name)
        if kept is not None and timedelta() <= self._now - kept[0] < LASTS[name]:
            return kept
        try:
            found = (self._now, ask())
        except Fault as fault:
            return self._of_another_day(name, kept, fault, otherwise)
        self._kept = msgspec.structs.replace(self._kept, **{name: found})
        return found

    def _of_another_day(
        self, name: str, kept: tuple[datetime, T] | None, fault: Fault, otherwise: T | None
    ) -> tuple[datetime, T]:
        self._late.add(name)
        older = [kept] if kept is not None else []
        if name == "on_demand":
            older += [(one.priced_at, cast("T", one.on_demand)) for one in self._price_lists()]
        if older:
            found = max(older, key=lambda one: one[0])
            used = f"what was answered on {found[0]:%Y-%m-%d %H:%M} UTC is used"
        elif otherwise is not None:
            found, used = (self._now, otherwise), "there are none to use instead"
        else:
            raise fault
        message = f"could not be asked for: {type(fault).__name__}: {fault}; {used}"
        self._problems.append(Problem(kind=_KIND, name=name, message=message))
        return found

    def _price_lists(self) -> Iterator[PriceList]:
        """Iterate over the lists that people made: in the bucket, and brought along by the deployment."""
        laid = (price_list_key(self._region), self._world.bucket.get)
        packaged = (self._world.settings.price_list, self._world.packaged)
        for name, read in (laid, packaged):
            found = _decoded(name, read, PriceList, self._problems) if name and read is not None else None
            if found is not None and found.region == self._region:
                yield found
            elif found is not None:
                message = f"has the prices of {found.region}, not of {self._region}; it is passed over"
                self._problems.append(Problem(kind=_KIND, name=name, message=message))

    def _read(self, key: str, kind: type[T]) -> T | None:
        return _decoded(key, self._world.bucket.get, kind, self._problems)


def _decoded(name: str, read: Callable[[str], bytes], kind: type[T], problems: list[Problem]) -> T | None:
    """Answer what *read* has of *name*, None if there is none; what cannot be read joins *problems*."""
    try:
        return msgspec.json.decode(unpacked(read(name)), type=kind)
    except Gone:
        return None
    except (Fault, OSError, ValueError) as error:
        problems.append(Problem(kind=_KIND, name=name, message=f"{type(error).__name__}: {error}; it is passed over"))
        return None
