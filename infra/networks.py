"""What is refused of a network before it is deployed: what is missing for a mode, and what a mode would pass over."""

import re
from ipaddress import ip_network
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from infra.knobs import Knobs

MODES: Final = ("public", "private", "isolated")
_IDS: Final = {
    "subnets": "subnet",
    "security_groups": "sg",
    "vpc": "vpc",
    "cluster_security_group": "sg",
    "route_tables": "rtb",
    "prefix_lists": "pl",
}
_INSIDE: Final = (*_IDS, "vpc_cidrs")
"""What means nothing to functions that are outside a VPC."""
NO_PRICES: Final = (
    "joiner:network is isolated, where no endpoint leads to the pricing service: "
    "joiner:price-list must name a file; `joiner catalog prices -o FILE` writes one"
)


def check_network(knobs: "Knobs") -> None:
    """Refuse knobs that are wrong together.

    Raises:
        ValueError: the message names what is missing, or too much.
    """
    for field, kind in _IDS.items():
        _check_ids(field, getattr(knobs, field), kind)
    _check_blocks(knobs.vpc_cidrs)
    if knobs.network == "public":
        _refuse(knobs, *_INSIDE, because="is for functions inside a VPC: want joiner:network private or isolated")
        if knobs.vpc_endpoints == "true":
            raise ValueError("joiner:vpc-endpoints is true: want joiner:network private or isolated")
        return
    _need(knobs, "subnets", because=f"joiner:network is {knobs.network}")
    _check_group(knobs)
    if knobs.vpc_endpoints == "true":
        _need(knobs, "vpc", "vpc_cidrs", "route_tables", because="joiner:vpc-endpoints is true")
    else:
        _refuse(knobs, "route_tables", because="is for joiner:vpc-endpoints=true")
    if knobs.network == "isolated" and not knobs.price_list:
        raise ValueError(NO_PRICES)


def _check_group(knobs: "Knobs") -> None:
    if knobs.security_groups:
        made = "is for a security group of the stack's own, and joiner:security-groups names others"
        _refuse(knobs, "cluster_security_group", "prefix_lists", because=made)
        return
    _need(knobs, "vpc", "cluster_security_group", because="joiner:security-groups names none, so the stack makes one")
    if not knobs.prefix_lists:
        return
    if knobs.network == "private":
        raise ValueError("joiner:prefix-lists is for joiner:network=isolated: through a NAT all of AWS is reached")
    _need(knobs, "vpc_cidrs", because="joiner:prefix-lists bounds where functions may connect to")


def _need(knobs: "Knobs", *fields: str, because: str) -> None:
    missing = [f"joiner:{one.replace('_', '-')}" for one in fields if not getattr(knobs, one)]
    if missing:
        raise ValueError(f"{because}: {' and '.join(missing)} must be given")


def _refuse(knobs: "Knobs", *fields: str, because: str) -> None:
    for one in fields:
        if getattr(knobs, one):
            raise ValueError(f"joiner:{one.replace('_', '-')} {because}")


def _check_ids(field: str, text: str, kind: str) -> None:
    one = rf"{kind}-[0-9a-f]{{8}}([0-9a-f]{{9}})?"
    if not re.fullmatch(rf"({one}(, ?{one})*)?", text):
        raise ValueError(f"joiner:{field.replace('_', '-')} is {text!r}: want {kind}-0123456789abcdef0")


def _check_blocks(text: str) -> None:
    for block in filter(None, (one.strip() for one in text.split(","))):
        try:
            open_to_all = ip_network(block).prefixlen == 0
        except ValueError as error:
            raise ValueError(f"joiner:vpc-cidrs: {error}: want one like 10.0.0.0/16") from None
        if open_to_all:
            raise ValueError(f"joiner:vpc-cidrs: {block} is everywhere: want the VPC's own blocks")
