"""What each function may do in AWS, and nothing else.

Launching and terminating are never in one hand: `provision` launches, `lifecycle` terminates, no other function
changes EC2, and none changes IAM. What is launched must carry the cluster's tags; only what carries them may be used as
a launch template, tagged or terminated. A grant that needs a wildcard says why, or cdk-nag objects.
"""

from typing import Any, Final

import aws_cdk as cdk
import msgspec
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.functions import INSTALLER, Functions
from infra.knobs import Knobs
from infra.node_role import NodeRole
from infra.state import CATALOGUE, COSTS, JOURNAL, MARKET, SNAPSHOTS, State
from infra.written import listed

NODEPOOL: Final = "karpenter.sh/nodepool"
LAUNCHED: Final = ("fleet", "instance", "volume", "network-interface", "spot-instances-request")
USED: Final = ("security-group", "subnet", "capacity-reservation", "placement-group")
NODE_TAGS: Final = ("eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name")
"""What may be written on an instance once it runs."""
CATALOG_READS: Final = (
    "ec2:DescribeCapacityReservations",
    "ec2:DescribeImages",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribePlacementGroups",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSpotPriceHistory",
    "ec2:DescribeSubnets",
)
MACHINE_READS: Final = ("ec2:DescribeInstances", "ec2:DescribeInstanceStatus", "ec2:DescribeLaunchTemplates")
TABLE_ACTIONS: Final = tuple(f"dynamodb:{name}" for name in ("ConditionCheckItem", "GetItem", "PutItem", "Query"))
FORGETFUL: Final = frozenset({"disrupt"})
"""Who deletes rows; others overwrite them, or let them expire."""
DECIDING: Final = frozenset({"catalog", "disrupt", "interrupt", "lifecycle", "provision"})
"""Who keeps what it decided from."""
INTERFACE_CHANGES: Final = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:UnassignPrivateIpAddresses",
)
NETWORK_ACTIONS: Final = (*INTERFACE_CHANGES, "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets")
CATALOGUE_READERS: Final = frozenset({"provision", "disrupt", "interrupt", "catalog"})
"""`lifecycle` alone decides without prices."""

NO_RESOURCES: Final = "the call knows no resources"
CHOSEN: Final = "an EC2NodeClass may select any; the instance itself must carry the cluster's tags"
TAGGED: Final = "EC2 makes up the name; the conditions want the cluster's tags"
KEYS: Final = "keys of objects, within one bucket"
PUBLIC: Final = "public parameters of AWS"

Conditions = dict[str, dict[str, Any]]


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """One statement of a policy; *because* excuses the wildcards among *resources*."""

    sid: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: Conditions | None = None
    because: str = ""
    effect: iam.Effect = iam.Effect.ALLOW

    def to(self, role: iam.Role) -> None:
        """Give it to *role*."""
        statement = iam.PolicyStatement(
            sid=self.sid,
            effect=self.effect,
            actions=list(self.actions),
            resources=list(self.resources),
            conditions=self.conditions,
        )
        role.add_to_policy(statement)
        if not self.because:
            return
        for resource in self.resources:
            named = f"AwsSolutions::AwsSolutions-IAM5[Resource::{_spelled(role, resource)}]"
            cdk.Validations.of(role).acknowledge(cdk.Acknowledgment(id=named, reason=self.because))


class Access(Construct):
    """The policies of all roles."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        knobs: Knobs,
        functions: Functions,
        state: State,
        nodes: list[NodeRole],
    ) -> None:
        """Attach them."""
        super().__init__(scope, construct_id)
        self._cluster, self._state = knobs.cluster, state
        self._without_prices = knobs.network == "isolated"
        if knobs.permissions_boundary:
            boundary = iam.ManagedPolicy.from_managed_policy_arn(self, "Boundary", knobs.permissions_boundary)
            iam.PermissionsBoundary.of(cdk.Stack.of(self)).apply(boundary)
        own = {
            "provision": [*self._launch(), self._pass_roles(nodes, listed(knobs.node_roles))],
            "lifecycle": self._end(),
            "disrupt": [_unscoped("Find", ("ec2:DescribeInstances",), _in_region())],
            "catalog": [*self._learn(listed(knobs.ssm_parameters)), *_tell(knobs.report_topic)],
        }
        given = {spec.name: [*own.get(spec.name, []), *self._common(spec.name)] for spec in functions.specs}
        given[INSTALLER.name] = [self._find_cluster()]
        for name, grants in given.items():
            for grant in (*grants, *(_own_interfaces() if knobs.network != "public" else ())):
                grant.to(functions.role(name))

    def _launch(self) -> list[Grant]:
        start = ("ec2:CreateFleet", "ec2:RunInstances")
        used = (*(_ec2(kind) for kind in USED), _ec2("image", account=""), _ec2("snapshot", account=""))
        made, template = tuple(_ec2(kind) for kind in LAUNCHED), (_ec2("launch-template"),)
        ours = self._owned("aws:ResourceTag")
        tagged = self._owned("aws:RequestTag", {"aws:RequestTag/eks:eks-cluster-name": self._cluster})
        creating = self._owned(
            "aws:RequestTag",
            {
                "aws:RequestTag/eks:eks-cluster-name": self._cluster,
                "ec2:CreateAction": ["CreateFleet", "CreateLaunchTemplate", "RunInstances"],
            },
        )
        make, tag = ("ec2:CreateLaunchTemplate",), ("ec2:CreateTags",)
        return [
            Grant(sid="LaunchWith", actions=start, resources=used, because=CHOSEN),
            Grant(sid="LaunchFromOwn", actions=start, resources=template, conditions=ours, because=TAGGED),
            Grant(sid="LaunchTagged", actions=start, resources=made, conditions=tagged, because=TAGGED),
            Grant(sid="MakeTagged", actions=make, resources=template, conditions=tagged, because=TAGGED),
            Grant(sid="TagNew", actions=tag, resources=(*made, *template), conditions=creating, because=TAGGED),
            _unscoped("FindTemplates", ("ec2:DescribeLaunchTemplates",), _in_region()),
        ]

    def _pass_roles(self, nodes: list[NodeRole], further: list[str]) -> Grant:
        arns = tuple(f"arn:{cdk.Aws.PARTITION}:iam::{cdk.Aws.ACCOUNT_ID}:role/{name}" for name in further)
        services = ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]
        return Grant(
            sid="PassNodeRole",
            actions=("iam:PassRole",),
            resources=(*(one.role.role_arn for one in nodes), *arns),
            conditions={"StringEquals": {"iam:PassedToService": services}},
        )

    def _end(self) -> list[Grant]:
        instance, template = (_ec2("instance"),), (_ec2("launch-template"),)
        ours = self._owned("aws:ResourceTag")
        named = ours | {
            "StringEqualsIfExists": {"aws:RequestTag/eks:eks-cluster-name": self._cluster},
            "ForAllValues:StringEquals": {"aws:TagKeys": list(NODE_TAGS)},
        }
        terminate, delete = ("ec2:TerminateInstances",), ("ec2:DeleteLaunchTemplate",)
        return [
            Grant(sid="TerminateOwn", actions=terminate, resources=instance, conditions=ours, because=TAGGED),
            Grant(sid="DeleteOwn", actions=delete, resources=template, conditions=ours, because=TAGGED),
            Grant(sid="NameOwn", actions=("ec2:CreateTags",), resources=instance, conditions=named, because=TAGGED),
            _unscoped("Find", MACHINE_READS, _in_region()),
        ]

    def _learn(self, parameters: list[str]) -> list[Grant]:
        ssm = f"arn:{cdk.Aws.PARTITION}:ssm:{cdk.Aws.REGION}"
        private = tuple(f"{ssm}:{cdk.Aws.ACCOUNT_ID}:parameter/{name.lstrip('/')}" for name in parameters)
        public, read = f"{ssm}::parameter/aws/service/*", ("ssm:GetParameter",)
        images = Grant(sid="FindImages", actions=read, resources=(public, *private), because=PUBLIC)
        learn = [_unscoped("Learn", CATALOG_READS, _in_region()), images]
        return learn if self._without_prices else [*learn, _unscoped("LearnPrices", ("pricing:GetProducts",))]

    def _common(self, name: str) -> list[Grant]:
        bucket = self._state.bucket.bucket_arn
        journal, snapshots, catalogue, market, costs = (
            f"{bucket}/{prefix}*" for prefix in (JOURNAL, SNAPSHOTS, CATALOGUE, MARKET, COSTS)
        )
        own = (catalogue, market, costs) if name == "catalog" else ()
        written = (journal, *own, *((snapshots,) if name in DECIDING else ()))
        read = (*own, journal) if name == "catalog" else (catalogue,)
        rows = (*TABLE_ACTIONS, *(["dynamodb:DeleteItem"] if name in FORGETFUL else []))
        grants = [
            self._find_cluster(),
            Grant(sid="Write", actions=("s3:PutObject",), resources=written, because=KEYS),
            Grant(sid="Rows", actions=rows, resources=(self._state.table.table_arn,)),
        ]
        if name in CATALOGUE_READERS:
            grants.append(Grant(sid="Read", actions=("s3:GetObject",), resources=read, because=KEYS))
            # Without it S3 says "forbidden" where it means "there is none".
            grants.append(Grant(sid="List", actions=("s3:ListBucket",), resources=(bucket,)))
        return grants

    def _find_cluster(self) -> Grant:
        cluster = f"arn:{cdk.Aws.PARTITION}:eks:{cdk.Aws.REGION}:{cdk.Aws.ACCOUNT_ID}:cluster/{self._cluster}"
        return Grant(sid="FindCluster", actions=("eks:DescribeCluster",), resources=(cluster,))

    def _owned(self, key: str, further: dict[str, Any] | None = None) -> Conditions:
        """Answer that the tags under *key* say: this cluster, by a NodePool; and *further* equalities."""
        return {
            "StringEquals": {f"{key}/kubernetes.io/cluster/{self._cluster}": "owned"} | (further or {}),
            "StringLike": {f"{key}/{NODEPOOL}": "*"},
        }


def _ec2(kind: str, *, account: str = "*") -> str:
    return f"arn:{cdk.Aws.PARTITION}:ec2:{cdk.Aws.REGION}:{account}:{kind}/*"


def _tell(topic: str) -> list[Grant]:
    return [Grant(sid="TellCosts", actions=("sns:Publish",), resources=(topic,))] if topic else []


def _in_region() -> Conditions:
    return {"StringEquals": {"aws:RequestedRegion": cdk.Aws.REGION}}


def _own_interfaces() -> list[Grant]:
    """Answer what Lambda does in a function's name before it runs, and that the function's own code may not do it."""
    by_code: Conditions = {"Null": {"lambda:SourceFunctionArn": "false"}}
    denied = Grant(
        sid="NotByCode",
        actions=INTERFACE_CHANGES,
        resources=("*",),
        conditions=by_code,
        because=NO_RESOURCES,
        effect=iam.Effect.DENY,
    )
    return [_unscoped("OwnInterfaces", NETWORK_ACTIONS), denied]


def _unscoped(sid: str, actions: tuple[str, ...], conditions: Conditions | None = None) -> Grant:
    return Grant(sid=sid, actions=actions, resources=("*",), conditions=conditions, because=NO_RESOURCES)


def _spelled(scope: Construct, resource: str) -> str:
    """Answer *resource* as cdk-nag spells it: ``<AWS::Region>`` for a reference, ``<Logical.Arn>`` for an attribute."""
    resolved = cdk.Stack.of(scope).resolve(resource)
    return "".join(map(_spelled_part, resolved["Fn::Join"][1])) if isinstance(resolved, dict) else resolved


def _spelled_part(part: str | dict[str, Any]) -> str:
    if isinstance(part, str):
        return part
    [target] = part.values()
    return f"<{target if isinstance(target, str) else '.'.join(target)}>"
