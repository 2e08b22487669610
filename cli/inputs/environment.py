"""The settings of a deployment in environment variables, as the functions have them."""

import os

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
    is_honored = os.environ.get("JOINER_HONOR_CLUSTER_AUTOSCALER_ANNOTATIONS") == "on"
    return cluster if is_honored else without_cluster_autoscaler_annotations(cluster)
