"""What an operator with an AWS account and a kubeconfig can see of the stage."""

from sim.aws_account.account import Account
from sim.cloud.cloud import Cloud
from sim.playground.external_cluster import SYSTEM_NAMESPACES
from sim.playground.kubectl import NODE_CLAIMS_PATH, NODES_PATH, PODS_PATH, KubectlClient, Manifest
from sim.world.instance_boot import list_active_instances
from sim.world.measurements import is_finished, is_joiner_node, is_running
from tests.e2e_aws.preflight import DELETED_STATUS


class Sights:
    """Reads AWS, the cluster, and the true list of instances."""

    def __init__(self, account: Account, kubectl: KubectlClient, cloud: Cloud, stack: str) -> None:
        """Read on demand from *account*, *kubectl* and *cloud*; *stack* is the stack's name."""
        self.account, self.kubectl, self.cloud, self._stack = account, kubectl, cloud, stack

    def get_outputs(self) -> dict[str, str]:
        """Return the stack's outputs; empty if there is no stack."""
        cloudformation = self.account.get_client("cloudformation")
        try:
            [stack] = cloudformation.describe_stacks(StackName=self._stack)["Stacks"]
        except cloudformation.exceptions.ClientError:
            return {}
        return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", ())}

    def get_stack_status(self, stack: str = "") -> str:
        """Return CloudFormation's status of *stack*, by default the stage's; "" if there is none.

        CloudFormation also lists deleted stacks. At most one stack of the name is not deleted, and then it counts.
        """
        summaries = self.account.get_client("cloudformation").list_stacks()["StackSummaries"]
        statuses = [summary["StackStatus"] for summary in summaries if summary["StackName"] == (stack or self._stack)]
        return min(statuses, key=DELETED_STATUS.__eq__, default="")

    def list_nodes(self) -> list[Manifest]:
        """Return all Nodes."""
        return self.kubectl.list_objects(NODES_PATH)

    def list_joiner_nodes(self) -> list[str]:
        """Return the names of the Nodes that belong to a NodePool."""
        return sorted(node["metadata"]["name"] for node in self.list_nodes() if is_joiner_node(node))

    def list_node_claims(self) -> list[Manifest]:
        """Return all NodeClaims."""
        return self.kubectl.list_objects(NODE_CLAIMS_PATH)

    def list_pods(self) -> list[Manifest]:
        """Return the pods outside system namespaces that have not finished."""
        pods = [
            pod for pod in self.kubectl.list_objects(PODS_PATH) if pod["metadata"]["namespace"] not in SYSTEM_NAMESPACES
        ]
        return [pod for pod in pods if not is_finished(pod)]

    def has_running_pods(self, count: int) -> bool:
        """Return whether there are exactly *count* pods and all of them run."""
        pods = self.list_pods()
        return len(pods) == count and all(is_running(pod) for pod in pods)

    def list_instance_ids(self) -> list[str]:
        """Return the ids of the instances that EC2 describes as pending or running."""
        alive = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
        pages = self.account.get_client("ec2").get_paginator("describe_instances").paginate(Filters=alive)
        reservations = (reservation for page in pages for reservation in page["Reservations"])
        return sorted(instance["InstanceId"] for reservation in reservations for instance in reservation["Instances"])

    def is_consistent(self) -> bool:
        """Return whether instances, Nodes and NodeClaims correspond one to one."""
        ids = [
            str(node["spec"].get("providerID", "")).rpartition("/")[2]
            for node in self.list_nodes()
            if is_joiner_node(node)
        ]
        claimed = [
            (node_claim.get("status") or {}).get("providerID", "").rpartition("/")[2]
            for node_claim in self.list_node_claims()
        ]
        described = [instance.instance_id for instance in list_active_instances(self.cloud)]
        return sorted(ids) == sorted(claimed) == described == self.list_instance_ids()

    def count_dead_letters(self) -> int:
        """Return the number of messages in dead-letter queues."""
        sqs = self.account.get_client("sqs")
        urls = [url for url in sqs.list_queues().get("QueueUrls", ()) if url.endswith("dead-letters")]
        name = "ApproximateNumberOfMessages"
        return sum(
            int(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name]) for url in urls
        )
