"""Requests that nobody may make, and the same with what they lack; whoever makes them is not said."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from sim.iam.calls import request_tags, resource_tags
from sim.iam.values import Request, context
from sim.lambdas.intrinsics import ACCOUNT

HOME: Final = "us-east-1"
OURS: Final = (
    ("eks:eks-cluster-name", "demo"),
    ("karpenter.sh/nodepool", "default"),
    ("kubernetes.io/cluster/demo", "owned"),
)
OWNED: Final = ("karpenter.sh/nodepool", "kubernetes.io/cluster/demo")
"""What something that is there must have to be ours."""
THEIRS: Final = (
    ("eks:eks-cluster-name", "prod"),
    ("karpenter.sh/nodepool", "default"),
    ("kubernetes.io/cluster/prod", "owned"),
)
NODE_GROUP: Final = (("eks:nodegroup-name", "system"), ("kubernetes.io/cluster/demo", "owned"))
"""A managed node of our own cluster: not Joiner's."""
Keys = Mapping[str, str | Iterable[str]]


class Attack(msgspec.Struct, frozen=True, kw_only=True):
    """One request that nobody may make."""

    action: str
    resource: str = "*"
    known: dict[str, str | tuple[str, ...]] = {}
    region: str = HOME

    def request(self) -> Request:
        everywhere: Keys = {"aws:RequestedRegion": self.region, "aws:SecureTransport": "true"}
        return Request(action=self.action, resource=self.resource, context=context({**everywhere, **self.known}))


def ec2(kind: str, name: str = "*", region: str = HOME) -> str:
    return f"arn:aws:ec2:{region}:{ACCOUNT}:{kind}/{name}"


def on(kind: str, action: str, tags: tuple[tuple[str, str], ...], **known: str) -> Attack:
    """Answer *action* on something that is there with *tags*."""
    return Attack(action=f"ec2:{action}", resource=ec2(kind, "x-1"), known={**plain(resource_tags(tags)), **known})


def making(kind: str, action: str, tags: tuple[tuple[str, str], ...], region: str = HOME, **known: str) -> Attack:
    """Answer *action* making one of *kind* with *tags*."""
    resource = ec2(kind, region=region)
    return Attack(
        action=f"ec2:{action}", resource=resource, region=region, known={**plain(request_tags(tags)), **known}
    )


def retag(there: tuple[tuple[str, str], ...], *tags: tuple[str, str]) -> Attack:
    """Answer writing *tags* on an instance that has those that are *there*."""
    known = plain({**resource_tags(there), **request_tags(tags)})
    return Attack(action="ec2:CreateTags", resource=ec2("instance", "i-1"), known=known)


def passing(role: str, service: str = "ec2.amazonaws.com") -> Attack:
    return Attack(action="iam:PassRole", resource=role, known={"iam:PassedToService": service})


def plain(known: Keys) -> dict[str, str | tuple[str, ...]]:
    return {key: value if isinstance(value, str) else tuple(value) for key, value in known.items()}


def without(key: str) -> tuple[tuple[str, str], ...]:
    return tuple(tag for tag in OURS if tag[0] != key)


CREATED_BY: Final = {"ec2:CreateAction": "RunInstances"}
ROLE: Final = f"arn:aws:iam::{ACCOUNT}:role/"
TOPIC: Final = f"arn:aws:sns:{HOME}:{ACCOUNT}:costs"
OUR_TABLE: Final = "<ours>"
TABLE: Final = f"arn:aws:dynamodb:{HOME}:{ACCOUNT}:table/"
ATTACKS: Final[dict[str, Attack]] = {
    "terminate another cluster's instance": on("instance", "TerminateInstances", THEIRS),
    "terminate an instance without tags": on("instance", "TerminateInstances", ()),
    "terminate a managed node of the cluster": on("instance", "TerminateInstances", NODE_GROUP),
    "terminate what only says a NodePool": on("instance", "TerminateInstances", (("karpenter.sh/nodepool", "a"),)),
    "terminate what is shared with the cluster": on(
        "instance",
        "TerminateInstances",
        (*without("kubernetes.io/cluster/demo"), ("kubernetes.io/cluster/demo", "shared")),
    ),
    "stop an instance of ours": on("instance", "StopInstances", OURS),
    "reboot an instance of ours": on("instance", "RebootInstances", OURS),
    "change an instance of ours": on("instance", "ModifyInstanceAttribute", OURS),
    "give an instance of ours another profile": on("instance", "AssociateIamInstanceProfile", OURS),
    "open a console of an instance of ours": on("instance", "GetConsoleScreenshot", OURS),
    "launch from another cluster's template": on("launch-template", "RunInstances", THEIRS),
    "launch a fleet from another cluster's template": on("launch-template", "CreateFleet", THEIRS),
    "launch from a template without tags": on("launch-template", "RunInstances", ()),
    "delete another cluster's template": on("launch-template", "DeleteLaunchTemplate", THEIRS),
    "delete a template without tags": on("launch-template", "DeleteLaunchTemplate", ()),
    "change a template of ours": on("launch-template", "ModifyLaunchTemplate", OURS),
    "give a template of ours a new version": on("launch-template", "CreateLaunchTemplateVersion", OURS),
    "launch without tags": making("instance", "RunInstances", ()),
    "launch in another cluster's name": making("instance", "RunInstances", THEIRS),
    **{f"launch without {key}": making("instance", "RunInstances", without(key)) for key, _ in OURS},
    **{f"a template without {key}": making("launch-template", "CreateLaunchTemplate", without(key)) for key, _ in OURS},
    **{f"tag a launch without {key}": making("instance", "CreateTags", without(key), **CREATED_BY) for key, _ in OURS},
    **{f"terminate what lacks {key}": on("instance", "TerminateInstances", without(key)) for key in OWNED},
    **{
        f"delete a template that lacks {key}": on("launch-template", "DeleteLaunchTemplate", without(key))
        for key in OWNED
    },
    **{f"launch from what lacks {key}": on("launch-template", "RunInstances", without(key)) for key in OWNED},
    **{f"name what lacks {key}": retag(without(key), ("Name", "x")) for key in OWNED},
    "launch a volume without tags": making("volume", "RunInstances", ()),
    "launch an interface without tags": making("network-interface", "RunInstances", ()),
    "a fleet without tags": making("fleet", "CreateFleet", ()),
    "a template without tags": making("launch-template", "CreateLaunchTemplate", ()),
    "a template in another cluster's name": making("launch-template", "CreateLaunchTemplate", THEIRS),
    "launch in another region": making("instance", "RunInstances", OURS, region="eu-west-1"),
    "a fleet in another region": making("fleet", "CreateFleet", OURS, region="eu-west-1"),
    "a template in another region": making("launch-template", "CreateLaunchTemplate", OURS, region="eu-west-1"),
    "look around in another region": Attack(action="ec2:DescribeInstances", region="eu-west-1"),
    "look for templates in another region": Attack(action="ec2:DescribeLaunchTemplates", region="eu-west-1"),
    "look for subnets in another region": Attack(action="ec2:DescribeSubnets", region="eu-west-1"),
    "tag a foreign instance as ours": retag((), *OURS),
    "tag another cluster's instance as ours": retag(THEIRS, ("kubernetes.io/cluster/demo", "owned")),
    "name another cluster's instance": retag(THEIRS, ("Name", "x")),
    "name a managed node": retag(NODE_GROUP, ("Name", "x")),
    "disown an instance of ours": retag(OURS, ("kubernetes.io/cluster/demo", "shared")),
    "give an instance of ours to another cluster": retag(OURS, ("eks:eks-cluster-name", "prod")),
    "add another cluster's tag to ours": retag(OURS, ("kubernetes.io/cluster/prod", "owned")),
    "move an instance to another NodePool": retag(OURS, ("karpenter.sh/nodepool", "b")),
    "tag what is not being made": Attack(
        action="ec2:CreateTags", resource=ec2("instance", "i-1"), known=plain(request_tags(OURS))
    ),
    "tag in the name of another call": making("volume", "CreateTags", OURS, **{"ec2:CreateAction": "CreateVolume"}),
    "tag a subnet": making("subnet", "CreateTags", OURS, **CREATED_BY),
    "take tags off": on("instance", "DeleteTags", OURS),
    "pass another role": passing(f"{ROLE}admin"),
    "pass a role of another account": passing("arn:aws:iam::999999999999:role/nodes"),
    "become a role": Attack(action="sts:AssumeRole", resource=f"{ROLE}admin"),
    "make a user": Attack(action="iam:CreateUser", resource=f"arn:aws:iam::{ACCOUNT}:user/x"),
    "make an instance profile": Attack(
        action="iam:CreateInstanceProfile", resource=f"arn:aws:iam::{ACCOUNT}:instance-profile/x"
    ),
    "write a policy": Attack(action="iam:PutRolePolicy", resource=f"{ROLE}admin"),
    "let somebody into the cluster": Attack(
        action="eks:CreateAccessEntry", resource=f"arn:aws:eks:{HOME}:{ACCOUNT}:cluster/demo"
    ),
    "look at another cluster": Attack(
        action="eks:DescribeCluster", resource=f"arn:aws:eks:{HOME}:{ACCOUNT}:cluster/prod"
    ),
    "read another cluster's rows": Attack(action="dynamodb:GetItem", resource=f"{TABLE}prod"),
    "write another cluster's rows": Attack(action="dynamodb:PutItem", resource=f"{TABLE}prod"),
    "drop a table": Attack(action="dynamodb:DeleteTable", resource=f"{TABLE}{OUR_TABLE}"),
    "read all rows at once": Attack(action="dynamodb:Scan", resource=f"{TABLE}{OUR_TABLE}"),
    "read another bucket": Attack(action="s3:GetObject", resource="arn:aws:s3:::prod/catalogue/a"),
    "write another bucket": Attack(action="s3:PutObject", resource="arn:aws:s3:::prod/journal/a"),
    "list all buckets": Attack(action="s3:ListAllMyBuckets"),
    "read a secret": Attack(
        action="secretsmanager:GetSecretValue", resource=f"arn:aws:secretsmanager:{HOME}:{ACCOUNT}:secret:x"
    ),
    "read a private parameter": Attack(
        action="ssm:GetParameter", resource=f"arn:aws:ssm:{HOME}:{ACCOUNT}:parameter/db/password"
    ),
    "run a command on a node": Attack(action="ssm:SendCommand", resource=ec2("instance", "i-1")),
    "decrypt": Attack(action="kms:Decrypt", resource=f"arn:aws:kms:{HOME}:{ACCOUNT}:key/x"),
    "wake another cluster's function": Attack(
        action="sqs:SendMessage", resource=f"arn:aws:sqs:{HOME}:{ACCOUNT}:prod-joiner-lifecycle"
    ),
    "announce an interruption": Attack(
        action="sqs:SendMessage", resource=f"arn:aws:sqs:{HOME}:{ACCOUNT}:demo-joiner-interruption"
    ),
    "read dead letters": Attack(
        action="sqs:ReceiveMessage", resource=f"arn:aws:sqs:{HOME}:{ACCOUNT}:demo-joiner-dead-letters"
    ),
    "tell another topic": Attack(action="sns:Publish", resource=f"{TOPIC}-of-others"),
    "send a text message": Attack(action="sns:Publish", resource="+491700000000"),
    "hear what a topic is told": Attack(action="sns:Subscribe", resource=TOPIC),
    "open a topic to others": Attack(action="sns:SetTopicAttributes", resource=TOPIC),
    "change a function": Attack(
        action="lambda:UpdateFunctionCode", resource=f"arn:aws:lambda:{HOME}:{ACCOUNT}:function:x"
    ),
    "call a function": Attack(action="lambda:InvokeFunction", resource=f"arn:aws:lambda:{HOME}:{ACCOUNT}:function:x"),
    "send a function's calls to another version": Attack(
        action="lambda:UpdateAlias", resource=f"arn:aws:lambda:{HOME}:{ACCOUNT}:function:x"
    ),
    "ring another bell": Attack(
        action="scheduler:UpdateSchedule", resource=f"arn:aws:scheduler:{HOME}:{ACCOUNT}:schedule/x/y"
    ),
    "silence the log": Attack(action="logs:DeleteLogGroup", resource=f"arn:aws:logs:{HOME}:{ACCOUNT}:log-group:x"),
    "write another log": Attack(action="logs:PutLogEvents", resource=f"arn:aws:logs:{HOME}:{ACCOUNT}:log-group:x:*"),
}
HARMLESS: Final = {
    "terminate an instance of ours": (on("instance", "TerminateInstances", OURS), {"lifecycle"}),
    "delete a template of ours": (on("launch-template", "DeleteLaunchTemplate", OURS), {"lifecycle"}),
    "name an instance of ours": (retag(OURS, ("Name", "x"), ("karpenter.sh/nodeclaim", "a")), {"lifecycle"}),
    "launch from a template of ours": (on("launch-template", "RunInstances", OURS), {"provision"}),
    "launch with our tags": (making("instance", "RunInstances", OURS), {"provision"}),
    "tell what nodes cost": (Attack(action="sns:Publish", resource=TOPIC), {"catalog"}),
    "tag what is launched": (making("instance", "CreateTags", OURS, **CREATED_BY), {"provision"}),
    "make a template with our tags": (making("launch-template", "CreateLaunchTemplate", OURS), {"provision"}),
    "look around at home": (Attack(action="ec2:DescribeInstances"), {"disrupt", "lifecycle"}),
}
"""The same requests with what the attacks lack: they fail for that, and not for being malformed."""
