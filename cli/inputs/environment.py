"""The settings of a deployment in environment variables, as the functions have them."""

import os
from typing import Literal

from shared.model.cluster import ClusterSnapshot
from shared.settings import ChosenSettings
from shared.take.other_annotations import without_cluster_autoscaler_annotations


def read_environment_settings() -> ChosenSettings:
    """Return the settings in the environment variables; an empty variable counts as missing.

    Raises:
        ValueError: a variable has a value that is not allowed.
    """
    return ChosenSettings.from_environment({name: text for name, text in os.environ.items() if text})


def keep_honored_annotations(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """Return *cluster* without Cluster Autoscaler's annotations, unless the deployment's setting honors them."""
    return cluster if read_honor_setting() == "on" else without_cluster_autoscaler_annotations(cluster)


def are_devices_planned() -> bool:
    """Return whether the setting dynamic-resource-allocation in the environment is `on`."""
    return os.environ.get("JOINER_DYNAMIC_RESOURCE_ALLOCATION", "") == "on"


def read_honor_setting() -> Literal["on", "off", ""]:
    """Return the setting honor-cluster-autoscaler-annotations in the environment; "" if it is not set or not valid."""
    text = os.environ.get("JOINER_HONOR_CLUSTER_AUTOSCALER_ANNOTATIONS", "")
    return "on" if text == "on" else "off" if text == "off" else ""
