"""Lambda resources: functions, layers, versions, permissions and event source mappings."""

import io
import zipfile
from typing import Any, Final

from sim.aws_account.resource_types.resource_provider import (
    Failed,
    PhysicalResource,
    Properties,
    PutResourceProvider,
    ResourceProvider,
    ResourceRequest,
    build_resource,
    remove_keys,
    select_keys,
)

_CODE_PROPERTIES: Final = frozenset({"Architectures", "Code"})
_CONFIGURATION_PROPERTIES: Final = (
    *("DeadLetterConfig", "Description", "Environment", "EphemeralStorage", "Handler", "Layers", "LoggingConfig"),
    *("MemorySize", "Role", "Runtime", "SnapStart", "Timeout", "TracingConfig", "VpcConfig"),
)
_DEFAULTS: Final[dict[str, Any]] = {
    "Description": "",
    "Environment": {"Variables": {}},
    "Layers": [],
    "MemorySize": 128,
    "Timeout": 3,
    "VpcConfig": {"SubnetIds": [], "SecurityGroupIds": []},
}


class FunctionProvider(ResourceProvider):
    """AWS::Lambda::Function."""

    create_only_properties = frozenset({"FunctionName", "PackageType"})
    delete_call = ("lambda", "delete_function", "FunctionName")

    def create(self, request: ResourceRequest) -> PhysicalResource:
        """Create the function."""
        name, properties = request.choose_name("FunctionName"), request.properties
        configuration = select_keys(properties, *_CONFIGURATION_PROPERTIES, "Architectures", "PackageType")
        tags = {tag["Key"]: tag["Value"] for tag in properties.get("Tags", ())}
        function = request.get_client("lambda").create_function(
            FunctionName=name, Code=_build_code(properties), Tags=tags, **configuration
        )
        resource = request.record_partial(name, Arn=function["FunctionArn"])
        self._update_concurrency_and_recursion(request, name)
        return resource

    def update(self, request: ResourceRequest) -> PhysicalResource:
        """Update the code, the configuration and the reserved concurrency, as far as they changed."""
        client, name, old_properties = request.get_client("lambda"), request.physical_id, request.old_properties
        if any(old_properties.get(key) != request.properties.get(key) for key in _CODE_PROPERTIES):
            code = _build_code(request.properties) | select_keys(request.properties, "Architectures")
            client.update_function_code(FunctionName=name, **code)
        defaults = select_keys(_DEFAULTS, *request.removed_properties)
        changes = request.select_changes(*_CONFIGURATION_PROPERTIES) | {
            key: value for key, value in defaults.items() if old_properties[key] != value
        }
        if changes:
            client.update_function_configuration(FunctionName=name, **changes)
        self._update_concurrency_and_recursion(request, name)
        return request.resource

    def _update_concurrency_and_recursion(self, request: ResourceRequest, name: str) -> None:
        client = request.get_client("lambda")
        if concurrency := request.select_changes("ReservedConcurrentExecutions"):
            (limit,) = map(int, concurrency.values())
            client.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=limit)
        elif "ReservedConcurrentExecutions" in request.removed_properties:
            client.delete_function_concurrency(FunctionName=name)
        old_loop, new_loop = (
            properties.get("RecursiveLoop", "Terminate") for properties in (request.old_properties, request.properties)
        )
        if new_loop != old_loop:
            client.put_function_recursion_config(FunctionName=name, RecursiveLoop=new_loop)


def _build_code(properties: Properties) -> dict[str, Any]:
    code: dict[str, Any] = properties["Code"]
    if "ZipFile" not in code:
        return select_keys(code, "S3Bucket", "S3Key", "S3ObjectVersion")
    zip_file = io.BytesIO()
    with zipfile.ZipFile(zip_file, "w") as archive:
        archive.writestr(zipfile.ZipInfo("index.py"), code["ZipFile"])
    return {"ZipFile": zip_file.getvalue()}


class LayerVersionProvider(ResourceProvider):
    """AWS::Lambda::LayerVersion."""

    is_immutable = True

    def create(self, request: ResourceRequest) -> PhysicalResource:
        """Publish a version of the layer."""
        name, content = request.choose_name("LayerName"), dict(request.properties["Content"])
        fields = ("CompatibleArchitectures", "CompatibleRuntimes", "Description", "LicenseInfo")
        settings = select_keys(request.properties, *fields)
        layer = request.get_client("lambda").publish_layer_version(LayerName=name, Content=content, **settings)
        return build_resource(layer["LayerVersionArn"], LayerVersionArn=layer["LayerVersionArn"])

    def delete(self, request: ResourceRequest) -> None:
        """Delete the layer version."""
        name, _, version = request.physical_id.partition(":layer:")[2].partition(":")
        request.get_client("lambda").delete_layer_version(LayerName=name, VersionNumber=int(version))


class VersionProvider(ResourceProvider):
    """AWS::Lambda::Version."""

    is_immutable = True

    def create(self, request: ResourceRequest) -> PhysicalResource:
        """Publish the current state of the function.

        Raises:
            Failed: the function has not changed since the last published version.
        """
        client, name = request.get_client("lambda"), request.properties["FunctionName"]
        versions = client.list_versions_by_function(FunctionName=name)["Versions"]
        settings = select_keys(request.properties, "Description", "CodeSha256")
        published = client.publish_version(FunctionName=name, **settings)
        version, arn = published["Version"], published["FunctionArn"]
        if version in {old_version["Version"] for old_version in versions}:
            message = f"A version for this Lambda function exists ( {version} )."
            raise Failed(f"{message} Modify the function to create a new version.")
        return build_resource(arn, Version=version, FunctionArn=arn)

    def delete(self, request: ResourceRequest) -> None:
        """Delete the version; the function may be deleted already."""
        name, version = request.properties["FunctionName"], request.resource.attributes["Version"]
        request.get_client("lambda").delete_function(FunctionName=name, Qualifier=version)


class PermissionProvider(ResourceProvider):
    """AWS::Lambda::Permission."""

    is_immutable = True

    def create(self, request: ResourceRequest) -> PhysicalResource:
        """Add the permission to the resource policy of the function."""
        fields = ("Action", "EventSourceToken", "FunctionUrlAuthType", "Principal", "PrincipalOrgID")
        permission = select_keys(request.properties, *fields, "SourceAccount", "SourceArn")
        name = request.generate_name(100)
        request.get_client("lambda").add_permission(StatementId=name, **self._build_target(request), **permission)
        return build_resource(name)

    def delete(self, request: ResourceRequest) -> None:
        """Remove the permission from the resource policy of the function."""
        target = self._build_target(request)
        request.get_client("lambda").remove_permission(StatementId=request.physical_id, **target)

    def _build_target(self, request: ResourceRequest) -> dict[str, str]:
        name, qualifier = parse_function_name(request.properties["FunctionName"])
        return {"FunctionName": name} | ({"Qualifier": qualifier} if qualifier else {})


class EventInvokeConfigProvider(PutResourceProvider):
    """AWS::Lambda::EventInvokeConfig."""

    create_only_properties = frozenset({"FunctionName", "Qualifier"})

    def write(self, request: ResourceRequest) -> PhysicalResource:
        """Write how often an asynchronous invocation is retried, and its on-failure destination."""
        request.get_client("lambda").put_function_event_invoke_config(**_remove_latest_qualifier(request.properties))
        return build_resource(request.physical_id or request.generate_name())

    def delete(self, request: ResourceRequest) -> None:
        """Remove the configuration; Lambda's defaults apply."""
        target = select_keys(_remove_latest_qualifier(request.properties), "FunctionName", "Qualifier")
        request.get_client("lambda").delete_function_event_invoke_config(**target)


def _remove_latest_qualifier(properties: Properties) -> dict[str, Any]:
    """Return *properties* without a qualifier ``$LATEST``: the API has none for it."""
    return remove_keys(properties, "Qualifier") if properties.get("Qualifier") == "$LATEST" else dict(properties)


class EventSourceMappingProvider(ResourceProvider):
    """AWS::Lambda::EventSourceMapping."""

    create_only_properties = frozenset({"EventSourceArn", "StartingPosition"})
    delete_call = ("lambda", "delete_event_source_mapping", "UUID")

    def create(self, request: ResourceRequest) -> PhysicalResource:
        """Create the event source mapping: Lambda polls the queue."""
        tags = {tag["Key"]: tag["Value"] for tag in request.properties.get("Tags", ())}
        settings = remove_keys(request.properties, "Tags") | ({"Tags": tags} if tags else {})
        mapping_id = request.get_client("lambda").create_event_source_mapping(**settings)["UUID"]
        arn = request.build_arn("lambda", f"event-source-mapping:{mapping_id}")
        return build_resource(mapping_id, Id=mapping_id, EventSourceMappingArn=arn)

    def update(self, request: ResourceRequest) -> PhysicalResource:
        """Update the event source mapping."""
        settings = remove_keys(request.properties, *self.create_only_properties, "Tags")
        request.get_client("lambda").update_event_source_mapping(UUID=request.physical_id, **settings)
        return request.resource


def parse_function_name(function: str) -> tuple[str, str]:
    """Return the name and the qualifier in *function*: a name with or without a qualifier, or an ARN.

    >>> parse_function_name("arn:aws:lambda:us-east-1:123456789012:function:tick:live"), parse_function_name("tick")
    (('tick', 'live'), ('tick', ''))
    """
    qualified_name = function.partition(":function:")[2] or function
    name, _, qualifier = qualified_name.partition(":")
    return name, qualifier
