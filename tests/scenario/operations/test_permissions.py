"""Every permission in the cluster is needed, and every needed permission is granted.

Short runs record the permissions that the functions use. A permission that no run uses is superfluous; without a
permission that a run uses, that run fails, because every embedded run enforces the installed ClusterRole.
"""

from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import Final

import pytest

from shared.installer.rbac import (
    RbacPermission,
    find_granted_permissions,
    format_permission,
    read_optional_rules,
    read_rbac_manifests,
)
from shared.kubernetes.errors import GROUP
from shared.model.core.labels import SCHEDULE, SURGE_DRAIN
from shared.model.decisions.action import RestartDeployment, ScaleWorkload
from shared.ports.world import World as Outside
from shared.take.kubernetes import informer_cache
from sim.authorization.access_checks import AccessDeniedError
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.scenario.gang_manifests import make_definition, make_pod_group, make_request
from tests.scenario.operations.test_features import make_buffer, make_overlay
from tests.scenario.worlds import CLAIMS, World, make_deployment, make_node_class, make_node_pool, make_pod

OPTIONAL_FEATURES: Final = frozenset(read_optional_rules())
GRANTED: Final = find_granted_permissions(read_rbac_manifests(OPTIONAL_FEATURES), [GROUP])
FEATURES: Final = {"feature-gates": "NodeOverlay=true,StaticCapacity=true,CapacityBuffer=true"}
DELETION_COST: Final = {"pod-deletion-cost": "on"}
RESTART_DEPLOYMENT: Final = ("patch", "apps", "deployments")
SCALE_WORKLOADS: Final = tuple(
    ("patch", "apps", resource) for resource in ("deployments/scale", "statefulsets", "statefulsets/scale")
)
READ_DEVICES: Final = tuple(
    (verb, "resource.k8s.io", resource)
    for verb in ("list", "watch")
    for resource in ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices")
)
GANG_PERMISSIONS: Final = (
    ("list", "scheduling.x-k8s.io", "podgroups"),
    ("watch", "scheduling.x-k8s.io", "podgroups"),
    ("list", "autoscaling.x-k8s.io", "provisioningrequests"),
    ("watch", "autoscaling.x-k8s.io", "provisioningrequests"),
    ("patch", "autoscaling.x-k8s.io", "provisioningrequests/status"),
)
PATCH_POD: Final = ("patch", "", "pods")
SPREAD: Final = (
    '{"podTopologySpread": {"defaultConstraints": [{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", '
    '"whenUnsatisfiable": "ScheduleAnyway"}]}}'
)
GET_CLAIM: Final = ("get", "karpenter.sh", "nodeclaims")


class Featured(World):
    """A world with all features."""

    def __init__(self) -> None:
        """Deploy the stack with feature gates."""
        super().__init__(
            make_node_class(),
            make_node_pool(after="10s"),
            template=synthesize_template(settings=ACTIVE_SETTINGS | FEATURES),
        )

    def _build_world(self, function: str, environment: dict[str, str]) -> Outside:
        return super()._build_world(function, environment | {"SCHEDULER_CONFIG": SPREAD})


def run_features(world: World) -> None:
    """Use node overlays, a capacity buffer and default spread; pods of two kinds wait together."""
    world.apply([make_overlay("cheap", "m5.xlarge", price="0.1"), make_deployment(3), make_buffer(2)])
    world.apply([make_deployment(2, "api", cpu="1500m")])
    world.wait_until_settled(5)
    world.advance_seconds(130)


def run_large_lists(world: World) -> None:
    """Run with lists that a warm container watches instead of listing them again; small lists are not watched."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(informer_cache, "MIN_CACHED_LIST_BYTES", 0)
        run_features(world)


def run_scale_down(world: World) -> None:
    """Launch nodes, drain them and remove them; an impossible pod gets the same event again, also in new containers."""
    world.apply([make_deployment(3), make_pod("impossible", nodeSelector={"color": "none"})])
    world.wait_until(lambda: len(world.list_running_pods()) == 3)
    claim = world.list_claims()[0]["metadata"]["name"]
    world.cluster.api.delete(CLAIMS, claim)
    world.wait_until(lambda: claim not in {item["metadata"]["name"] for item in world.list_claims()}, 600)
    world.scale(0)
    world.wait_until(lambda: not world.list_claims(), 400)
    for _ in range(3):
        world.clear_container_caches()
        world.advance_time(timedelta(minutes=4))


def run_orphan(world: World) -> None:
    """Remove the NodeClaim of a running instance: the instance is terminated, and its Node deleted."""
    world.apply([make_deployment(1)])
    world.wait_until_settled(1)
    [claim] = world.list_claims()
    instance_id = claim["status"]["providerID"].rpartition("/")[2]
    world.forfeit.add(instance_id)
    world.cluster.api.patch(CLAIMS, claim["metadata"]["name"], {"metadata": {"finalizers": None}})
    world.cluster.api.delete(CLAIMS, claim["metadata"]["name"])
    world.wait_until(lambda: instance_id not in {item.instance_id for item in world.list_active_instances()}, 400)


def run_grace_period(world: World) -> None:
    """Delete a node whose pods may not be evicted: they are deleted when its grace period ends."""
    pool = make_node_pool(template={"terminationGracePeriod": "1m"})
    world.apply([pool, make_deployment(1, annotations={"karpenter.sh/do-not-disrupt": "true"})])
    world.wait_until_settled(1)
    [claim] = world.list_claims()
    world.cluster.api.delete(CLAIMS, claim["metadata"]["name"])
    world.wait_until(lambda: claim["metadata"]["name"] not in {c["metadata"]["name"] for c in world.list_claims()}, 400)


def run_deletion_costs(world: World) -> None:
    """Let pods run on two nodes, one of which is to become empty first."""
    world.apply([make_deployment(12)])
    world.wait_until_settled(12)
    world.advance_seconds(180)


def build_surge_world() -> World:
    """Deploy the stack with surge drain, for a NodePool that requests it."""
    pool = make_node_pool(
        types=("m5.large", "m5.2xlarge"), disruption={"consolidationPolicy": "WhenEmptyOrUnderutilized"}
    )
    pool["metadata"]["annotations"] = {SURGE_DRAIN: "true"}
    template = synthesize_template(settings=ACTIVE_SETTINGS | {"surge-drain": "on"})
    return World(make_node_class(), pool, template=template)


def run_surge_drain(world: World) -> None:
    """Replace the node of the only pod of a Deployment."""
    world.apply([make_deployment(1), make_deployment(6, "padding")])
    world.wait_until_settled(7)
    world.scale(0, "padding")
    world.wait_until(lambda: world.list_done_actions(RestartDeployment), 900)


def build_scheduled_world() -> World:
    """Deploy the stack with scheduled scaling, for a NodePool whose schedule lists a Deployment and a StatefulSet."""
    pool = make_node_pool()
    scale = "scale=Deployment/default/web scale=StatefulSet/default/cart"
    pool["metadata"]["annotations"] = {SCHEDULE: f"@hourly 1h {scale}"}
    template = synthesize_template(settings=ACTIVE_SETTINGS | {"scheduled-scaling": "on"})
    return World(make_node_class(), pool, template=template)


def run_scheduled_scaling(world: World) -> None:
    """Scale a Deployment and a StatefulSet to zero."""
    world.apply([make_deployment(1), make_deployment(1, "cart", kind="StatefulSet")])
    world.wait_until(lambda: len(world.list_done_actions(ScaleWorkload)) == 2, 300)


def build_device_world() -> World:
    """Deploy the stack with dynamic resource allocation."""
    template = synthesize_template(settings=ACTIVE_SETTINGS | {"dynamic-resource-allocation": "on"})
    return World(make_node_class(), make_node_pool(), template=template)


def run_devices(world: World) -> None:
    """Read the kinds of dynamic resource allocation: first list, then watch."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(informer_cache, "MIN_CACHED_LIST_BYTES", 0)
        world.apply([make_deployment(1)])
        world.wait_until_settled(1)
        world.apply([make_deployment(3)])
        world.wait_until_settled(3)
        world.advance_seconds(130)


def build_gang_world() -> World:
    """Deploy the stack with gangs and ProvisioningRequests."""
    settings = ACTIVE_SETTINGS | {"gangs": "on", "provisioning-requests": "on"}
    return World(
        make_definition("autoscaling.x-k8s.io", "v1", "ProvisioningRequest"),
        make_definition("scheduling.x-k8s.io", "v1alpha1", "PodGroup"),
        make_node_class(),
        make_node_pool(),
        template=synthesize_template(settings=settings),
    )


def run_gangs(world: World) -> None:
    """Launch nodes for a PodGroup and for a ProvisioningRequest, also with lists that are watched."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(informer_cache, "MIN_CACHED_LIST_BYTES", 0)
        gang = make_deployment(2)
        gang["spec"]["template"]["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = "train"
        world.apply([gang])
        world.advance_seconds(90)
        assert not world.list_running_pods()
        world.apply([make_pod_group(2)])
        world.wait_until_settled(2)
        world.apply(make_request(2))
        world.wait_until(lambda: len(world.list_nodes()) == 3)
        world.advance_seconds(60)


RUNS: Final[dict[str, tuple[Callable[[], World], Callable[[World], None]]]] = {
    "features": (Featured, run_features),
    "large-lists": (Featured, run_large_lists),
    "scale-down": (lambda: World(make_node_class(), make_node_pool()), run_scale_down),
    "orphan": (lambda: World(make_node_class(), make_node_pool()), run_orphan),
    "grace-period": (lambda: World(make_node_class()), run_grace_period),
    "deletion-cost": (
        lambda: World(
            make_node_class(),
            make_node_pool(),
            template=synthesize_template(settings=ACTIVE_SETTINGS | DELETION_COST),
        ),
        run_deletion_costs,
    ),
    "surge-drain": (build_surge_world, run_surge_drain),
    "scheduled-scaling": (build_scheduled_world, run_scheduled_scaling),
    "devices": (build_device_world, run_devices),
    "gangs": (build_gang_world, run_gangs),
}


@cache
def find_used_permissions(run_name: str) -> frozenset[RbacPermission]:
    """Return the permissions that the functions use in the run."""
    build_world, run = RUNS[run_name]
    world = build_world()
    run(world)
    assert world.access_control.denials == []
    return frozenset(permission for _, permission in world.access_control.used_permissions)


@pytest.mark.parametrize("permission", sorted(GRANTED), ids=format_permission)
def test_a_run_fails_without_this_permission(permission: RbacPermission) -> None:
    assert [run_name for run_name in RUNS if permission in find_used_permissions(run_name)]


def test_only_the_run_of_an_optional_feature_uses_its_permission() -> None:
    always_granted = find_granted_permissions(read_rbac_manifests(), [GROUP])
    run_names_by_permission = {
        RESTART_DEPLOYMENT: ["surge-drain", "scheduled-scaling"],
        PATCH_POD: ["deletion-cost"],
        **{key: ["scheduled-scaling"] for key in SCALE_WORKLOADS},
        **{key: ["devices"] for key in READ_DEVICES},
        **{key: ["gangs"] for key in GANG_PERMISSIONS},
    }
    assert GRANTED - always_granted == run_names_by_permission.keys()
    for permission, run_names in run_names_by_permission.items():
        assert [name for name in RUNS if permission in find_used_permissions(name)] == run_names


def test_every_used_permission_is_granted() -> None:
    assert frozenset().union(*map(find_used_permissions, RUNS)) <= GRANTED


def test_permissions_of_an_optional_feature_are_granted_only_with_it() -> None:
    for feature in OPTIONAL_FEATURES:
        manifests = read_rbac_manifests(frozenset({feature}))
        assert find_granted_permissions(read_rbac_manifests(), [GROUP]) < find_granted_permissions(manifests, [GROUP])


@pytest.mark.parametrize(
    ("run_name", "permission"),
    [
        ("orphan", GET_CLAIM),
        ("orphan", ("create", "karpenter.sh", "nodeclaims")),
        ("grace-period", ("delete", "", "pods")),
        ("features", ("patch", "karpenter.sh", "nodeoverlays/status")),
        ("deletion-cost", PATCH_POD),
        ("surge-drain", RESTART_DEPLOYMENT),
        ("scheduled-scaling", SCALE_WORKLOADS[0]),
        ("devices", READ_DEVICES[0]),
        ("gangs", GANG_PERMISSIONS[-1]),
    ],
)
def test_a_denied_call_ends_the_run(run_name: str, permission: RbacPermission) -> None:
    build_world, run = RUNS[run_name]
    world = build_world()
    world.access_control.revoke_permission(permission)
    with pytest.raises(AccessDeniedError, match=format_permission(permission)):
        run(world)
    assert world.access_control.denials


def test_a_refused_read_keeps_the_orphan_and_is_reported() -> None:
    """Functions that keep working with a ClusterRole of an older version say which permission they lack."""
    world = World(make_node_class(), make_node_pool())
    world.access_control.fails_run = False
    world.access_control.revoke_permission(GET_CLAIM)
    with pytest.raises(AssertionError, match="is nobody's since"):
        run_orphan(world)
    [problem, *_] = sorted(problem for problem in world.list_problems() if problem.startswith("EC2 instance"))
    assert "missing permission: get on nodeclaims.karpenter.sh" in problem
    assert "must allow it: apply rbac.yaml" in problem
