"""All checks, in the order in which they are read: what others rest on comes first."""

from collections.abc import Iterator
from typing import Final

from cli.checks import cluster, installed, leaks, nodes, pauses, quotas, reach, topics
from cli.checks.facts import Facts
from cli.checks.findings import Check, Finding

GROUPS: Final[tuple[tuple[str, tuple[Check, ...]], ...]] = (
    ("reach", (reach.api_server, reach.identity, reach.clock, reach.endpoint)),
    (
        "cluster",
        (
            cluster.control_plane,
            cluster.authentication,
            cluster.access_entries,
            cluster.definitions,
            cluster.rights,
            cluster.autoscalers,
            cluster.scheduler_log,
        ),
    ),
    (
        "nodes",
        (
            nodes.pools,
            nodes.classes,
            nodes.discovery,
            nodes.subnets,
            nodes.security_groups,
            nodes.images,
            nodes.root_volumes,
            nodes.launches,
            quotas.quotas,
        ),
    ),
    (
        "installation",
        (
            installed.stack,
            installed.mode,
            pauses.pauses,
            installed.functions,
            installed.schedules,
            installed.interruption,
            installed.dead_letters,
            installed.catalogue,
            topics.report_topic,
        ),
    ),
    ("left over", (leaks.leaks, leaks.templates)),
)


def examine(facts: Facts) -> Iterator[tuple[str, Finding]]:
    """Iterate over what all checks find, each with its group."""
    for group, checks in GROUPS:
        for check in checks:
            for finding in check(facts):
                yield group, finding
