"""Lambda's API, but for Invoke."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from sim.account.kinds.functions import split
from sim.account.lambdas.aliases import Aliases
from sim.account.lambdas.calling import Calling
from sim.account.lambdas.mappings import Mappings
from sim.account.lambdas.store import CONFLICT, LATEST, NOT_FOUND, Function, Layers, Version
from sim.clock import Clock
from sim.http.protocol import ApiError
from sim.http.queries import Wire

Answer: TypeAlias = dict[str, Any]

_SETTINGS: Final = (
    *("DeadLetterConfig", "Description", "Environment", "EphemeralStorage", "Handler", "LoggingConfig", "MemorySize"),
    *("Role", "Runtime", "Timeout", "TracingConfig", "VpcConfig"),
)
_DEFAULTS: Final[Answer] = {
    "Architectures": ["x86_64"],
    "Description": "",
    "EphemeralStorage": {"Size": 512},
    "MemorySize": 128,
    "PackageType": "Zip",
    "Timeout": 3,
    "TracingConfig": {"Mode": "PassThrough"},
}


class Holder(Protocol):
    """What is needed of the account."""

    region: str
    number: str
    clock: Clock

    def client(self, service: str) -> Any:  # noqa: ANN401 - boto3's clients have no types
        """Answer the deployer's client."""


class Lambda:
    """All functions of the account."""

    def __init__(self, account: Holder) -> None:
        """Begin without any."""
        self._account = account
        self._functions: dict[str, Function] = {}
        self.layers = Layers()
        self.mappings = Mappings(account, self._named)
        self.handlers: Mapping[str, Callable[[Wire], Answer]] = {
            "CreateFunction": self._create,
            "DeleteFunction": self._delete,
            "DeleteLayerVersion": self._delete_layer,
            "GetFunction": self._describe,
            "GetFunctionConfiguration": lambda said: self._shown(*self._qualified(said)),
            "GetLayerVersion": self._layer,
            "ListFunctions": lambda _: {"Functions": [self._shown(one, "") for one in self.functions()]},
            "ListLayers": self._list_layers,
            "ListVersionsByFunction": self._list_versions,
            "PublishLayerVersion": self._publish_layer,
            "PublishVersion": self._publish,
            "UpdateFunctionCode": self._update_code,
            "UpdateFunctionConfiguration": self._update_config,
            **self.mappings.handlers,
            **Aliases(self._named).handlers,
            **Calling(self._named).handlers,
        }

    def functions(self) -> list[Function]:
        """Answer all of them, by name."""
        return [one for _, one in sorted(self._functions.items())]

    def find(self, name: str) -> Function:
        """Answer the function called *name*.

        Raises:
            ApiError: there is none.
        """
        if name not in self._functions:
            text = f"Function not found: {self._arn(f'function:{name}')}"
            raise ApiError("ResourceNotFoundException", text, NOT_FOUND)
        return self._functions[name]

    def _named(self, said: str) -> tuple[Function, str]:
        name, qualifier = split(said)
        return self.find(name), qualifier

    def _qualified(self, said: Wire) -> tuple[Function, str]:
        function, qualifier = self._named(said["FunctionName"])
        return function, qualifier or said.get("Qualifier", "")

    def _arn(self, name: str) -> str:
        return f"arn:aws:lambda:{self._account.region}:{self._account.number}:{name}"

    def _code(self, said: Wire) -> bytes:
        if "ZipFile" in said:
            return bytes(said["ZipFile"])
        s3 = self._account.client("s3")
        try:
            return bytes(s3.get_object(Bucket=said["S3Bucket"], Key=said["S3Key"])["Body"].read())
        except (s3.exceptions.NoSuchKey, s3.exceptions.NoSuchBucket) as error:
            text = f"Error occurred while GetObject. S3 Error Code: {error.response['Error']['Code']}."
            raise ApiError("InvalidParameterValueException", text) from error

    def _create(self, said: Wire) -> Answer:
        name = said["FunctionName"]
        if name in self._functions:
            raise ApiError("ResourceConflictException", f"Function already exist: {name}", CONFLICT)
        given = {key: said[key] for key in (*_SETTINGS, "Architectures", "PackageType") if key in said}
        config = self._checked({**_DEFAULTS, **given, "Layers": list(said.get("Layers", ()))})
        latest = Version(number=LATEST, config=config, code=self._code(said["Code"]))
        made = Function(name, self._arn(f"function:{name}"), latest)
        made.tags = dict(said.get("Tags", {}))
        self._functions[name] = made
        return self._shown(made, "")

    def _checked(self, config: Answer) -> Answer:
        for arn in config["Layers"]:
            self.layers.find(arn)
        role = config["Role"].rpartition("/")[2]
        iam = self._account.client("iam")
        try:
            iam.get_role(RoleName=role)
        except iam.exceptions.NoSuchEntityException as error:
            text = "The role defined for the function cannot be assumed by Lambda."
            raise ApiError("InvalidParameterValueException", text) from error
        return config

    def _update_code(self, said: Wire) -> Answer:
        function, _ = self._named(said["FunctionName"])
        config = {
            **function.latest.config,
            **({"Architectures": said["Architectures"]} if "Architectures" in said else {}),
        }
        function.latest = Version(number=LATEST, config=config, code=self._code(said))
        return self._shown(function, "")

    def _update_config(self, said: Wire) -> Answer:
        function, _ = self._named(said["FunctionName"])
        given = {key: said[key] for key in (*_SETTINGS, "Layers") if key in said}
        config = self._checked({**function.latest.config, **given})
        function.latest = msgspec.structs.replace(function.latest, config=config)
        return self._shown(function, "")

    def _delete(self, said: Wire) -> Answer:
        function, qualifier = self._qualified(said)
        if not qualifier:
            del self._functions[function.name]
            return {}
        function.version(qualifier)
        if users := function.users_of(qualifier):
            text = f"Cannot delete version {qualifier}: aliases {', '.join(users)} lead to it"
            raise ApiError("ResourceConflictException", text, CONFLICT)
        function.published.pop(qualifier, None)
        return {}

    def _shown(self, function: Function, qualifier: str) -> Answer:
        version = function.version(qualifier)
        arn = f"{function.arn}:{qualifier}" if qualifier else function.arn
        layers = [{"Arn": one} for one in version.config["Layers"]]
        logged = {"LogFormat": "Text", "LogGroup": f"/aws/lambda/{function.name}"}
        return {
            **version.config,
            "CodeSha256": version.sha256,
            "CodeSize": len(version.code),
            "FunctionArn": arn,
            "FunctionName": function.name,
            "LastModified": self._account.clock.now().isoformat(),
            "LastUpdateStatus": "Successful",
            "Layers": layers,
            "LoggingConfig": {**logged, **version.config.get("LoggingConfig", {})},
            "State": "Active",
            "Version": version.number,
        }

    def _describe(self, said: Wire) -> Answer:
        function, qualifier = self._qualified(said)
        reserved = {"Concurrency": {"ReservedConcurrentExecutions": function.reserved}}
        return {
            "Configuration": self._shown(function, qualifier),
            "Code": {"RepositoryType": "S3"},
            "Tags": function.tags,
        } | (reserved if function.reserved is not None else {})

    def _list_versions(self, said: Wire) -> Answer:
        function, _ = self._named(said["FunctionName"])
        numbers = sorted(function.published, key=int)
        return {"Versions": [self._shown(function, one) for one in (LATEST, *numbers)]}

    def _publish(self, said: Wire) -> Answer:
        function, _ = self._named(said["FunctionName"])
        if said.get("CodeSha256") not in (None, function.latest.sha256):
            raise ApiError("InvalidParameterValueException", "CodeSHA256 is different from current CodeSHA256")
        return self._shown(function, function.publish(said.get("Description", "")).number)

    def _publish_layer(self, said: Wire) -> Answer:
        fields = ("CompatibleArchitectures", "CompatibleRuntimes", "Description", "LicenseInfo")
        kept = {key: said[key] for key in fields if key in said}
        return self.layers.publish(self._arn(f"layer:{said['LayerName']}"), kept, self._code(said["Content"]))

    def _layer(self, said: Wire) -> Answer:
        return self.layers.find(f"{self._arn('layer:' + said['LayerName'])}:{said['VersionNumber']}")

    def _delete_layer(self, said: Wire) -> Answer:
        self.layers.remove(f"{self._arn('layer:' + said['LayerName'])}:{said['VersionNumber']}")
        return {}

    def _list_layers(self, said: Wire) -> Answer:
        del said
        found = {one["LayerArn"]: one for one in self.layers.all()}
        return {
            "Layers": [
                {"LayerName": arn.rpartition(":")[2], "LayerArn": arn, "LatestMatchingVersion": one}
                for arn, one in sorted(found.items())
            ]
        }
