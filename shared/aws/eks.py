"""EKS: what the control plane is."""

from shared.aws.clients import Clients
from shared.aws.errors import faults
from shared.errors import Unreachable
from shared.model.ec2 import ClusterFacts


class BotoEks:
    """`shared.ports.Eks` over boto3."""

    def __init__(self, clients: Clients) -> None:
        """Calls nothing yet."""
        self._clients = clients

    def cluster(self, name: str) -> ClusterFacts:
        """Answer the facts of cluster *name*; the service CIDR is the IPv6 one where the cluster has that.

        Raises:
            Gone: there is no such cluster.
            Unreachable: it exists, but has no endpoint yet.
        """
        with faults(f"eks:DescribeCluster {name}"):
            facts = self._clients.patient("eks").describe_cluster(name=name)["cluster"]
        if not facts.get("endpoint"):
            raise Unreachable(f"eks:DescribeCluster {name}: {facts.get('status', '')}, no endpoint yet")
        network = facts.get("kubernetesNetworkConfig", {})
        return ClusterFacts(
            name=facts["name"],
            endpoint=facts["endpoint"],
            certificate_authority=facts["certificateAuthority"]["data"],
            version=facts["version"],
            service_cidr=network.get("serviceIpv6Cidr") or network.get("serviceIpv4Cidr") or "",
        )
