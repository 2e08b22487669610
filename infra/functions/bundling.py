"""Bundling of the Lambda assets, without Docker.

Dependencies are a layer: arm64 wheels for the Python version of the functions, installed by uv from a lock file with
hashes. Joiner's own code is a separate asset, so that a code change does not change the layer. The cold start time
depends on the size of the layer: libraries that no function imports and AWS services that no function calls are left
out. Lambda does not keep bytecode between cold starts, so bytecode is shipped; it reduces the initialization time to 40
%. It is compiled with the Python version of the functions, which uv downloads if it is not installed.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

import jsii
import msgspec
from aws_cdk import AssetHashType, BundlingOptions, DockerImage, ILocalBundling
from aws_cdk.aws_lambda import Code

from infra.functions.kubernetes_client_trimming import (
    EMPTY_PACKAGES,
    KEPT_MODULES,
    PYDANTIC_REPLACEMENT,
    UNUSED_DEPENDENCIES,
    trim_kubernetes_client,
)

ROOT: Final = Path(__file__).resolve().parents[2]
LOCK_FILE: Final = ROOT / "requirements-lambda.lock"
PYTHON_VERSION: Final = "3.13"
"""The Python version of the functions."""
PLATFORM: Final = "aarch64-manylinux_2_28"
UV_COMMAND: Final = (sys.executable, "-m", "uv")
INSTALL_COMMAND: Final = (
    *(*UV_COMMAND, "pip", "install", "--quiet", "--no-config", "--no-deps", "--require-hashes", "--link-mode=copy"),
    *("--no-compile-bytecode", "--only-binary=:all:", "--requirements=-"),
)

OWN_PACKAGES: Final = ("functions", "shared")
KEPT_SERVICES: Final = (
    "arc-zonal-shift",
    *("dynamodb", "ec2", "eks", "events", "pricing", "s3", "savingsplans", "sns", "sqs", "ssm", "sts"),
)
"""The services kept, of four hundred in botocore, which take 26 MB."""
EXCLUDED_LIBRARIES: Final = frozenset(
    (
        *UNUSED_DEPENDENCIES,
        *("annotated-doc", "argcomplete", "markdown-it-py", "mdurl"),
        *("prompt-toolkit", "pygments", "rich", "shellingham", "typer", "wcwidth"),
    )
)
"""Libraries that only the command line imports, and their dependencies; botocore has its own certificates."""
TRACING_LIBRARIES: Final = frozenset({"aws-xray-sdk", "wrapt"})
"""Libraries that only the Tracer of Powertools imports; the layer has them if `tracing` is on."""
SELECTOR_LIBRARIES: Final = frozenset({"common-expression-language"})
"""The library that evaluates device selectors; the layer has it if `dynamic-resource-allocation` is on."""
SELECTOR_PACKAGE: Final = "from .cel import Context, Program, compile\n"
"""The package file in the layer: the original one imports the command line of the library."""
UNUSED_FOLDERS: Final = ("bin", "boto3/data", "boto3/examples")
"""Programs; boto3's resource models, which only `Session.resource` reads, and its examples."""
WITHOUT_BYTECODE_WARNING: Final = (
    f"joiner: Python {PYTHON_VERSION} was not found and could not be downloaded, so the functions are packaged without "
    f"bytecode: every cold start takes 0.3 s longer. To fix: run `uv python install {PYTHON_VERSION}` and deploy "
    "again.\n"
)


class LayerFeatures(msgspec.Struct, frozen=True, kw_only=True):
    """The features whose libraries the layer has."""

    has_tracing: bool = False
    has_device_selectors: bool = False

    def list_excluded_libraries(self) -> frozenset[str]:
        """Return the libraries that the layer does not have."""
        tracing_libraries = frozenset() if self.has_tracing else TRACING_LIBRARIES
        selector_libraries = frozenset() if self.has_device_selectors else SELECTOR_LIBRARIES
        return EXCLUDED_LIBRARIES | tracing_libraries | selector_libraries


NO_FEATURES: Final = LayerFeatures()


@jsii.implements(ILocalBundling)
class UvBundling:
    """Installs the libraries of `LOCK_FILE` into the asset."""

    def __init__(self, python: str, *, features: LayerFeatures = NO_FEATURES) -> None:
        """Compile bytecode with *python*; "" compiles none. *features* add libraries."""
        self._python, self._features = python, features

    def try_bundle(self, output_dir: str, *_args: object, **_options: object) -> bool:
        """Fill *output_dir*. A failure raises, because a result of False makes CDK use Docker."""
        install_dependencies(
            Path(output_dir) / "python", version=PYTHON_VERSION, platform=PLATFORM, features=self._features
        )
        compile_bytecode(Path(output_dir), self._python)
        return True


@jsii.implements(ILocalBundling)
class OwnBundling:
    """Copies Joiner's own code into the asset."""

    def __init__(self, python: str, more_files: Mapping[str, bytes]) -> None:
        """Add *more_files*, by name, to the code, and compile bytecode with *python*; "" compiles none."""
        self._python, self._more_files = python, more_files

    def try_bundle(self, output_dir: str, *_args: object, **_options: object) -> bool:
        """Fill *output_dir*."""
        for name in OWN_PACKAGES:
            shutil.copytree(ROOT / name, Path(output_dir) / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name, body in self._more_files.items():
            (Path(output_dir) / name).write_bytes(body)
        compile_bytecode(Path(output_dir), self._python)
        return True


def install_dependencies(target: Path, *, version: str, platform: str, features: LayerFeatures = NO_FEATURES) -> None:
    """Install the libraries of `LOCK_FILE` that are not excluded into *target*.

    The wheels are for *platform* ("": the local platform) and Python *version*. *features* add
    libraries.
    """
    target_options = (f"--python-version={version}", *((f"--python-platform={platform}",) if platform else ()))
    command = [*INSTALL_COMMAND, *target_options, f"--target={target}"]
    lock = filter_lock_entries(LOCK_FILE.read_text(), features=features)
    subprocess.run(command, check=True, input=lock, text=True)
    prune_dependencies(target)


def filter_lock_entries(lock: str, *, features: LayerFeatures = NO_FEATURES) -> str:
    """Return the text of a *lock* file without excluded libraries."""
    excluded_libraries = features.list_excluded_libraries()
    entries = re.split(r"^(?=[a-z])", lock, flags=re.MULTILINE)
    return "".join(entry for entry in entries if entry.partition("==")[0] not in excluded_libraries)


def prune_dependencies(target: Path) -> None:
    """Remove unused parts of the libraries in *target*, and of each AWS service all versions but the newest."""
    for name in UNUSED_FOLDERS:
        shutil.rmtree(target / name, ignore_errors=True)
    for folder in (target / "botocore" / "data").glob("*/"):
        versions = sorted(version_folder for version_folder in folder.glob("*/") if version_folder.is_dir())
        for old_version in versions[:-1] if folder.name in KEPT_SERVICES else ():
            shutil.rmtree(old_version)
        if folder.is_dir() and folder.name not in KEPT_SERVICES:
            shutil.rmtree(folder)
    trim_kubernetes_client(target)
    _trim_selector_library(target / "cel")


def _trim_selector_library(package: Path) -> None:
    """Remove the command line of the CEL library, which would import libraries that the layer does not have."""
    if package.is_dir():
        (package / "__init__.py").write_text(SELECTOR_PACKAGE)
        for name in ("__main__.py", "cli.py", "stdlib.py"):
            (package / name).unlink(missing_ok=True)


def find_interpreter() -> str:
    """Return the path of a Python of the functions' version, downloaded if needed; "" with a warning on failure."""
    interpreter_path = _run_uv_python("find", "--no-python-downloads") or (
        _run_uv_python("install") and _run_uv_python("find")
    )
    if not interpreter_path:
        sys.stderr.write(WITHOUT_BYTECODE_WARNING)
    return interpreter_path


def _run_uv_python(verb: str, *options: str) -> str:
    """Return the output of `uv python` *verb*, or "" if it fails.

    The version is set for pyenv as well, because its Pythons run only if the version is selected.
    """
    environment = os.environ | {"PYENV_VERSION": PYTHON_VERSION}  # noqa: TID251 - handed on, not read
    command = [*UV_COMMAND, "python", verb, *options, PYTHON_VERSION]
    result = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    return "" if result.returncode else result.stdout.strip() or result.stderr.strip()


def compile_bytecode(target: Path, python: str) -> None:
    """Compile bytecode for the sources in *target* with *python*; "" compiles none.

    The bytecode has no path of the temporary folder: equal sources give equal zip files.
    """
    if python:
        compile_all = [python, "-m", "compileall", "-q", "--invalidation-mode=unchecked-hash", "-s", str(target)]
        subprocess.run([*compile_all, str(target)], check=True)


def build_dependency_code(python: str, *, features: LayerFeatures = NO_FEATURES) -> Code:
    """Return the content of the layer, identified by the digest of its lock file and of the bundling parameters."""
    libraries = sorted(features.list_excluded_libraries())
    bundling_parameters = repr((KEPT_SERVICES, libraries, PYTHON_VERSION, PLATFORM, bool(python)))
    kubernetes_parameters = repr((KEPT_MODULES, EMPTY_PACKAGES, PYDANTIC_REPLACEMENT))
    parts = [LOCK_FILE.read_bytes(), bundling_parameters.encode(), kubernetes_parameters.encode()]
    return _build_code(UvBundling(python, features=features), parts)


def build_source_code(python: str, more_files: Mapping[str, bytes]) -> Code:
    """Return Joiner's own code (functions and shared code) with *more_files*, identified by its digest."""
    files = {str(path.relative_to(ROOT)): path.read_bytes() for path in _iterate_own_files()} | dict(more_files)
    parts = [part for name, body in sorted(files.items()) for part in (name.encode(), body)]
    return _build_code(OwnBundling(python, more_files), [*parts, repr((PYTHON_VERSION, bool(python))).encode()])


def _iterate_own_files() -> Iterator[Path]:
    for name in OWN_PACKAGES:
        yield from (path for path in (ROOT / name).rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def _build_code(bundling: ILocalBundling, parts: list[bytes]) -> Code:
    digest = sha256(b"".join(b"%d:%b" % (len(part), part) for part in parts)).hexdigest()
    options = BundlingOptions(image=DockerImage.from_registry("unused"), local=bundling)
    # The source folder is not read: the bundling writes the content of the asset.
    return Code.from_asset(
        str(ROOT / "infra"), asset_hash=digest, asset_hash_type=AssetHashType.CUSTOM, bundling=options
    )
