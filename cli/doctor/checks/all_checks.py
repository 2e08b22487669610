"""All checks by group; prerequisites of other checks come first."""

from collections.abc import Iterator
from typing import Final

from cli.doctor.checks import (
    cluster,
    connectivity,
    installation,
    leaks,
    node_pools,
    pauses,
    price_source,
    quotas,
    report_topic,
    role_permissions,
)
from cli.doctor.checks.finding import Check, CheckResult
from cli.facts.model import DoctorFacts

CHECK_GROUPS: Final[tuple[tuple[str, tuple[Check, ...]], ...]] = (
    (
        "connectivity",
        (
            connectivity.check_api_server,
            connectivity.check_identity,
            connectivity.check_clock,
            connectivity.check_endpoint,
        ),
    ),
    (
        "cluster",
        (
            cluster.check_control_plane,
            cluster.check_authentication,
            cluster.check_access_entries,
            cluster.check_crds,
            cluster.check_rbac,
            cluster.check_autoscalers,
            cluster.check_scheduler_log,
        ),
    ),
    (
        "nodes",
        (
            node_pools.check_node_pools,
            node_pools.check_node_classes,
            node_pools.check_discovery,
            node_pools.check_subnets,
            node_pools.check_security_groups,
            node_pools.check_images,
            node_pools.check_volume_sizes,
            node_pools.check_launch_dry_run,
            role_permissions.check_default_key,
            role_permissions.check_ipv6,
            quotas.check_quotas,
            quotas.check_money_limits,
            pauses.check_gangs,
        ),
    ),
    (
        "installation",
        (
            installation.check_stack,
            installation.check_mode,
            installation.check_zonal_shift,
            cluster.check_dynamic_resources,
            pauses.check_pauses,
            installation.check_functions,
            installation.check_schedules,
            installation.check_interruption,
            installation.check_dead_letters,
            installation.check_catalog,
            price_source.check_price_source,
            report_topic.check_report_topic,
            installation.check_group,
        ),
    ),
    ("leaks", (leaks.check_leaks, leaks.check_launch_templates)),
)


def run_checks(facts: DoctorFacts) -> Iterator[tuple[str, CheckResult]]:
    """Run all checks; yield each result with the name of its group."""
    for group, checks in CHECK_GROUPS:
        for check in checks:
            for result in check(facts):
                yield group, result
