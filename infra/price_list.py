"""A list of on-demand prices that an operator made, shipped with the functions, with its day.

`joiner catalog prices` writes one. The functions use it where the pricing service does not answer, and say so.
"""

from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

FILE: Final = "prices.json"
"""Its name beside the functions."""


class PriceList(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is looked at of it."""

    region: str
    priced_at: datetime
    on_demand: dict[str, float]

    def summary(self) -> str:
        """Answer where, when and how many in a line."""
        return f"{len(self.on_demand)} prices of {self.region}, {self.priced_at:%Y-%m-%d}"


def read(filename: str) -> tuple[PriceList, bytes]:
    """Answer the list in *filename*, and the file itself.

    Raises:
        ValueError: there is none; the message names the knob.
    """
    try:
        body = Path(filename).read_bytes()
        return msgspec.json.decode(body, type=PriceList), body
    except (OSError, ValueError) as error:
        remedy = "`joiner catalog prices -o FILE` writes one"
        raise ValueError(f"joiner:price-list: {filename} is no list of prices: {error}: {remedy}") from None
