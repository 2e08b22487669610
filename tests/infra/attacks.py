"""Requests that no function may make, and the same requests with the tags that they lack; for any caller."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from sim.iam.patterns_and_variables import IamRequest, build_context
from sim.iam.tag_condition_keys import build_request_tag_keys, build_resource_tag_keys
from sim.lambda_runtime.stack_template.generated_references import ACCOUNT_ID

REGION: Final = "us-east-1"
OUR_TAGS: Final = (
    ("eks:eks-cluster-name", "demo"),
    ("karpenter.sh/nodepool", "default"),
    ("kubernetes.io/cluster/demo", "owned"),
)
OWNER_KEYS: Final = ("karpenter.sh/nodepool", "kubernetes.io/cluster/demo")
"""Tags that mark an existing resource as Joiner's."""
OTHER_CLUSTER_TAGS: Final = (
    ("eks:eks-cluster-name", "prod"),
    ("karpenter.sh/nodepool", "default"),
    ("kubernetes.io/cluster/prod", "owned"),
)
NODE_GROUP_TAGS: Final = (("eks:nodegroup-name", "system"), ("kubernetes.io/cluster/demo", "owned"))
"""Tags of a managed node of the same cluster: not Joiner's."""
Keys = Mapping[str, str | Iterable[str]]


class Attack(msgspec.Struct, frozen=True, kw_only=True):
    """A request that no function may make."""

    action: str
    resource: str = "*"
    context: dict[str, str | tuple[str, ...]] = {}
    region: str = REGION

    def build_request(self) -> IamRequest:
        everywhere: Keys = {"aws:RequestedRegion": self.region, "aws:SecureTransport": "true"}
        return IamRequest(
            action=self.action, resource=self.resource, context=build_context({**everywhere, **self.context})
        )


def build_ec2_arn(kind: str, name: str = "*", region: str = REGION) -> str:
    return f"arn:aws:ec2:{region}:{ACCOUNT_ID}:{kind}/{name}"


def build_tagged_attack(kind: str, action: str, tags: tuple[tuple[str, str], ...], **context: str) -> Attack:
    """Return *action* on an existing resource with *tags*."""
    return Attack(
        action=f"ec2:{action}",
        resource=build_ec2_arn(kind, "x-1"),
        context={**flatten_context(build_resource_tag_keys(tags)), **context},
    )


def build_creation_attack(
    kind: str, action: str, tags: tuple[tuple[str, str], ...], region: str = REGION, **context: str
) -> Attack:
    """Return *action* that creates a resource of *kind* with *tags*."""
    resource = build_ec2_arn(kind, region=region)
    return Attack(
        action=f"ec2:{action}",
        resource=resource,
        region=region,
        context={**flatten_context(build_request_tag_keys(tags)), **context},
    )


def build_retag_attack(existing_tags: tuple[tuple[str, str], ...], *tags: tuple[str, str]) -> Attack:
    """Return a request that writes *tags* on an instance with *existing_tags*."""
    context = flatten_context({**build_resource_tag_keys(existing_tags), **build_request_tag_keys(tags)})
    return Attack(action="ec2:CreateTags", resource=build_ec2_arn("instance", "i-1"), context=context)


def build_pass_role_attack(role: str, service: str = "ec2.amazonaws.com") -> Attack:
    return Attack(action="iam:PassRole", resource=role, context={"iam:PassedToService": service})


def flatten_context(context: Keys) -> dict[str, str | tuple[str, ...]]:
    return {key: value if isinstance(value, str) else tuple(value) for key, value in context.items()}


def list_tags_without(key: str) -> tuple[tuple[str, str], ...]:
    return tuple(tag for tag in OUR_TAGS if tag[0] != key)


CREATED_BY: Final = {"ec2:CreateAction": "RunInstances"}
ROLE_ARN_PREFIX: Final = f"arn:aws:iam::{ACCOUNT_ID}:role/"
TOPIC_ARN: Final = f"arn:aws:sns:{REGION}:{ACCOUNT_ID}:costs"
BUS_ARN: Final = f"arn:aws:events:{REGION}:{ACCOUNT_ID}:event-bus/alerts"
WORKSPACE_URL: Final = f"https://aps-workspaces.{REGION}.amazonaws.com/workspaces/ws-0a1b2c3d/api/v1/remote_write"
WORKSPACE_ARN: Final = f"arn:aws:aps:{REGION}:{ACCOUNT_ID}:workspace/ws-0a1b2c3d"
TABLE_PLACEHOLDER: Final = "<ours>"
TABLE_ARN_PREFIX: Final = f"arn:aws:dynamodb:{REGION}:{ACCOUNT_ID}:table/"
ATTACKS: Final[dict[str, Attack]] = {
    "terminate another cluster's instance": build_tagged_attack("instance", "TerminateInstances", OTHER_CLUSTER_TAGS),
    "terminate an instance without tags": build_tagged_attack("instance", "TerminateInstances", ()),
    "terminate a managed node of the cluster": build_tagged_attack("instance", "TerminateInstances", NODE_GROUP_TAGS),
    "terminate an instance tagged only with a NodePool": build_tagged_attack(
        "instance", "TerminateInstances", (("karpenter.sh/nodepool", "a"),)
    ),
    "terminate an instance shared with the cluster": build_tagged_attack(
        "instance",
        "TerminateInstances",
        (*list_tags_without("kubernetes.io/cluster/demo"), ("kubernetes.io/cluster/demo", "shared")),
    ),
    "stop an instance of ours": build_tagged_attack("instance", "StopInstances", OUR_TAGS),
    "reboot an instance of ours": build_tagged_attack("instance", "RebootInstances", OUR_TAGS),
    "change an instance of ours": build_tagged_attack("instance", "ModifyInstanceAttribute", OUR_TAGS),
    "give an instance of ours another profile": build_tagged_attack(
        "instance", "AssociateIamInstanceProfile", OUR_TAGS
    ),
    "open a console of an instance of ours": build_tagged_attack("instance", "GetConsoleScreenshot", OUR_TAGS),
    "launch from another cluster's template": build_tagged_attack(
        "launch-template", "RunInstances", OTHER_CLUSTER_TAGS
    ),
    "launch a fleet from another cluster's template": build_tagged_attack(
        "launch-template", "CreateFleet", OTHER_CLUSTER_TAGS
    ),
    "launch from a template without tags": build_tagged_attack("launch-template", "RunInstances", ()),
    "delete another cluster's template": build_tagged_attack(
        "launch-template", "DeleteLaunchTemplate", OTHER_CLUSTER_TAGS
    ),
    "delete a template without tags": build_tagged_attack("launch-template", "DeleteLaunchTemplate", ()),
    "change a template of ours": build_tagged_attack("launch-template", "ModifyLaunchTemplate", OUR_TAGS),
    "give a template of ours a new version": build_tagged_attack(
        "launch-template", "CreateLaunchTemplateVersion", OUR_TAGS
    ),
    "launch without tags": build_creation_attack("instance", "RunInstances", ()),
    "launch in another cluster's name": build_creation_attack("instance", "RunInstances", OTHER_CLUSTER_TAGS),
    **{
        f"launch without {key}": build_creation_attack("instance", "RunInstances", list_tags_without(key))
        for key, _ in OUR_TAGS
    },
    **{
        f"a template without {key}": build_creation_attack(
            "launch-template", "CreateLaunchTemplate", list_tags_without(key)
        )
        for key, _ in OUR_TAGS
    },
    **{
        f"tag a launch without {key}": build_creation_attack(
            "instance", "CreateTags", list_tags_without(key), **CREATED_BY
        )
        for key, _ in OUR_TAGS
    },
    **{
        f"terminate what lacks {key}": build_tagged_attack("instance", "TerminateInstances", list_tags_without(key))
        for key in OWNER_KEYS
    },
    **{
        f"delete a template that lacks {key}": build_tagged_attack(
            "launch-template", "DeleteLaunchTemplate", list_tags_without(key)
        )
        for key in OWNER_KEYS
    },
    **{
        f"launch from what lacks {key}": build_tagged_attack("launch-template", "RunInstances", list_tags_without(key))
        for key in OWNER_KEYS
    },
    **{f"name what lacks {key}": build_retag_attack(list_tags_without(key), ("Name", "x")) for key in OWNER_KEYS},
    "launch a volume without tags": build_creation_attack("volume", "RunInstances", ()),
    "launch an interface without tags": build_creation_attack("network-interface", "RunInstances", ()),
    "a fleet without tags": build_creation_attack("fleet", "CreateFleet", ()),
    "a template without tags": build_creation_attack("launch-template", "CreateLaunchTemplate", ()),
    "a template in another cluster's name": build_creation_attack(
        "launch-template", "CreateLaunchTemplate", OTHER_CLUSTER_TAGS
    ),
    "launch in another region": build_creation_attack("instance", "RunInstances", OUR_TAGS, region="eu-west-1"),
    "a fleet in another region": build_creation_attack("fleet", "CreateFleet", OUR_TAGS, region="eu-west-1"),
    "a template in another region": build_creation_attack(
        "launch-template", "CreateLaunchTemplate", OUR_TAGS, region="eu-west-1"
    ),
    "look around in another region": Attack(action="ec2:DescribeInstances", region="eu-west-1"),
    "look for templates in another region": Attack(action="ec2:DescribeLaunchTemplates", region="eu-west-1"),
    "look for subnets in another region": Attack(action="ec2:DescribeSubnets", region="eu-west-1"),
    "tag a foreign instance as ours": build_retag_attack((), *OUR_TAGS),
    "tag another cluster's instance as ours": build_retag_attack(
        OTHER_CLUSTER_TAGS, ("kubernetes.io/cluster/demo", "owned")
    ),
    "name another cluster's instance": build_retag_attack(OTHER_CLUSTER_TAGS, ("Name", "x")),
    "name a managed node": build_retag_attack(NODE_GROUP_TAGS, ("Name", "x")),
    "disown an instance of ours": build_retag_attack(OUR_TAGS, ("kubernetes.io/cluster/demo", "shared")),
    "give an instance of ours to another cluster": build_retag_attack(OUR_TAGS, ("eks:eks-cluster-name", "prod")),
    "add another cluster's tag to ours": build_retag_attack(OUR_TAGS, ("kubernetes.io/cluster/prod", "owned")),
    "move an instance to another NodePool": build_retag_attack(OUR_TAGS, ("karpenter.sh/nodepool", "b")),
    "tag what is not being made": Attack(
        action="ec2:CreateTags",
        resource=build_ec2_arn("instance", "i-1"),
        context=flatten_context(build_request_tag_keys(OUR_TAGS)),
    ),
    "tag in the name of another call": build_creation_attack(
        "volume", "CreateTags", OUR_TAGS, **{"ec2:CreateAction": "CreateVolume"}
    ),
    "tag a subnet": build_creation_attack("subnet", "CreateTags", OUR_TAGS, **CREATED_BY),
    "take tags off": build_tagged_attack("instance", "DeleteTags", OUR_TAGS),
    "pass another role": build_pass_role_attack(f"{ROLE_ARN_PREFIX}admin"),
    "pass a role of another account": build_pass_role_attack("arn:aws:iam::999999999999:role/nodes"),
    "become a role": Attack(action="sts:AssumeRole", resource=f"{ROLE_ARN_PREFIX}admin"),
    "make a user": Attack(action="iam:CreateUser", resource=f"arn:aws:iam::{ACCOUNT_ID}:user/x"),
    "make an instance profile": Attack(
        action="iam:CreateInstanceProfile", resource=f"arn:aws:iam::{ACCOUNT_ID}:instance-profile/x"
    ),
    "write a policy": Attack(action="iam:PutRolePolicy", resource=f"{ROLE_ARN_PREFIX}admin"),
    "let somebody into the cluster": Attack(
        action="eks:CreateAccessEntry", resource=f"arn:aws:eks:{REGION}:{ACCOUNT_ID}:cluster/demo"
    ),
    "look at another cluster": Attack(
        action="eks:DescribeCluster", resource=f"arn:aws:eks:{REGION}:{ACCOUNT_ID}:cluster/prod"
    ),
    "read another cluster's rows": Attack(action="dynamodb:GetItem", resource=f"{TABLE_ARN_PREFIX}prod"),
    "write another cluster's rows": Attack(action="dynamodb:PutItem", resource=f"{TABLE_ARN_PREFIX}prod"),
    "drop a table": Attack(action="dynamodb:DeleteTable", resource=f"{TABLE_ARN_PREFIX}{TABLE_PLACEHOLDER}"),
    "read all rows at once": Attack(action="dynamodb:Scan", resource=f"{TABLE_ARN_PREFIX}{TABLE_PLACEHOLDER}"),
    "read another bucket": Attack(action="s3:GetObject", resource="arn:aws:s3:::prod/catalogue/a"),
    "write another bucket": Attack(action="s3:PutObject", resource="arn:aws:s3:::prod/journal/a"),
    "list all buckets": Attack(action="s3:ListAllMyBuckets"),
    "read a secret": Attack(
        action="secretsmanager:GetSecretValue", resource=f"arn:aws:secretsmanager:{REGION}:{ACCOUNT_ID}:secret:x"
    ),
    "read a private parameter": Attack(
        action="ssm:GetParameter", resource=f"arn:aws:ssm:{REGION}:{ACCOUNT_ID}:parameter/db/password"
    ),
    "run a command on a node": Attack(action="ssm:SendCommand", resource=build_ec2_arn("instance", "i-1")),
    "decrypt": Attack(action="kms:Decrypt", resource=f"arn:aws:kms:{REGION}:{ACCOUNT_ID}:key/x"),
    "wake another cluster's function": Attack(
        action="sqs:SendMessage", resource=f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:prod-joiner-lifecycle"
    ),
    "announce an interruption": Attack(
        action="sqs:SendMessage", resource=f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:demo-joiner-interruption"
    ),
    "read dead letters": Attack(
        action="sqs:ReceiveMessage", resource=f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:demo-joiner-dead-letters"
    ),
    "tell another topic": Attack(action="sns:Publish", resource=f"{TOPIC_ARN}-of-others"),
    "send a text message": Attack(action="sns:Publish", resource="+491700000000"),
    "hear what a topic is told": Attack(action="sns:Subscribe", resource=TOPIC_ARN),
    "open a topic to others": Attack(action="sns:SetTopicAttributes", resource=TOPIC_ARN),
    "put an event on another bus": Attack(
        action="events:PutEvents", resource=f"{BUS_ARN}-of-others", context={"events:source": "joiner"}
    ),
    "put an event in another's name": Attack(
        action="events:PutEvents", resource=BUS_ARN, context={"events:source": "aws.ec2"}
    ),
    "change who receives events": Attack(action="events:PutRule", resource=f"{BUS_ARN.replace('event-bus', 'rule')}/x"),
    "write metrics to another workspace": Attack(action="aps:RemoteWrite", resource=f"{WORKSPACE_ARN}f"),
    "write metrics to a workspace of another account": Attack(
        action="aps:RemoteWrite", resource=WORKSPACE_ARN.replace(ACCOUNT_ID, "999999999999")
    ),
    "read metrics": Attack(action="aps:QueryMetrics", resource=WORKSPACE_ARN),
    "change a function": Attack(
        action="lambda:UpdateFunctionCode", resource=f"arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:x"
    ),
    "call a function": Attack(
        action="lambda:InvokeFunction", resource=f"arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:x"
    ),
    "send a function's calls to another version": Attack(
        action="lambda:UpdateAlias", resource=f"arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:x"
    ),
    "ring another bell": Attack(
        action="scheduler:UpdateSchedule", resource=f"arn:aws:scheduler:{REGION}:{ACCOUNT_ID}:schedule/x/y"
    ),
    "silence the log": Attack(action="logs:DeleteLogGroup", resource=f"arn:aws:logs:{REGION}:{ACCOUNT_ID}:log-group:x"),
    "write another log": Attack(
        action="logs:PutLogEvents", resource=f"arn:aws:logs:{REGION}:{ACCOUNT_ID}:log-group:x:*"
    ),
}
ALLOWED_REQUESTS: Final = {
    "terminate an instance of ours": (build_tagged_attack("instance", "TerminateInstances", OUR_TAGS), {"lifecycle"}),
    "delete a template of ours": (
        build_tagged_attack("launch-template", "DeleteLaunchTemplate", OUR_TAGS),
        {"lifecycle"},
    ),
    "name an instance of ours": (
        build_retag_attack(OUR_TAGS, ("Name", "x"), ("karpenter.sh/nodeclaim", "a")),
        {"lifecycle"},
    ),
    "launch from a template of ours": (build_tagged_attack("launch-template", "RunInstances", OUR_TAGS), {"provision"}),
    "launch with our tags": (build_creation_attack("instance", "RunInstances", OUR_TAGS), {"provision"}),
    "publish node costs": (Attack(action="sns:Publish", resource=TOPIC_ARN), {"catalog"}),
    "put an event on the bus": (
        Attack(action="events:PutEvents", resource=BUS_ARN, context={"events:source": "joiner"}),
        {"catalog", "disrupt", "interrupt", "lifecycle", "provision"},
    ),
    "write metrics to the workspace": (Attack(action="aps:RemoteWrite", resource=WORKSPACE_ARN), {"disrupt"}),
    "tag a launched instance": (build_creation_attack("instance", "CreateTags", OUR_TAGS, **CREATED_BY), {"provision"}),
    "make a template with our tags": (
        build_creation_attack("launch-template", "CreateLaunchTemplate", OUR_TAGS),
        {"provision"},
    ),
    "describe its own account": (Attack(action="ec2:DescribeInstances"), {"disrupt", "lifecycle", "provision"}),
}
"""The same requests with the tags that the attacks lack: an attack fails because of its tags, not because it is
malformed.
"""
