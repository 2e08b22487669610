"""User data: the bootstrap input of a new instance, in the format of its AMI family (spec-aws chapter 16).

Labels that node admission forbids a kubelet to set on itself are omitted: the controller adds them at registration.
"""

import base64
import json
from typing import Final

from shared.decide.launch.ami_families.bootstrap import (
    Bootstrap,
    add_unregistered_taint,
    build_kubelet_config,
    build_node_labels,
)
from shared.decide.launch.ami_families.bootstrap_scripts import build_al2_script, build_windows_script
from shared.decide.launch.ami_families.bottlerocket import build_bottlerocket_settings
from shared.decide.launch.ami_families.mime import (
    NODE_CONFIG_TYPE,
    SHELL_SCRIPT_TYPE,
    build_part,
    format_archive,
    parse_user_parts,
)
from shared.model.karpenter.node_class import EC2NodeClass

__all__ = [
    "MAX_USER_DATA_BYTES",
    "Bootstrap",
    "add_unregistered_taint",
    "build_kubelet_config",
    "build_node_labels",
    "build_user_data",
    "encode_user_data",
]

MAX_USER_DATA_BYTES: Final = 16_384
"""EC2's limit, before base64."""


def build_user_data(node_class: EC2NodeClass, bootstrap: Bootstrap) -> str:
    """Build the user data, before base64.

    Raises:
        ValueError: the user's own part cannot be merged, or the family is invalid; the message names field and fix.
    """
    match node_class.ami_family:
        case "AL2023":
            return _build_al2023(node_class, bootstrap)
        case "AL2":
            user_parts = parse_user_parts(node_class.user_data, reads_node_config=False)
            return format_archive((*user_parts, build_part(SHELL_SCRIPT_TYPE, build_al2_script(node_class, bootstrap))))
        case "Bottlerocket":
            return build_bottlerocket_settings(node_class, bootstrap)
        case "Windows2019" | "Windows2022" | "Windows2025":
            return build_windows_script(node_class, bootstrap)
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


def _build_al2023(node_class: EC2NodeClass, bootstrap: Bootstrap) -> str:
    label_flags = ",".join(f"{key}={value}" for key, value in build_node_labels(bootstrap).items())
    spec: dict[str, object] = {
        "cluster": {
            "name": bootstrap.facts.name,
            "apiServerEndpoint": bootstrap.facts.endpoint,
            "certificateAuthority": bootstrap.facts.certificate_authority,
            "cidr": bootstrap.facts.service_cidr,
        },
        "kubelet": {"config": build_kubelet_config(node_class, bootstrap), "flags": [f'--node-labels="{label_flags}"']},
    }
    if node_class.instance_store_policy == "RAID0":
        spec["instance"] = {"localStorage": {"strategy": "RAID0"}}
    config = {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec}
    # JSON is valid YAML, and its bytes are the same in every process.
    joiner_part = build_part(NODE_CONFIG_TYPE, json.dumps(config, indent=1))
    return format_archive((*parse_user_parts(node_class.user_data, reads_node_config=True), joiner_part))
