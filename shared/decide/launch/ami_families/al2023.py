"""User data of Amazon Linux 2023: a NodeConfig for nodeadm, after the user's own parts."""

import json

from shared.decide.launch.ami_families.bootstrap import Bootstrap, build_kubelet_config, build_node_labels
from shared.decide.launch.ami_families.mime import NODE_CONFIG_TYPE, build_part, format_archive, parse_user_parts
from shared.model.karpenter.node_class import EC2NodeClass


def build_al2023_user_data(node_class: EC2NodeClass, bootstrap: Bootstrap) -> str:
    """Build the MIME archive of the user's own parts and Joiner's NodeConfig."""
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
