"""All checks of `joiner doctor --preflight` by group; prerequisites of other checks come first."""

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from cli.doctor.checks import cluster, connectivity, price_source, quotas, role_permissions
from cli.doctor.checks.finding import Check, CheckResult
from cli.doctor.preflight import cluster_network, deployment, runtime_versions
from cli.doctor.preflight.facts import PreflightFacts

PreflightCheck: TypeAlias = Callable[[PreflightFacts], Iterator[CheckResult]]


def _build_from(check: Check) -> PreflightCheck:
    """Return *check* of `joiner doctor` as a preflight check."""
    return lambda facts: check(facts.doctor)


PREFLIGHT_GROUPS: Final[tuple[tuple[str, tuple[PreflightCheck, ...]], ...]] = (
    (
        "this computer",
        (runtime_versions.check_node, runtime_versions.check_python, _build_from(connectivity.check_clock)),
    ),
    (
        "account",
        (
            _build_from(connectivity.check_identity),
            deployment.check_bootstrap,
            deployment.check_deployment_permissions,
            deployment.check_spot_role,
            _build_from(role_permissions.check_default_key),
            _build_from(quotas.check_quotas),
            deployment.check_price_list_api,
            _build_from(price_source.check_price_source),
        ),
    ),
    (
        "cluster",
        (
            _build_from(cluster.check_control_plane),
            cluster_network.check_kubernetes_version,
            _build_from(cluster.check_authentication),
            cluster_network.check_endpoint_access,
            _build_from(connectivity.check_api_server),
            _build_from(cluster.check_crds),
            _build_from(cluster.check_autoscalers),
        ),
    ),
    (
        "network of the nodes",
        (
            cluster_network.check_discovery_tags,
            cluster_network.check_tagged_subnets,
            cluster_network.check_zones,
        ),
    ),
)


def run_preflight_checks(facts: PreflightFacts) -> Iterator[tuple[str, CheckResult]]:
    """Run all preflight checks; yield each result with the name of its group."""
    for group, checks in PREFLIGHT_GROUPS:
        for check in checks:
            for result in check(facts):
                yield group, result
