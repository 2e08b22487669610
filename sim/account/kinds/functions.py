"""Lambda: functions, layers, versions, aliases, and who calls them."""

import io
import zipfile
from typing import Any, Final

from sim.account.kinds.kind import Failed, Kind, Made, Place, Said, Setting, only, without

_CODE: Final = frozenset({"Architectures", "Code"})
_CONFIGURATION: Final = (
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


class Function(Kind):
    """AWS::Lambda::Function."""

    fixed = frozenset({"FunctionName", "PackageType"})

    def create(self, at: Place, said: Said) -> Made:
        """Make it."""
        name = said.get("FunctionName") or at.named()
        rest = only(said, *_CONFIGURATION, "Architectures", "PackageType")
        tags = {one["Key"]: one["Value"] for one in said.get("Tags", ())}
        made = at.client("lambda").create_function(FunctionName=name, Code=_code(said), Tags=tags, **rest)
        at.begun.append(Made(physical_id=name))
        self._reserve(at, name, {}, said)
        _let_recur(at, name, {}, said)
        return Made(physical_id=name, attributes={"Arn": made["FunctionArn"]})

    def update(self, at: Place, made: Made, old: Said, new: Said) -> Made:
        """Change its code, its configuration and its part of the concurrency, as far as they differ."""
        client, name = at.client("lambda"), made.physical_id
        if any(old.get(key) != new.get(key) for key in _CODE):
            client.update_function_code(FunctionName=name, **_code(new), **only(new, "Architectures"))
        wanted = only(new, *_CONFIGURATION) | {
            key: _DEFAULTS[key] for key in _DEFAULTS if key in old.keys() - new.keys()
        }
        changed = {key: value for key, value in wanted.items() if old.get(key) != value}
        if changed:
            client.update_function_configuration(FunctionName=name, **changed)
        self._reserve(at, name, old, new)
        _let_recur(at, name, old, new)
        return made

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Take it away with all versions and aliases."""
        del said
        at.client("lambda").delete_function(FunctionName=made.physical_id)

    def _reserve(self, at: Place, name: str, old: Said, new: Said) -> None:
        key, client = "ReservedConcurrentExecutions", at.client("lambda")
        if key in new and new[key] != old.get(key):
            client.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=int(new[key]))
        elif key in old and key not in new:
            client.delete_function_concurrency(FunctionName=name)


def _let_recur(at: Place, name: str, old: Said, new: Said) -> None:
    was, wanted = (one.get("RecursiveLoop", "Terminate") for one in (old, new))
    if wanted != was:
        at.client("lambda").put_function_recursion_config(FunctionName=name, RecursiveLoop=wanted)


def _code(said: Said) -> dict[str, Any]:
    code: dict[str, Any] = said["Code"]
    if "ZipFile" not in code:
        return only(code, "S3Bucket", "S3Key", "S3ObjectVersion")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(zipfile.ZipInfo("index.py"), code["ZipFile"])
    return {"ZipFile": packed.getvalue()}


class Layer(Kind):
    """AWS::Lambda::LayerVersion."""

    all_fixed = True

    def create(self, at: Place, said: Said) -> Made:
        """Publish it."""
        name = said.get("LayerName") or at.named()
        fields = ("CompatibleArchitectures", "CompatibleRuntimes", "Description", "LicenseInfo")
        made = at.client("lambda").publish_layer_version(
            LayerName=name, Content=dict(said["Content"]), **only(said, *fields)
        )
        arn = made["LayerVersionArn"]
        return Made(physical_id=arn, attributes={"LayerVersionArn": arn})

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Take the version away."""
        del said
        name, _, version = made.physical_id.partition(":layer:")[2].partition(":")
        at.client("lambda").delete_layer_version(LayerName=name, VersionNumber=int(version))


class Version(Kind):
    """AWS::Lambda::Version."""

    all_fixed = True

    def create(self, at: Place, said: Said) -> Made:
        """Publish what the function is now.

        Raises:
            Failed: it has not changed since it was last published.
        """
        client, name = at.client("lambda"), said["FunctionName"]
        before = {one["Version"] for one in client.list_versions_by_function(FunctionName=name)["Versions"]}
        made = client.publish_version(FunctionName=name, **only(said, "Description", "CodeSha256"))
        version, arn = made["Version"], made["FunctionArn"]
        if version in before:
            text = (
                f"A version for this Lambda function exists ( {version} ). Modify the function to create a new version."
            )
            raise Failed(text)
        return Made(physical_id=arn, attributes={"Version": version, "FunctionArn": arn})

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Take the version away, unless the function is gone already."""
        version = made.attributes["Version"]
        at.client("lambda").delete_function(FunctionName=said["FunctionName"], Qualifier=version)


class Permission(Kind):
    """AWS::Lambda::Permission."""

    all_fixed = True

    def create(self, at: Place, said: Said) -> Made:
        """Let somebody call it."""
        fields = ("Action", "EventSourceToken", "FunctionUrlAuthType", "Principal", "PrincipalOrgID")
        name, qualifier = split(said["FunctionName"])
        at.client("lambda").add_permission(
            FunctionName=name,
            StatementId=at.named(100),
            **only(said, *fields, "SourceAccount", "SourceArn"),
            **({"Qualifier": qualifier} if qualifier else {}),
        )
        return Made(physical_id=at.named(100))

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Let nobody call it by that any more."""
        name, qualifier = split(said["FunctionName"])
        at.client("lambda").remove_permission(
            FunctionName=name, StatementId=made.physical_id, **({"Qualifier": qualifier} if qualifier else {})
        )


class EventInvokeConfig(Setting):
    """AWS::Lambda::EventInvokeConfig."""

    fixed = frozenset({"FunctionName", "Qualifier"})

    def write(self, at: Place, said: Said, before: Made | None) -> Made:
        """Say how often an asynchronous call is repeated, and what becomes of it then."""
        at.client("lambda").put_function_event_invoke_config(**_qualified(said))
        return before or Made(physical_id=at.named())

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Leave it to Lambda."""
        del made
        at.client("lambda").delete_function_event_invoke_config(**only(_qualified(said), "FunctionName", "Qualifier"))


def _qualified(said: Said) -> dict[str, Any]:
    """Answer *said* without the qualifier that stands for no version."""
    return without(said, "Qualifier") if said.get("Qualifier") == "$LATEST" else dict(said)


class EventSourceMapping(Kind):
    """AWS::Lambda::EventSourceMapping."""

    fixed = frozenset({"EventSourceArn", "StartingPosition"})

    def create(self, at: Place, said: Said) -> Made:
        """Have Lambda read the queue."""
        one = at.client("lambda").create_event_source_mapping(**said)
        arn = at.arn("lambda", f"event-source-mapping:{one['UUID']}")
        return Made(physical_id=one["UUID"], attributes={"Id": one["UUID"], "EventSourceMappingArn": arn})

    def update(self, at: Place, made: Made, old: Said, new: Said) -> Made:
        """Have it read otherwise."""
        del old
        at.client("lambda").update_event_source_mapping(UUID=made.physical_id, **without(new, *self.fixed, "Tags"))
        return made

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Have it read no more."""
        del said
        at.client("lambda").delete_event_source_mapping(UUID=made.physical_id)


def split(function: str) -> tuple[str, str]:
    """Answer the name and the qualifier in a name, with or without one, or an ARN.

    >>> split("arn:aws:lambda:us-east-1:123456789012:function:tick:live"), split("tick")
    (('tick', 'live'), ('tick', ''))
    """
    named = function.partition(":function:")[2] or function
    name, _, qualifier = named.partition(":")
    return name, qualifier
