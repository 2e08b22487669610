"""Execution of CloudFormation requests: install, upgrade, remove."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from shared.errors import Fault
from shared.installer.cloudformation import CloudFormationRequest, Status, build_response
from shared.installer.external_objects import check_external_objects
from shared.installer.installer import Installer, InstallRefused
from shared.installer.manifests import parse_manifests
from shared.installer.uninstall import check_profiles_unused, delete_node_resources, resume_launches
from shared.ports.world import World
from shared.report.log import log

INSTALL_TIMEOUT: Final = timedelta(minutes=3)
"""How long to retry while the API server denies access or does not respond."""
RESPONSE_TIME_RESERVE: Final = timedelta(seconds=30)
"""Time reserved for the response: without one, CloudFormation waits for an hour."""


def handle_request(request: CloudFormationRequest, world: World, wait: Callable[[timedelta], None]) -> bytes:
    """Execute *request*, log the result, and return the response for CloudFormation."""
    try:
        message = "; ".join(_execute_request(request, world, wait))
    except (Fault, InstallRefused) as error:
        return _log_and_build_response(request, world, "FAILED", str(error))
    return _log_and_build_response(request, world, "SUCCESS", message)


def _log_and_build_response(request: CloudFormationRequest, world: World, status: Status, message: str) -> bytes:
    fields = {
        "function": "installer",
        "installer": request.resource_properties.part,
        "request": request.request_type,
        "status": status,
    }
    log("INFO" if status == "SUCCESS" else "ERROR", message or "no changes", world, fields)
    return build_response(request, status, message)


def _execute_request(
    request: CloudFormationRequest, world: World, wait: Callable[[timedelta], None]
) -> tuple[str, ...]:
    properties, is_delete = request.resource_properties, request.request_type == "Delete"
    purge = properties.on_destroy == "purge"
    time_limit = world.time_left() - RESPONSE_TIME_RESERVE if world.time_left is not None else INSTALL_TIMEOUT
    if properties.part == "emptied":
        if not is_delete or properties.on_destroy == "abandon":
            return ()
        object_remover = _build_installer(world, b"[]", wait, time_limit)
        return (
            delete_node_resources(object_remover)
            if purge
            else check_profiles_unused(object_remover, properties.profiles)
        )
    manifests_json = world.read_packaged_file(properties.manifests) if world.read_packaged_file is not None else b"[]"
    is_external = properties.cluster_objects == "external"
    manifests_json = b"[]" if is_external and is_delete else manifests_json
    installer = _build_installer(world, manifests_json, wait, min(INSTALL_TIMEOUT, time_limit))
    if is_delete:
        messages = installer.remove(purge=purge)
    else:
        is_new = request.request_type == "Create"
        messages = check_external_objects(installer, is_new=is_new) if is_external else installer.install()
    resume_launches(installer)
    return messages


def _build_installer(
    world: World, manifests_json: bytes, wait: Callable[[timedelta], None], time_limit: timedelta
) -> Installer:
    return Installer(
        kube=world.kube,
        manifests=parse_manifests(manifests_json),
        clock=world.clock,
        wait=wait,
        deadline=world.clock() + time_limit,
    )
