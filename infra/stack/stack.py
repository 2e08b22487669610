"""The stack of one cluster."""

from typing import Final

import aws_cdk as cdk
from constructs import Construct

from infra.functions import installer, price_list
from infra.functions.functions import Functions, select_specs
from infra.iam.function_policies import FunctionPolicies
from infra.iam.node_role import FunctionEntries, NodeRole
from infra.iam.zonal_shift_grants import format_cluster_arn
from infra.monitoring.alarms import Alarms
from infra.monitoring.dashboard import Dashboard
from infra.network.network import Network
from infra.settings.partition_validation import get_target_region
from infra.settings.settings import StackOptions
from infra.stack.rollout import Deployments
from infra.storage import State
from infra.triggers.interruption_events import CloudEvents
from infra.triggers.queues import Queues
from infra.triggers.scheduler_log import SchedulerLog
from infra.triggers.schedules import Schedules
from shared.settings import ChosenSettings, Settings

BUCKET_DESCRIPTION: Final = (
    "S3 bucket with the journal, the catalog and cost reports, for `joiner --journal s3://BUCKET`"
)
INSTANCE_PROFILE_DESCRIPTION: Final = "Instance profile of nodes whose EC2NodeClass has spec.role"


class JoinerStack(cdk.Stack):
    """The complete stack; each concern is a construct."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        options: StackOptions,
        synthesizer: cdk.IStackSynthesizer | None = None,
    ) -> None:
        """Create the constructs that *options* require."""
        description = f"Joiner, node autoscaler for the EKS cluster {options.cluster}"
        environment = cdk.Environment(account=options.account or None, region=options.region or None)
        super().__init__(scope, construct_id, description=description, synthesizer=synthesizer, env=environment)
        for key, value in options.tags.items():
            cdk.Tags.of(self).add(key, value)
        state = State(self, "State", options=options)
        queues = Queues(self, "Queues", cluster=options.cluster, specs=select_specs(options))
        node_role = NodeRole(self, "Nodes", options=options)
        windows_roles = self._create_windows_roles(options)
        settings = _build_settings(options, state, queues, node_role)
        files = self._build_code_files(options)
        network = Network(self, "Network", options=options)
        functions = Functions(self, "Functions", options=options, settings=settings, files=files, network=network)
        queues.connect_functions(functions)
        schedules = Schedules(
            self, "Schedules", cluster=options.cluster, functions=functions, dead_letter_queue=queues.dead_letters
        )
        if options.reaction == "logs":
            SchedulerLog(self, "SchedulerLog", cluster=options.cluster, function=functions.get_alias("watch"))
        CloudEvents(
            self, "Events", cluster=options.cluster, queue=queues.interruption, dead_letter_queue=queues.dead_letters
        )
        FunctionPolicies(
            self, "Access", options=options, functions=functions, state=state, node_roles=[node_role, *windows_roles]
        )
        entries = FunctionEntries(self, "Entries", cluster=options.cluster, functions=functions)
        deployments = Deployments(self, "Deployments", options=options, functions=functions)
        self._install_cluster_objects(options, functions, entries, schedules, node_roles=[node_role, *windows_roles])
        alarms = Alarms(
            self,
            "Alarms",
            options=options,
            functions=functions,
            dead_letter_queue=queues.dead_letters,
            more_alarms=[deployments.error_alarm],
        )
        if options.dashboard:
            Dashboard(self, "Dashboard", options=options, functions=functions, queues=queues, alarms=alarms)
        outputs = (
            ("JoinerBucketName", state.bucket.bucket_name, BUCKET_DESCRIPTION),
            ("JoinerInstanceProfile", node_role.profile.ref, INSTANCE_PROFILE_DESCRIPTION),
        )
        for name, value, output_description in outputs:
            cdk.CfnOutput(self, name, value=value, description=output_description)

    def _build_code_files(self, options: StackOptions) -> dict[str, bytes]:
        """Return the files that are packaged with the functions; a price list also gets a stack output."""
        files = {installer.MANIFESTS_FILENAME: installer.build_manifests(options)}
        if not options.price_list:
            return files
        packaged_prices, body = price_list.read_price_list(options.price_list, get_target_region(options))
        description = "Region, date and size of the price list that is packaged with the functions"
        cdk.CfnOutput(self, "PackagedPrices", value=packaged_prices.format_summary(), description=description)
        return {**files, price_list.PRICE_LIST_FILENAME: body}

    def _create_windows_roles(self, options: StackOptions) -> list[NodeRole]:
        """Create the node role for Windows, if enabled; an EC2NodeClass names its instance profile."""
        if not options.windows:
            return []
        node_role = NodeRole(self, "WindowsNodes", options=options, platform="WINDOWS")
        description = "Instance profile for spec.instanceProfile of EC2NodeClasses with Windows images"
        cdk.CfnOutput(self, "WindowsInstanceProfile", value=node_role.profile.ref, description=description)
        return [node_role]

    def _install_cluster_objects(
        self, options: StackOptions, functions: Functions, *dependents: Construct, node_roles: list[NodeRole]
    ) -> None:
        """Install the cluster objects before *dependents*, which give the functions access and invoke them.

        The access entries of *node_roles* follow, too: their roles are then older than IAM needs to propagate them.
        """
        cluster_installer = installer.InstallerConstruct(self, "Installer", options=options, functions=functions)
        live_aliases = [functions.get_alias(spec.name) for spec in functions.specs]
        node_entries = [node_role.access_entry for node_role in node_roles]
        for dependent in (*dependents, *live_aliases, *node_entries):
            dependent.node.add_dependency(cluster_installer.installed)
        live_functions = (functions[spec.name] for spec in functions.specs)
        cluster_installer.create_emptied_resource(
            *dependents,
            *node_roles,
            *live_functions,
            *live_aliases,
            profiles=[node_role.profile.ref for node_role in node_roles],
        )
        description = "What the installer changed in the cluster"
        cdk.CfnOutput(self, "Installed", value=cluster_installer.installer_message, description=description)


def _build_settings(options: StackOptions, state: State, queues: Queues, node_role: NodeRole) -> Settings:
    chosen_values = {name: getattr(options, name) for name in ChosenSettings.__struct_fields__}
    return Settings(
        **chosen_values,
        cluster_name=options.cluster,
        region=cdk.Aws.REGION,
        table_name=state.table.table_name,
        bucket_name=state.bucket.bucket_name,
        group_member=f"{cdk.Aws.ACCOUNT_ID}/{cdk.Aws.REGION}/{options.cluster}" if options.group else "",
        queue_prefix=queues.prefix,
        instance_profile=node_role.profile.ref,
        cluster_arn="" if options.zonal_shift == "off" else format_cluster_arn(options.cluster),
        price_list=price_list.PRICE_LIST_FILENAME if options.price_list else "",
        price_service="unreachable" if options.network == "isolated" else "reachable",
    )
