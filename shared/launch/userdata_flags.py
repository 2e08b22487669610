"""The kubelet's settings as flags, for the families whose bootstrap script takes no configuration file."""

from shared.launch.bootstrap import Bootstrap, all_taints, cluster_dns, is_ipv6_address, node_labels, taint_text
from shared.model.nodeclasses import EC2NodeClass
from shared.model.objects import Pairs


def kubelet_flags(node_class: EC2NodeClass, boot: Bootstrap) -> str:
    """Answer the flags in their order, those that are set; maps are sorted by key."""
    kubelet = node_class.kubelet
    taints = ",".join(map(taint_text, all_taints(boot.taints)))
    flags: tuple[tuple[str, object], ...] = (
        ("node-labels", _quoted(_joined(tuple(node_labels(boot).items()), "="))),
        ("register-with-taints", _quoted(taints)),
        ("max-pods", boot.max_pods),
        ("pods-per-core", kubelet.pods_per_core),
        ("system-reserved", _quoted(_joined(kubelet.system_reserved, "="))),
        ("kube-reserved", _quoted(_joined(kubelet.kube_reserved, "="))),
        ("eviction-hard", _quoted(_joined(kubelet.eviction_hard, "<"))),
        ("eviction-soft", _quoted(_joined(kubelet.eviction_soft, "<"))),
        ("eviction-soft-grace-period", _quoted(_joined(kubelet.eviction_soft_grace_period, "="))),
        ("eviction-max-pod-grace-period", kubelet.eviction_max_pod_grace_period),
        ("image-gc-high-threshold", kubelet.image_gc_high_threshold_percent),
        ("image-gc-low-threshold", kubelet.image_gc_low_threshold_percent),
        ("cpu-cfs-quota", None if kubelet.cpu_cfs_quota is None else str(kubelet.cpu_cfs_quota).lower()),
    )
    return " ".join(f"--{name}={value}" for name, value in flags if value is not None)


def al2_script(node_class: EC2NodeClass, boot: Bootstrap) -> str:
    """Answer the script that calls AL2's bootstrap.sh."""
    dns = cluster_dns(node_class.kubelet, boot.facts)
    arguments = [
        *(["--ip-family ipv6"] if dns and is_ipv6_address(dns[0]) else []),
        *([f"--dns-cluster-ip '{dns[0]}'"] if dns else []),
        "--use-max-pods false",
        f"--kubelet-extra-args '{kubelet_flags(node_class, boot)}'",
        *(["--local-disks raid0"] if node_class.instance_store_policy == "RAID0" else []),
    ]
    facts = boot.facts
    call = (
        f"/etc/eks/bootstrap.sh '{facts.name}' --apiserver-endpoint '{facts.endpoint}' "
        f"--b64-cluster-ca '{facts.certificate_authority}'"
    )
    log = "exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1"
    return "\n".join(("#!/bin/bash -xe", log, " \\\n".join((call, *arguments))))


def windows_script(node_class: EC2NodeClass, boot: Bootstrap) -> str:
    """Answer PowerShell that runs the user's own first, then joins the cluster."""
    dns = cluster_dns(node_class.kubelet, boot.facts)
    facts = boot.facts
    call = [
        f"& $EKSBootstrapScriptFile -EKSClusterName '{facts.name}'",
        f"-APIServerEndpoint '{facts.endpoint}'",
        f"-Base64ClusterCA '{facts.certificate_authority}'",
        f"-KubeletExtraArgs '{kubelet_flags(node_class, boot)}'",
        *([f"-DNSClusterIP '{dns[0]}'"] if dns else []),
    ]
    lines = (
        "<powershell>",
        *([node_class.user_data] if node_class.user_data else []),
        r'[string]$EKSBootstrapScriptFile = "$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1"',
        " ".join(call),
        "</powershell>",
    )
    return "\n".join(lines)


def _joined(some: Pairs, sign: str) -> str:
    return ",".join(f"{key}{sign}{value}" for key, value in some)


def _quoted(text: str) -> str | None:
    return f'"{text}"' if text else None
