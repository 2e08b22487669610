"""User data: what a new machine is told, in the words of its image family (spec-aws chapter 16).

Labels that node admission forbids a kubelet to set on itself are left out: our controller adds them at registration.
"""

import base64
import json
from typing import Final

from shared.launch.bootstrap import Bootstrap, all_taints, kubelet_config, node_labels
from shared.launch.userdata_bottlerocket import bottlerocket_settings
from shared.launch.userdata_flags import al2_script, windows_script
from shared.launch.userdata_mime import NODE_CONFIG, SHELL, archive, custom_parts, part
from shared.model.nodeclasses import EC2NodeClass

__all__ = ["LIMIT_BYTES", "Bootstrap", "all_taints", "encoded", "kubelet_config", "node_labels", "user_data"]

LIMIT_BYTES: Final = 16_384
"""What EC2 takes, before base64."""


def user_data(node_class: EC2NodeClass, boot: Bootstrap) -> str:
    """Answer the text that EC2 is given in base64.

    Raises:
        ValueError: the user's own part cannot be merged, or the family is none; the message names field and remedy.
    """
    match node_class.ami_family:
        case "AL2023":
            return _al2023(node_class, boot)
        case "AL2":
            own = custom_parts(node_class.user_data, reads_node_config=False)
            return archive((*own, part(SHELL, al2_script(node_class, boot))))
        case "Bottlerocket":
            return bottlerocket_settings(node_class, boot)
        case "Windows2019" | "Windows2022" | "Windows2025":
            return windows_script(node_class, boot)
        case "Custom":
            return node_class.user_data
        case family:
            raise ValueError(
                f"spec.amiFamily: {family!r} is no family: use AL2023, Bottlerocket, AL2, Windows2022 or, with user "
                "data that joins the cluster, Custom"
            )


def encoded(text: str) -> str:
    """Answer base64, as EC2 wants it."""
    return base64.b64encode(text.encode()).decode()


def _al2023(node_class: EC2NodeClass, boot: Bootstrap) -> str:
    flags = ",".join(f"{key}={value}" for key, value in node_labels(boot).items())
    spec: dict[str, object] = {
        "cluster": {
            "name": boot.facts.name,
            "apiServerEndpoint": boot.facts.endpoint,
            "certificateAuthority": boot.facts.certificate_authority,
            "cidr": boot.facts.service_cidr,
        },
        "kubelet": {"config": kubelet_config(node_class, boot), "flags": [f'--node-labels="{flags}"']},
    }
    if node_class.instance_store_policy == "RAID0":
        spec["instance"] = {"localStorage": {"strategy": "RAID0"}}
    config = {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec}
    # JSON is YAML, and its bytes are the same in every process.
    ours = part(NODE_CONFIG, json.dumps(config, indent=1))
    return archive((*custom_parts(node_class.user_data, reads_node_config=True), ours))
