"""The Lambda API without Invoke."""

from typing import Final

import msgspec

from sim.aws_account.function_runtime import AccountServices
from sim.aws_account.lambda_api.aliases import AliasApi
from sim.aws_account.lambda_api.event_source_mappings import EventSourceMappingApi
from sim.aws_account.lambda_api.function_store import (
    HTTP_CONFLICT,
    HTTP_NOT_FOUND,
    LATEST_QUALIFIER,
    Function,
    FunctionVersion,
    LayerStore,
)
from sim.aws_account.lambda_api.invocation_settings import InvocationApi
from sim.aws_account.resource_types.lambda_functions import parse_function_name
from sim.aws_http.protocol import ApiDict, ApiError, ApiHandlers, ApiResponse

_CONFIGURATION_FIELDS: Final = (
    *("DeadLetterConfig", "Description", "Environment", "EphemeralStorage", "Handler", "LoggingConfig", "MemorySize"),
    *("Role", "Runtime", "Timeout", "TracingConfig", "VpcConfig"),
)
_DEFAULT_CONFIGURATION: Final[ApiResponse] = {
    "Architectures": ["x86_64"],
    "Description": "",
    "EphemeralStorage": {"Size": 512},
    "MemorySize": 128,
    "PackageType": "Zip",
    "Timeout": 3,
    "TracingConfig": {"Mode": "PassThrough"},
}


class LambdaApi:
    """The functions of the account and the API calls for them."""

    def __init__(self, account: AccountServices) -> None:
        """Start without functions."""
        self._account = account
        self._functions: dict[str, Function] = {}
        self.layers = LayerStore()
        self.mappings = EventSourceMappingApi(account, self._find_function)
        self.handlers: ApiHandlers = {
            "CreateFunction": self._create,
            "DeleteFunction": self._delete,
            "DeleteLayerVersion": self._delete_layer,
            "GetFunction": self._get_function,
            "GetFunctionConfiguration": lambda request: self._build_configuration(
                *self._find_function_and_qualifier(request)
            ),
            "GetLayerVersion": lambda request: self.layers.get_layer_version(self._build_layer_version_arn(request)),
            "ListFunctions": lambda _: {
                "Functions": [self._build_configuration(function, "") for function in self.list_functions()]
            },
            "ListLayers": self._list_layers,
            "ListVersionsByFunction": self._list_versions,
            "PublishLayerVersion": self._publish_layer,
            "PublishVersion": self._publish,
            "UpdateFunctionCode": self._update_code,
            "UpdateFunctionConfiguration": self._update_config,
            **self.mappings.handlers,
            **AliasApi(self._find_function).handlers,
            **InvocationApi(self._find_function).handlers,
        }

    def list_functions(self) -> list[Function]:
        """Return all functions, by name."""
        return [function for _, function in sorted(self._functions.items())]

    def get_function(self, name: str) -> Function:
        """Return the function with the name *name*.

        Raises:
            ApiError: there is no such function.
        """
        if name not in self._functions:
            text = f"Function not found: {self._build_arn(f'function:{name}')}"
            raise ApiError("ResourceNotFoundException", text, HTTP_NOT_FOUND)
        return self._functions[name]

    def _find_function(self, reference: str) -> tuple[Function, str]:
        name, qualifier = parse_function_name(reference)
        return self.get_function(name), qualifier

    def _find_function_and_qualifier(self, request: ApiDict) -> tuple[Function, str]:
        function, qualifier = self._find_function(request["FunctionName"])
        return function, qualifier or request.get("Qualifier", "")

    def _build_arn(self, name: str) -> str:
        return f"arn:aws:lambda:{self._account.region}:{self._account.account_id}:{name}"

    def _load_code(self, request: ApiDict) -> bytes:
        if "ZipFile" in request:
            return bytes(request["ZipFile"])
        s3 = self._account.get_client("s3")
        try:
            return bytes(s3.get_object(Bucket=request["S3Bucket"], Key=request["S3Key"])["Body"].read())
        except (s3.exceptions.NoSuchKey, s3.exceptions.NoSuchBucket) as error:
            message = f"Error occurred while GetObject. S3 Error Code: {error.response['Error']['Code']}."
            raise ApiError("InvalidParameterValueException", message) from error

    def _create(self, request: ApiDict) -> ApiResponse:
        name = request["FunctionName"]
        if name in self._functions:
            raise ApiError("ResourceConflictException", f"Function already exist: {name}", HTTP_CONFLICT)
        settings = {
            key: request[key] for key in (*_CONFIGURATION_FIELDS, "Architectures", "PackageType") if key in request
        }
        config = self._validate_config(
            {**_DEFAULT_CONFIGURATION, **settings, "Layers": list(request.get("Layers", ()))}
        )
        latest = FunctionVersion(number=LATEST_QUALIFIER, config=config, code=self._load_code(request["Code"]))
        function = Function(name, self._build_arn(f"function:{name}"), latest)
        function.tags = dict(request.get("Tags", {}))
        self._functions[name] = function
        return self._build_configuration(function, "")

    def _validate_config(self, config: ApiResponse) -> ApiResponse:
        for arn in config["Layers"]:
            self.layers.get_layer_version(arn)
        role = config["Role"].rpartition("/")[2]
        iam = self._account.get_client("iam")
        try:
            iam.get_role(RoleName=role)
        except iam.exceptions.NoSuchEntityException as error:
            message = "The role defined for the function cannot be assumed by Lambda."
            raise ApiError("InvalidParameterValueException", message) from error
        return config

    def _update_code(self, request: ApiDict) -> ApiResponse:
        function, _ = self._find_function(request["FunctionName"])
        config = {
            **function.latest.config,
            **({"Architectures": request["Architectures"]} if "Architectures" in request else {}),
        }
        function.latest = FunctionVersion(number=LATEST_QUALIFIER, config=config, code=self._load_code(request))
        return self._build_configuration(function, "")

    def _update_config(self, request: ApiDict) -> ApiResponse:
        function, _ = self._find_function(request["FunctionName"])
        settings = {key: request[key] for key in (*_CONFIGURATION_FIELDS, "Layers") if key in request}
        config = self._validate_config({**function.latest.config, **settings})
        function.latest = msgspec.structs.replace(function.latest, config=config)
        return self._build_configuration(function, "")

    def _delete(self, request: ApiDict) -> ApiResponse:
        function, qualifier = self._find_function_and_qualifier(request)
        if not qualifier:
            del self._functions[function.name]
            return {}
        function.get_version(qualifier)
        if alias_names := function.find_aliases_of_version(qualifier):
            message = f"Cannot delete version {qualifier}: aliases {', '.join(alias_names)} lead to it"
            raise ApiError("ResourceConflictException", message, HTTP_CONFLICT)
        function.version_by_number.pop(qualifier, None)
        return {}

    def _build_configuration(self, function: Function, qualifier: str) -> ApiResponse:
        version = function.get_version(qualifier)
        arn = f"{function.arn}:{qualifier}" if qualifier else function.arn
        layers = [{"Arn": layer_arn} for layer_arn in version.config["Layers"]]
        default_logging = {"LogFormat": "Text", "LogGroup": f"/aws/lambda/{function.name}"}
        return {
            **version.config,
            "CodeSha256": version.sha256,
            "CodeSize": len(version.code),
            "FunctionArn": arn,
            "FunctionName": function.name,
            "LastModified": self._account.clock.get_time().isoformat(),
            "LastUpdateStatus": "Successful",
            "Layers": layers,
            "LoggingConfig": {**default_logging, **version.config.get("LoggingConfig", {})},
            "State": "Active",
            "Version": version.number,
        }

    def _get_function(self, request: ApiDict) -> ApiResponse:
        function, qualifier = self._find_function_and_qualifier(request)
        reserved = {"Concurrency": {"ReservedConcurrentExecutions": function.reserved_concurrency}}
        return {
            "Configuration": self._build_configuration(function, qualifier),
            "Code": {"RepositoryType": "S3"},
            "Tags": function.tags,
        } | (reserved if function.reserved_concurrency is not None else {})

    def _list_versions(self, request: ApiDict) -> ApiResponse:
        function, _ = self._find_function(request["FunctionName"])
        numbers = sorted(function.version_by_number, key=int)
        return {"Versions": [self._build_configuration(function, number) for number in (LATEST_QUALIFIER, *numbers)]}

    def _publish(self, request: ApiDict) -> ApiResponse:
        function, _ = self._find_function(request["FunctionName"])
        if request.get("CodeSha256") not in (None, function.latest.sha256):
            raise ApiError("InvalidParameterValueException", "CodeSHA256 is different from current CodeSHA256")
        return self._build_configuration(function, function.publish_version(request.get("Description", "")).number)

    def _publish_layer(self, request: ApiDict) -> ApiResponse:
        fields = ("CompatibleArchitectures", "CompatibleRuntimes", "Description", "LicenseInfo")
        description = {key: request[key] for key in fields if key in request}
        return self.layers.publish_layer_version(
            self._build_arn(f"layer:{request['LayerName']}"), description, self._load_code(request["Content"])
        )

    def _build_layer_version_arn(self, request: ApiDict) -> str:
        return f"{self._build_arn('layer:' + request['LayerName'])}:{request['VersionNumber']}"

    def _delete_layer(self, request: ApiDict) -> ApiResponse:
        self.layers.version_by_arn.pop(self._build_layer_version_arn(request), None)
        return {}

    def _list_layers(self, request: ApiDict) -> ApiResponse:
        del request
        layer_by_arn = {layer["LayerArn"]: layer for layer in self.layers.version_by_arn.values()}
        return {
            "Layers": [
                {"LayerName": arn.rpartition(":")[2], "LayerArn": arn, "LatestMatchingVersion": layer}
                for arn, layer in sorted(layer_by_arn.items())
            ]
        }
