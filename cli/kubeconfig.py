"""A cluster as `kubectl` reaches it: a kubeconfig, its contexts, certificates, tokens and exec plugins. Reads only."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from kubernetes.client import ApiClient, Configuration
from kubernetes.config import ConfigException
from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger
from urllib3 import BaseHTTPResponse, PoolManager, Timeout
from urllib3.exceptions import HTTPError
from yaml import YAMLError

from cli.files import InputError
from shared.errors import InvariantViolated, Unreachable
from shared.kube.answers import document, fault_from, is_success
from shared.kube.paths import list_path
from shared.kube.proxies import proxy_headers
from shared.ports import Changes

DEFAULT: Final = "~/.kube/config"
_TIMEOUT: Final = Timeout(connect=10, read=60)


class Reached(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster, and what the kubeconfig calls it."""

    kube: "ReadOnlyKube"
    context: str
    cluster: str
    """Name of the entry; EKS writes the ARN there."""
    server: str


class ReadOnlyKube:
    """`shared.ports.Kube` of whatever a kubeconfig describes, as far as it reads; the rest is refused here."""

    def __init__(self, configuration: Configuration) -> None:
        """Open no connection yet."""
        self._configuration = configuration
        self._pool: PoolManager = ApiClient(configuration).rest_client.pool_manager

    def list(
        self,
        path: str,
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 500,
        continue_token: str = "",
    ) -> bytes:
        """GET one page of a collection."""
        page = list_path(
            path,
            label_selector=label_selector,
            field_selector=field_selector,
            limit=limit,
            continue_token=continue_token,
        )
        return self.read(page)

    def read(self, path: str) -> bytes:
        """GET."""
        call = f"GET {path}"
        headers = {"Accept": "application/json"}
        for setting in self._configuration.auth_settings().values():
            headers[setting["key"]] = setting["value"]
        try:
            response: BaseHTTPResponse = self._pool.request(
                "GET", self._configuration.host + path, headers=headers, timeout=_TIMEOUT, retries=False
            )
        except (HTTPError, OSError) as error:
            raise Unreachable(f"{call}: {error}") from error
        if not is_success(response.status):
            raise fault_from(call, response.status, response.data, response.headers)
        return document(call, response.data)

    def watch(self, path: str, *, since: str, field_selector: str = "") -> Callable[[], Changes]:
        """Refuse: a plan looks once."""
        raise InvariantViolated(f"WATCH {path} since {since} {field_selector}: a plan only lists")

    def create(self, path: str, body: bytes) -> bytes:
        """Refuse."""
        raise InvariantViolated(f"POST {path}, {len(body)} bytes: a plan writes nothing")

    def patch(self, path: str, body: bytes) -> bytes:
        """Refuse."""
        raise InvariantViolated(f"PATCH {path}, {len(body)} bytes: a plan writes nothing")

    def delete(self, path: str, body: bytes = b"") -> None:
        """Refuse."""
        raise InvariantViolated(f"DELETE {path}, {len(body)} bytes: a plan writes nothing")


def reach(kubeconfig: str, context: str) -> Reached:
    """Answer the cluster of *context* ("": the current one) in *kubeconfig* ("": $KUBECONFIG, else the usual place).

    An exec plugin is run, as kubectl would. The kubeconfig is not changed.

    Raises:
        InputError: there is no such context, or it gives no way in.
    """
    where = kubeconfig or os.environ.get("KUBECONFIG") or DEFAULT
    files = [Path(one).expanduser() for one in where.split(os.pathsep) if one]
    if not any(one.exists() for one in files):
        raise InputError(f"{where}: no such kubeconfig: name one with --kubeconfig, or `aws eks update-kubeconfig`")
    said = f"{where}: context {context or '(the current one)'}"
    configuration = Configuration()
    try:
        with _complaints(said):
            loader = KubeConfigLoader(
                config_dict=KubeConfigMerger(os.pathsep.join(map(str, files))).config,
                active_context=context or None,
                config_base_path=None,
            )
            loader.load_and_set(configuration)
            if configuration.proxy:
                configuration.proxy_headers = proxy_headers(configuration.proxy)
    except ConfigException as error:
        words = str(error).removeprefix("Invalid kube-config file. ")
        raise InputError(f"{said}: {words.rstrip('.')}: `kubectl config get-contexts` shows what there is") from None
    except (OSError, UnicodeDecodeError, ValueError, TypeError, YAMLError) as error:
        raise InputError(f"{said}: {' '.join(str(error).split())}: see if kubectl can read it") from None
    known: dict[str, Any] = loader.current_context
    return Reached(
        kube=ReadOnlyKube(configuration),
        context=str(known["name"]),
        cluster=str(known["context"]["cluster"]),
        server=str(configuration.host),
    )


@contextmanager
def _complaints(said: str) -> Iterator[None]:
    """Let what the client library only logs be an error: without its credentials everything would be refused later.

    Raises:
        InputError: it complained.
    """
    heard: list[str] = []

    class Hearing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    hearing, root = Hearing(logging.ERROR), logging.getLogger()
    root.addHandler(hearing)
    try:
        yield
    finally:
        root.removeHandler(hearing)
    if heard:
        raise InputError(f"{said}: {'; '.join(heard)}: run the command of users[].user.exec by hand")
