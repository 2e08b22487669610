"""User data of Amazon Linux 2: a script that calls bootstrap.sh, after the user's own parts."""

from shared.decide.launch.ami_families.bootstrap import Bootstrap, is_ipv6_address, list_cluster_dns
from shared.decide.launch.ami_families.kubelet_flags import build_kubelet_flags
from shared.decide.launch.ami_families.mime import SHELL_SCRIPT_TYPE, build_part, format_archive, parse_user_parts
from shared.model.karpenter.node_class import EC2NodeClass


def build_al2_user_data(node_class: EC2NodeClass, bootstrap: Bootstrap) -> str:
    """Build the MIME archive of the user's own parts and the bootstrap script."""
    user_parts = parse_user_parts(node_class.user_data, reads_node_config=False)
    return format_archive((*user_parts, build_part(SHELL_SCRIPT_TYPE, _build_script(node_class, bootstrap))))


def _build_script(node_class: EC2NodeClass, bootstrap: Bootstrap) -> str:
    dns = list_cluster_dns(node_class.kubelet, bootstrap.facts)
    arguments = [
        *(["--ip-family ipv6"] if dns and is_ipv6_address(dns[0]) else []),
        *([f"--dns-cluster-ip '{dns[0]}'"] if dns else []),
        "--use-max-pods false",
        f"--kubelet-extra-args '{build_kubelet_flags(node_class, bootstrap)}'",
        *(["--local-disks raid0"] if node_class.instance_store_policy == "RAID0" else []),
    ]
    facts = bootstrap.facts
    call = (
        f"/etc/eks/bootstrap.sh '{facts.name}' --apiserver-endpoint '{facts.endpoint}' "
        f"--b64-cluster-ca '{facts.certificate_authority}'"
    )
    log = "exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1"
    return "\n".join(("#!/bin/bash -xe", log, " \\\n".join((call, *arguments))))
