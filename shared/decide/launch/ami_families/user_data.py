"""User data: the bootstrap input of a new instance, in the format of its AMI family (spec-aws chapter 16).

Labels that node admission forbids a kubelet to set on itself are omitted: the controller adds them at registration.
"""

import base64
from typing import Final

from shared.decide.launch.ami_families.al2 import build_al2_user_data
from shared.decide.launch.ami_families.al2023 import build_al2023_user_data
from shared.decide.launch.ami_families.bootstrap import (
    Bootstrap,
)
from shared.decide.launch.ami_families.bottlerocket import build_bottlerocket_settings
from shared.decide.launch.ami_families.windows import build_windows_user_data
from shared.model.karpenter.node_class import EC2NodeClass

MAX_USER_DATA_BYTES: Final = 16_384
"""EC2's limit, before base64."""


def build_user_data(node_class: EC2NodeClass, bootstrap: Bootstrap) -> str:
    """Build the user data, before base64.

    Raises:
        ValueError: the user's own part cannot be merged, or the family is invalid; the message names field and fix.
    """
    match node_class.ami_family:
        case "AL2023":
            return build_al2023_user_data(node_class, bootstrap)
        case "AL2":
            return build_al2_user_data(node_class, bootstrap)
        case "Bottlerocket":
            return build_bottlerocket_settings(node_class, bootstrap)
        case "Windows2019" | "Windows2022" | "Windows2025":
            return build_windows_user_data(node_class, bootstrap)
        case "Custom":
            return node_class.user_data
        case family:
            raise ValueError(
                f"spec.amiFamily: {family!r} is not a supported AMI family: use AL2023, Bottlerocket, AL2, "
                "Windows2022 or, with user "
                "data that joins the cluster, Custom"
            )


def encode_user_data(text: str) -> str:
    """Encode *text* in base64, as EC2 requires."""
    return base64.b64encode(text.encode()).decode()
