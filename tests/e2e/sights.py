"""What can be seen of the stage from outside, by whoever has an account and a kubeconfig."""

from sim.account.account import Account
from sim.cloud.cloud import Cloud
from sim.machines import living
from sim.measure import is_ours, is_over, is_running
from sim.playground_desk import NODE_CLAIMS, NODES, PODS, Desk, Manifest
from sim.playground_grounds import CUSTODIANS


class Sights:
    """Sees AWS, the cluster, and which machines there truly are."""

    def __init__(self, account: Account, desk: Desk, cloud: Cloud, stack: str) -> None:
        """Look whenever asked: by *account*, *desk* and *cloud*, at the stack called *stack*."""
        self.account, self.desk, self.cloud, self._stack = account, desk, cloud, stack

    def outputs(self) -> dict[str, str]:
        """Answer the stack's outputs; none if there is no stack."""
        cloudformation = self.account.client("cloudformation")
        try:
            [stack] = cloudformation.describe_stacks(StackName=self._stack)["Stacks"]
        except cloudformation.exceptions.ClientError:
            return {}
        return {one["OutputKey"]: one["OutputValue"] for one in stack.get("Outputs", ())}

    def status(self, stack: str = "") -> str:
        """Answer CloudFormation's status of *stack*, by default ours; "" if there is none."""
        summaries = self.account.client("cloudformation").list_stacks()["StackSummaries"]
        found = [one["StackStatus"] for one in summaries if one["StackName"] == (stack or self._stack)]
        return found[0] if found else ""

    def nodes(self) -> list[Manifest]:
        """Answer all Nodes."""
        return self.desk.look(NODES)

    def our_nodes(self) -> list[str]:
        """Answer the names of the Nodes that a NodePool made."""
        return sorted(one["metadata"]["name"] for one in self.nodes() if is_ours(one))

    def claims(self) -> list[Manifest]:
        """Answer all NodeClaims."""
        return self.desk.look(NODE_CLAIMS)

    def pods(self) -> list[Manifest]:
        """Answer the pods of people that are not over."""
        found = [one for one in self.desk.look(PODS) if one["metadata"]["namespace"] not in CUSTODIANS]
        return [one for one in found if not is_over(one)]

    def run(self, count: int) -> bool:
        """Whether *count* pods are there, and all of them run."""
        pods = self.pods()
        return len(pods) == count and all(is_running(one) for one in pods)

    def instances(self) -> list[str]:
        """Answer the ids of what EC2 describes as pending or running."""
        alive = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
        pages = self.account.client("ec2").get_paginator("describe_instances").paginate(Filters=alive)
        reservations = (one for page in pages for one in page["Reservations"])
        return sorted(each["InstanceId"] for one in reservations for each in one["Instances"])

    def is_in_step(self) -> bool:
        """Whether every instance is a Node and a NodeClaim, and the other way round."""
        ids = [str(one["spec"].get("providerID", "")).rpartition("/")[2] for one in self.nodes() if is_ours(one)]
        claimed = [(one.get("status") or {}).get("providerID", "").rpartition("/")[2] for one in self.claims()]
        described = [one.instance_id for one in living(self.cloud)]
        return sorted(ids) == sorted(claimed) == described == self.instances()

    def dead_letters(self) -> int:
        """Answer how many messages wait in queues of dead letters."""
        sqs = self.account.client("sqs")
        urls = [url for url in sqs.list_queues().get("QueueUrls", ()) if url.endswith("dead-letters")]
        name = "ApproximateNumberOfMessages"
        return sum(
            int(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name]) for url in urls
        )
