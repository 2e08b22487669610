"""CodeDeploy applications, configurations and deployment groups: stored for `resource_types.alias_deployments`."""

from sim.aws_http.protocol import ApiDict, ApiError, ApiHandlers, ApiResponse


class CodeDeployApi:
    """The CodeDeploy resources of the account, by name."""

    def __init__(self) -> None:
        """Start without resources."""
        self._applications: dict[str, ApiResponse] = {}
        self._configs: dict[str, ApiResponse] = {}
        self._groups: dict[tuple[str, str], ApiResponse] = {}
        self.handlers: ApiHandlers = {
            "CreateApplication": self._create_application,
            "CreateDeploymentConfig": self._create_config,
            "CreateDeploymentGroup": self._create_group,
            "DeleteApplication": self._delete_application,
            "DeleteDeploymentConfig": self._delete_config,
            "DeleteDeploymentGroup": self._delete_group,
            "GetDeploymentConfig": self._get_config,
            "GetDeploymentGroup": lambda request: {"deploymentGroupInfo": self._get_group(request)},
            "ListApplications": lambda _: {"applications": sorted(self._applications)},
            "ListDeploymentConfigs": lambda _: {"deploymentConfigsList": sorted(self._configs)},
            "ListDeploymentGroups": self._list_groups,
            "UpdateDeploymentGroup": self._update_group,
        }

    def _create_application(self, request: ApiDict) -> ApiResponse:
        name = request["applicationName"]
        if name in self._applications:
            raise ApiError("ApplicationAlreadyExistsException", f"Application already exists: {name}")
        self._applications[name] = dict(request)
        return {"applicationId": name}

    def _delete_application(self, request: ApiDict) -> ApiResponse:
        name = request["applicationName"]
        self._applications.pop(name, None)
        self._groups = {key: group for key, group in self._groups.items() if key[0] != name}
        return {}

    def _create_config(self, request: ApiDict) -> ApiResponse:
        name = request["deploymentConfigName"]
        if name in self._configs:
            message = f"Deployment configuration already exists: {name}"
            raise ApiError("DeploymentConfigAlreadyExistsException", message)
        self._configs[name] = dict(request)
        return {"deploymentConfigId": name}

    def _get_config(self, request: ApiDict) -> ApiResponse:
        name = request["deploymentConfigName"]
        if name not in self._configs:
            message = f"No Deployment Configuration found for name: {name}"
            raise ApiError("DeploymentConfigDoesNotExistException", message)
        return {"deploymentConfigInfo": self._configs[name]}

    def _delete_config(self, request: ApiDict) -> ApiResponse:
        name = request["deploymentConfigName"]
        if any(group.get("deploymentConfigName") == name for group in self._groups.values()):
            raise ApiError("DeploymentConfigInUseException", f"{name} is in use")
        self._configs.pop(name, None)
        return {}

    def _create_group(self, request: ApiDict) -> ApiResponse:
        key = request["applicationName"], request["deploymentGroupName"]
        if request["applicationName"] not in self._applications:
            raise ApiError("ApplicationDoesNotExistException", f"No application found for name: {key[0]}")
        if key in self._groups:
            raise ApiError("DeploymentGroupAlreadyExistsException", f"Deployment group already exists: {key[1]}")
        self._groups[key] = dict(request)
        return {"deploymentGroupId": key[1]}

    def _get_group(self, request: ApiDict) -> ApiResponse:
        key = request["applicationName"], request.get("deploymentGroupName") or request["currentDeploymentGroupName"]
        if key not in self._groups:
            message = f"No Deployment Group found for name: {key[1]}"
            raise ApiError("DeploymentGroupDoesNotExistException", message)
        return self._groups[key]

    def _update_group(self, request: ApiDict) -> ApiResponse:
        self._get_group(request).update(
            {key: value for key, value in request.items() if key != "currentDeploymentGroupName"}
        )
        return {}

    def _delete_group(self, request: ApiDict) -> ApiResponse:
        self._groups.pop((request["applicationName"], request["deploymentGroupName"]), None)
        return {}

    def _list_groups(self, request: ApiDict) -> ApiResponse:
        application = request["applicationName"]
        names = sorted(group for owner, group in self._groups if owner == application)
        return {"applicationName": application, "deploymentGroups": names}
