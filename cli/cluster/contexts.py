"""Kubeconfig files, and the contexts in them."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from kubernetes.config import ConfigException
from kubernetes.config.kube_config import ConfigNode, KubeConfigMerger
from yaml import YAMLError

from cli.terminal.errors import InputError

T = TypeVar("T")

DEFAULT_KUBECONFIG: Final = "~/.kube/config"


def list_contexts(kubeconfig: str) -> list[str]:
    """Return the names of the contexts in a kubeconfig.

    Raises:
        InputError: The kubeconfig does not exist or cannot be read.
    """
    return _read_merged(kubeconfig, lambda merged: [str(context["name"]) for context in merged["contexts"]]) or []


def get_current_context(kubeconfig: str) -> str:
    """Return the name of the current context; "" if there is none.

    Raises:
        InputError: The kubeconfig does not exist or cannot be read.
    """
    return _read_merged(kubeconfig, lambda merged: str(merged.safe_get("current-context") or "")) or ""


def _read_merged(kubeconfig: str, select: Callable[[ConfigNode], T]) -> T | None:
    """Return what *select* takes from the merged files; None if they are empty.

    Raises:
        InputError: The kubeconfig does not exist or cannot be read.
    """
    location, files = list_kubeconfig_files(kubeconfig)
    try:
        merged = KubeConfigMerger(os.pathsep.join(map(str, files))).config
        return None if merged is None else select(merged)
    except (ConfigException, OSError, ValueError, TypeError, YAMLError) as error:
        raise InputError(f"{location}: {' '.join(str(error).split())}: check the file with kubectl") from None


def list_kubeconfig_files(kubeconfig: str) -> tuple[str, list[Path]]:
    """Return the kubeconfig's location, for messages, and its files.

    Raises:
        InputError: None of the files exists.
    """
    location = kubeconfig or os.environ.get("KUBECONFIG") or DEFAULT_KUBECONFIG
    files = [Path(path).expanduser() for path in location.split(os.pathsep) if path]
    if not any(path.exists() for path in files):
        raise InputError(f"{location}: no such kubeconfig: add --kubeconfig FILE, or run `aws eks update-kubeconfig`")
    return location, files
