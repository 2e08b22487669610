"""CodeDeploy's applications, configurations and groups, which are only kept; `kinds.aliases` deploys by them."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from sim.http.protocol import ApiError
from sim.http.queries import Wire

Answer: TypeAlias = dict[str, Any]


class CodeDeploy:
    """All of the account's, by name."""

    def __init__(self) -> None:
        """Begin without any."""
        self._applications: dict[str, Answer] = {}
        self._configs: dict[str, Answer] = {}
        self._groups: dict[tuple[str, str], Answer] = {}
        self.handlers: Mapping[str, Callable[[Wire], Answer]] = {
            "CreateApplication": self._create_application,
            "CreateDeploymentConfig": self._create_config,
            "CreateDeploymentGroup": self._create_group,
            "DeleteApplication": self._delete_application,
            "DeleteDeploymentConfig": self._delete_config,
            "DeleteDeploymentGroup": self._delete_group,
            "GetDeploymentConfig": self._config,
            "GetDeploymentGroup": lambda said: {"deploymentGroupInfo": self._group(said)},
            "ListApplications": lambda _: {"applications": sorted(self._applications)},
            "ListDeploymentConfigs": lambda _: {"deploymentConfigsList": sorted(self._configs)},
            "ListDeploymentGroups": self._list_groups,
            "UpdateDeploymentGroup": self._update_group,
        }

    def _create_application(self, said: Wire) -> Answer:
        name = said["applicationName"]
        if name in self._applications:
            raise ApiError("ApplicationAlreadyExistsException", f"Application already exists: {name}")
        self._applications[name] = dict(said)
        return {"applicationId": name}

    def _delete_application(self, said: Wire) -> Answer:
        name = said["applicationName"]
        self._applications.pop(name, None)
        self._groups = {key: one for key, one in self._groups.items() if key[0] != name}
        return {}

    def _create_config(self, said: Wire) -> Answer:
        name = said["deploymentConfigName"]
        if name in self._configs:
            text = f"Deployment configuration already exists: {name}"
            raise ApiError("DeploymentConfigAlreadyExistsException", text)
        self._configs[name] = dict(said)
        return {"deploymentConfigId": name}

    def _config(self, said: Wire) -> Answer:
        name = said["deploymentConfigName"]
        if name not in self._configs:
            text = f"No Deployment Configuration found for name: {name}"
            raise ApiError("DeploymentConfigDoesNotExistException", text)
        return {"deploymentConfigInfo": self._configs[name]}

    def _delete_config(self, said: Wire) -> Answer:
        name = said["deploymentConfigName"]
        if any(one.get("deploymentConfigName") == name for one in self._groups.values()):
            raise ApiError("DeploymentConfigInUseException", f"{name} is in use")
        self._configs.pop(name, None)
        return {}

    def _create_group(self, said: Wire) -> Answer:
        key = said["applicationName"], said["deploymentGroupName"]
        if said["applicationName"] not in self._applications:
            raise ApiError("ApplicationDoesNotExistException", f"No application found for name: {key[0]}")
        if key in self._groups:
            raise ApiError("DeploymentGroupAlreadyExistsException", f"Deployment group already exists: {key[1]}")
        self._groups[key] = dict(said)
        return {"deploymentGroupId": key[1]}

    def _group(self, said: Wire) -> Answer:
        key = said["applicationName"], said.get("deploymentGroupName") or said["currentDeploymentGroupName"]
        if key not in self._groups:
            text = f"No Deployment Group found for name: {key[1]}"
            raise ApiError("DeploymentGroupDoesNotExistException", text)
        return self._groups[key]

    def _update_group(self, said: Wire) -> Answer:
        self._group(said).update({key: value for key, value in said.items() if key != "currentDeploymentGroupName"})
        return {}

    def _delete_group(self, said: Wire) -> Answer:
        self._groups.pop((said["applicationName"], said["deploymentGroupName"]), None)
        return {}

    def _list_groups(self, said: Wire) -> Answer:
        application = said["applicationName"]
        names = sorted(group for owner, group in self._groups if owner == application)
        return {"applicationName": application, "deploymentGroups": names}
