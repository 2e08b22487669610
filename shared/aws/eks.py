"""The EKS client: facts about the control plane."""

from shared.aws.clients import Clients
from shared.aws.errors import translate_errors
from shared.errors import Unreachable
from shared.model.ec2.account import ControlPlaneFacts


class BotoEks:
    """`shared.ports.aws.Eks` over boto3."""

    def __init__(self, clients: Clients) -> None:
        """Make no call yet."""
        self._clients = clients

    def describe_cluster(self, name: str) -> ControlPlaneFacts:
        """Call DescribeCluster; the service CIDR is the IPv6 one if the cluster has it.

        Raises:
            NotFound: there is no such cluster.
            Unreachable: the cluster exists, but has no endpoint yet.
        """
        with translate_errors(f"eks:DescribeCluster {name}"):
            facts = self._clients.get_retrying_client("eks").describe_cluster(name=name)["cluster"]
        if not facts.get("endpoint"):
            raise Unreachable(f"eks:DescribeCluster {name}: {facts.get('status', '')}, no endpoint yet")
        network = facts.get("kubernetesNetworkConfig", {})
        return ControlPlaneFacts(
            name=facts["name"],
            endpoint=facts["endpoint"],
            certificate_authority=facts["certificateAuthority"]["data"],
            version=facts["version"],
            service_cidr=network.get("serviceIpv6Cidr") or network.get("serviceIpv4Cidr") or "",
        )
