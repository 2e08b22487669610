"""User data of Windows: a PowerShell script that calls Start-EKSBootstrap.ps1."""

from shared.decide.launch.ami_families.bootstrap import Bootstrap, list_cluster_dns
from shared.decide.launch.ami_families.kubelet_flags import build_kubelet_flags
from shared.model.karpenter.node_class import EC2NodeClass


def build_windows_user_data(node_class: EC2NodeClass, bootstrap: Bootstrap) -> str:
    """Build the PowerShell script that runs the user's own script first, then joins the cluster."""
    dns = list_cluster_dns(node_class.kubelet, bootstrap.facts)
    facts = bootstrap.facts
    call = [
        f"& $EKSBootstrapScriptFile -EKSClusterName '{facts.name}'",
        f"-APIServerEndpoint '{facts.endpoint}'",
        f"-Base64ClusterCA '{facts.certificate_authority}'",
        f"-KubeletExtraArgs '{build_kubelet_flags(node_class, bootstrap)}'",
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
