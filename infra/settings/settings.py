"""The settings of a deployment: those that functions read, and those that only the stack needs.

Each setting has the name of its field with hyphens in the settings file of a cluster, clusters/NAME.yaml:
``log-days: 7``. clusters/example.yaml lists all settings.
"""

from functools import partial
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from infra.settings import per_function
from infra.settings.stack_tags import parse_stack_tags
from shared.settings import ChosenSettings
from shared.settings_text import Mode, TextForm, TopicArn

_ID_PATTERN: Final = r"^({}-[0-9a-f]{{8}}([0-9a-f]{{9}})?)?\Z"
SecurityGroupId: TypeAlias = Annotated[
    str, msgspec.Meta(pattern=_ID_PATTERN.format("sg")), TextForm(allowed="sg-0123456789abcdef0")
]
Days: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
LogRetentionDays: TypeAlias = Literal[
    1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653
]
"""The retention periods that CloudWatch Logs allows."""


class StackOptions(ChosenSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of one cluster, not validated (`infra.settings.load`)."""

    cluster: str = ""
    """Name of the EKS cluster. If empty, the name of the settings file without `.yaml`. Needed only if clusters in
    several regions or accounts have the same name."""
    account: Annotated[str, msgspec.Meta(pattern=r"^([0-9]{12})?\Z"), TextForm(allowed="12 digits")] = ""
    """AWS account of the stack; a deployment to another account fails. If empty, the account of the credentials."""
    region: Annotated[
        str, msgspec.Meta(pattern=r"^([a-z]{2}(-[a-z]+)+-[0-9])?\Z"), TextForm(allowed="a region like eu-central-1")
    ] = ""
    """AWS region of the stack; a deployment to another region fails. If empty, the region of the credentials."""
    tags: Annotated[dict[str, str], TextForm(allowed="KEY=VALUE,KEY=VALUE", parse=parse_stack_tags)] = msgspec.field(
        default_factory=dict
    )
    """Tags of all resources of the stack, for example `team=platform,cost-centre=42`. Nodes have the tags of their
    EC2NodeClass instead."""
    disruption: Mode = "plan"
    # The default of the functions is `active`. A new deployment first reports what it would disrupt, until an operator
    # enables disruption; without a deployment (simulations, replays) nothing real is disrupted.
    deployment: Literal["canary", "all-at-once"] = "canary"
    """How a new version is rolled out. `canary`: half of the invocations for five minutes, then all of them unless
    there are errors. `all-at-once`: all invocations immediately, without a rollback."""
    memory_mb: Annotated[
        dict[str, int],
        TextForm(
            allowed="256 to 10240 for each function",
            parse=partial(per_function.parse_numbers, limits=per_function.MEMORY_RANGE_MB),
        ),
    ] = msgspec.field(default_factory=dict)
    """Memory of single functions in MB, for example `provision=3008`. 1,769 MB correspond to one vCPU, and a plan
    cannot use more than one."""
    every_minutes: Annotated[
        dict[str, int],
        TextForm(
            allowed="1 to 4 for provision, lifecycle and disrupt, 1 to 30 for catalog",
            parse=partial(per_function.parse_numbers, limits=per_function.INTERVAL_RANGE_MINUTES),
        ),
    ] = msgspec.field(default_factory=dict)
    """Schedule of single functions in minutes, for example `disrupt=4,catalog=10`. By default, `catalog` runs every
    five minutes and the others every minute."""
    reserved_concurrency: Annotated[
        dict[str, int],
        TextForm(
            allowed="3 to 100, at least 5 for interrupt",
            parse=partial(per_function.parse_numbers, limits=per_function.RESERVED_CONCURRENCY_RANGE),
        ),
    ] = msgspec.field(default_factory=dict)
    """Reserved concurrency of single functions, for example `provision=3,interrupt=5`. By default nothing is reserved:
    Lambda rejects reservations in accounts with a concurrency limit of ten, such as new accounts."""
    log_level: Annotated[
        str,
        TextForm(
            allowed="DEBUG, INFO, WARNING or ERROR, for all functions or as NAME=LEVEL",
            parse=per_function.parse_log_levels,
        ),
    ] = "INFO"
    """Log level of the functions. `INFO` logs each cycle, `DEBUG` also the reason of each decision, `WARNING` only
    problems, `ERROR` only failures. Levels of single functions follow the level of all: `INFO,provision=DEBUG`."""
    system_log_level: Literal["DEBUG", "INFO", "WARN"] = "WARN"
    """Log level of the Lambda service in the same logs. `WARN` logs only problems, `INFO` also the duration and the
    memory of each invocation."""
    log_days: LogRetentionDays = 30
    """Retention period of the logs in days."""
    journal_days: Days = 30
    """Retention period of the journal in days: how far `joiner explain` looks back."""
    snapshot_days: Days = 7
    """Retention period of the inputs of decisions in days: how far `joiner replay` looks back. At most
    `journal-days`. These inputs are most of the bucket's content."""
    on_destroy: Literal["keep", "purge", "abandon"] = "keep"
    """What happens when the stack is deleted. `keep`: your objects stay. The stack cannot be deleted while a NodeClaim
    uses the stack's instance profile or has no instance yet: its node would lose access to the cluster. `purge`: all
    NodePools and their nodes are deleted first. `abandon`: the nodes keep running, and are no longer managed."""
    cluster_objects: Literal["stack", "external"] = "stack"
    """Who manages the CRDs, the RBAC and the API priorities of Joiner in the cluster. `stack`: the stack installs and
    removes them. `external`: another tool, such as Argo CD, applies them from the bundle of `make bundle`. The stack
    then writes and removes none of them, and a deployment fails if they do not match its version:
    docs/guide/gitops.md."""
    windows: bool = False
    """`true`: the stack also creates a node role for Windows, with the access entry that Windows nodes need."""
    network: Literal["public", "private", "isolated"] = "public"
    """Network of the functions. `public`: outside a VPC. `private`: in the cluster's subnets, with a NAT gateway.
    `isolated`: in subnets without a NAT gateway, with VPC endpoints and a price list. docs/networking.md has the
    requirements and costs of each."""
    subnets: tuple[
        Annotated[
            str, msgspec.Meta(pattern=_ID_PATTERN.format("subnet")), TextForm(allowed="subnet-0123456789abcdef0")
        ],
        ...,
    ] = ()
    """Subnets of the functions' network interfaces."""
    security_groups: tuple[SecurityGroupId, ...] = ()
    """Security groups of the functions' network interfaces. If empty, the stack creates one."""
    vpc: Annotated[str, msgspec.Meta(pattern=_ID_PATTERN.format("vpc")), TextForm(allowed="vpc-0123456789abcdef0")] = ""
    """VPC in which the stack creates the functions' security group and VPC endpoints."""
    vpc_cidrs: tuple[str, ...] = ()
    """CIDR blocks of the VPC, for example `10.0.0.0/16`: they can connect to the VPC endpoints that the stack
    creates."""
    cluster_security_group: SecurityGroupId = ""
    """Security group of the cluster's API server. The stack adds a rule that allows the functions' security group."""
    vpc_endpoints: bool = False
    """`true`: the stack creates the VPC endpoints. In this case, name one subnet for each zone."""
    route_tables: tuple[
        Annotated[str, msgspec.Meta(pattern=_ID_PATTERN.format("rtb")), TextForm(allowed="rtb-0123456789abcdef0")],
        ...,
    ] = ()
    """Route tables of the subnets, for the gateway endpoints of S3 and DynamoDB."""
    prefix_lists: tuple[
        Annotated[str, msgspec.Meta(pattern=_ID_PATTERN.format("pl")), TextForm(allowed="pl-0123456789abcdef0")],
        ...,
    ] = ()
    """Prefix lists of S3 and DynamoDB. If set, the security group that the stack creates allows connections only to
    these and to the VPC."""
    node_roles: tuple[
        Annotated[
            str,
            msgspec.Meta(pattern=r"^(?a:[\w+=.@/-]{1,512})\Z"),
            TextForm(allowed="role names without wildcards"),
        ],
        ...,
    ] = ()
    """Names of additional node roles: the roles of instance profiles that EC2NodeClasses name themselves."""
    ip_family: Literal["ipv4", "ipv6"] = "ipv4"
    """IP family of the cluster's pods. `ipv6`: the stack's node role can assign IPv6 addresses, which the VPC CNI needs
    before a node becomes Ready."""
    node_role_policies: tuple[
        Annotated[
            str,
            msgspec.Meta(pattern=r"^arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/(?a:[\w+=,.@/-]{1,512})\Z"),
            TextForm(allowed="ARNs of managed policies"),
        ],
        ...,
    ] = ()
    """ARNs of managed policies that the stack's node roles have in addition, for example for a log agent on the
    nodes."""
    kms_keys: tuple[
        Annotated[
            str,
            msgspec.Meta(pattern=r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/(mrk-[0-9a-f]{32}|[0-9a-f-]{36})\Z"),
            TextForm(allowed="ARNs of KMS keys, like arn:aws:kms:eu-central-1:111122223333:key/KEY-ID"),
        ],
        ...,
    ] = ()
    """ARNs of the customer-managed KMS keys of the nodes' volumes: keys that EC2NodeClasses name, that encrypt your
    images, or that are the account's default for EBS."""
    permissions_boundary: Annotated[
        str,
        msgspec.Meta(pattern=r"^(arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/.+)?\Z"),
        TextForm(allowed="the ARN of a policy"),
    ] = ""
    """ARN of the managed policy that is the permissions boundary of all roles of the stack, node roles included."""
    ssm_parameters: tuple[
        Annotated[
            str,
            msgspec.Meta(pattern=r"^(?a:[\w./-]{1,1011})\Z"),
            TextForm(allowed="parameter names like /images/golden, without wildcards"),
        ],
        ...,
    ] = ()
    """Names of private SSM parameters with image ids. The public parameters under /aws/service can always be read."""
    price_list: str = ""
    """Path of a file that `joiner catalog prices` has written. It is deployed with the functions, and used if they
    cannot reach the pricing service."""
    alarm_topic: TopicArn = ""
    """ARN of the SNS topic that is notified of alarms."""
    dashboard: bool = True
    """`true`: the stack creates a CloudWatch dashboard. The first three dashboards of an account are free, each further
    one costs $3/month."""
    price_age_alarm_hours: Annotated[int, TextForm(allowed="13 or more, or 0")] = 48
    """Age of the prices, in hours, at which an alarm is raised. Prices are queried twice a day, so the minimum is 13.
    0: no alarm."""
    canary_alarm: bool = False
    """`true`: an alarm is raised while the newest image or launch configuration of an EC2NodeClass is rejected by its
    canary (annotation joiner.dev/canary): docs/guide/images.md. The alarm costs $0.10/month."""


_TARGET_FIELDS: Final = ("cluster", "account", "region", "tags")


def list_options() -> tuple[msgspec.structs.FieldInfo, ...]:
    """Return the fields of `StackOptions` in the order of the reference and of files: the target of the stack first."""
    return tuple(sorted(msgspec.structs.fields(StackOptions), key=lambda field: field.name not in _TARGET_FIELDS))


def format_setting_name(field: str) -> str:
    """Return the name of the setting that *field* declares."""
    return field.replace("_", "-")


SETTING_NAMES: Final = tuple(map(format_setting_name, StackOptions.__struct_fields__))
"""Names of all settings."""
