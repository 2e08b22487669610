"""A file of on-demand prices that an operator created, shipped with the functions, with its date.

`joiner catalog prices` writes such a file. The functions use it if the pricing service does not answer, and report that
they do.
"""

from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

PRICE_LIST_FILENAME: Final = "prices.json"
"""The filename in the asset of the functions."""


class PriceListAsset(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The fields of a price list that are validated."""

    region: str
    priced_at: datetime
    on_demand: dict[str, float]

    def format_summary(self) -> str:
        """Return region, date and number of prices in one line."""
        return f"{len(self.on_demand)} prices of {self.region}, {self.priced_at:%Y-%m-%d}"


def read_price_list(filename: str, region: str) -> tuple[PriceListAsset, bytes]:
    """Return the price list in *filename*, and the bytes of the file. An empty *region* stands for any region.

    Raises:
        ValueError: the file is missing or invalid, or is for another region; the message names the option.
    """
    price_list, body = _read_file(filename)
    if region and price_list.region != region:
        raise ValueError(
            f"price-list: {filename} has the prices of {price_list.region}, but the stack is for {region}; "
            f"to fix: create it with `joiner catalog prices --region {region} -o FILE`"
        )
    return price_list, body


def _read_file(filename: str) -> tuple[PriceListAsset, bytes]:
    try:
        body = Path(filename).read_bytes()
        return msgspec.json.decode(body, type=PriceListAsset), body
    except (OSError, ValueError) as error:
        fix = "to fix: create it with `joiner catalog prices -o FILE`"
        raise ValueError(f"price-list: {filename} is not a price list: {error}; {fix}") from None
