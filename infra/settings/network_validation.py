"""Validation of network options before a deployment.

The errors are options that a mode requires and that are missing, and options that a mode would ignore.
"""

from collections.abc import Iterable, Iterator
from ipaddress import ip_network
from typing import Final

from infra.settings.settings import StackOptions, format_setting_name

_VPC_FIELDS: Final = (
    *("subnets", "security_groups", "vpc", "cluster_security_group", "route_tables", "prefix_lists", "vpc_cidrs"),
)
"""Options that have no effect on functions outside a VPC."""
NO_PRICES_ERROR: Final = (
    "network is isolated, which has no endpoint of the pricing service: "
    "price-list must name a file; to fix: create it with `joiner catalog prices -o FILE`"
)

NO_SAVINGS_PLANS_ERROR: Final = (
    "commitments is account, but network is isolated, which has no endpoint for Savings Plans: set commitments: bucket"
)


def find_network_errors(options: StackOptions) -> Iterator[str]:
    """Yield the errors in the network options in combination; each message names the missing or superfluous option."""
    yield from _find_block_errors(options.vpc_cidrs)
    if options.network == "public":
        yield from _refuse_options(
            options, *_VPC_FIELDS, reason="is for functions inside a VPC: set network to private or isolated"
        )
        if options.vpc_endpoints:
            yield "vpc-endpoints is true: set network to private or isolated"
        return
    yield from _require_options(options, "subnets", reason=f"network is {options.network}")
    yield from _find_security_group_errors(options)
    if options.vpc_endpoints:
        yield from _require_options(options, "vpc", "vpc_cidrs", "route_tables", reason="vpc-endpoints is true")
    else:
        yield from _refuse_options(
            options, "route_tables", reason="has no effect without vpc-endpoints: true: remove it"
        )
    if options.network == "isolated" and not options.price_list:
        yield NO_PRICES_ERROR
    if options.network == "isolated" and options.commitments == "account":
        yield NO_SAVINGS_PLANS_ERROR


def _find_security_group_errors(options: StackOptions) -> Iterator[str]:
    if options.security_groups:
        reason = (
            "is for the security group that the stack creates, but security-groups names "
            "existing security groups: remove one of the settings"
        )
        yield from _refuse_options(options, "cluster_security_group", "prefix_lists", reason=reason)
        return
    yield from _require_options(
        options,
        "vpc",
        "cluster_security_group",
        reason="security-groups is empty, so the stack creates a security group",
    )
    if not options.prefix_lists:
        return
    if options.network == "private":
        yield "prefix-lists is for network: isolated: a NAT gateway reaches all addresses"
    yield from _require_options(options, "vpc_cidrs", reason="prefix-lists restricts the connections of the functions")


def _require_options(options: StackOptions, *fields: str, reason: str) -> Iterator[str]:
    missing = [format_setting_name(field) for field in fields if not getattr(options, field)]
    if missing:
        yield f"{reason}: set {' and '.join(missing)} too"


def _refuse_options(options: StackOptions, *fields: str, reason: str) -> Iterator[str]:
    for field in fields:
        if getattr(options, field):
            yield f"{format_setting_name(field)} {reason}"


def _find_block_errors(blocks: Iterable[str]) -> Iterator[str]:
    for block in blocks:
        try:
            open_to_all = ip_network(block).prefixlen == 0
        except ValueError as error:
            yield f"vpc-cidrs: {error}: must be a CIDR block like 10.0.0.0/16"
            continue
        if open_to_all:
            yield f"vpc-cidrs: {block} contains all addresses: use the CIDR blocks of the VPC"
