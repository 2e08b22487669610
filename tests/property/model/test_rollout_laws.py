"""Laws of rollouts: the limits of a Deployment are what its controller computes."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from shared.wire.decode.workloads import parse_deployment
from shared.wire.schema.feature_kinds import WorkloadJson
from sim.cluster.controllers.workloads.deployment import compute_rollout_limits

LIMITS = st.none() | st.integers(0, 50) | st.integers(0, 100).map(lambda percent: f"{percent}%")


@given(replicas=st.integers(0, 200), max_surge=LIMITS, max_unavailable=LIMITS)
def test_rollout_limits_are_those_of_the_deployment_controller(
    replicas: int, max_surge: int | str | None, max_unavailable: int | str | None
) -> None:
    limits = {"maxSurge": max_surge, "maxUnavailable": max_unavailable}
    strategy: dict[str, Any] = {
        "type": "RollingUpdate",
        "rollingUpdate": {key: value for key, value in limits.items() if value is not None},
    }
    deployment = {"metadata": {"name": "web"}, "spec": {"replicas": replicas, "strategy": strategy}}
    rollout = parse_deployment(msgspec.convert(deployment, WorkloadJson)).rollout
    assert rollout is not None
    assert (rollout.max_surge, rollout.max_unavailable) == compute_rollout_limits(deployment)
    assert rollout.max_surge or rollout.max_unavailable
