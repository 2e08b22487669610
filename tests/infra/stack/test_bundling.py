"""Contents of the layer and of Joiner's own asset: as commands, and built as they are deployed."""

import ast
import re
import shutil
import subprocess
import sys
import types
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import kubernetes.client
import msgspec
import pytest

from infra.functions import bundling
from infra.functions import kubernetes_client_trimming as trimming
from tests.benchmarks.bench_cold_start import ENVIRONMENT, FUNCTIONS, PROBE_SCRIPT, measure_cold_start
from tests.infra.installations import build_event

MAX_BUNDLE_BYTES = 15_000_000
Run = Callable[..., subprocess.CompletedProcess[str]]
REQUEST_SCRIPT = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

sys.path[:0] = sys.argv[1:]
from shared.kubernetes.client import KubeClient

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}" if self.headers["Authorization"] == "Bearer secret" else b"")

    do_POST = do_GET

server = HTTPServer(("127.0.0.1", 0), Handler)
Thread(target=server.serve_forever, daemon=True).start()
kube = KubeClient(f"http://127.0.0.1:{server.server_port}", token=lambda: "secret")
assert kube.read("/api/v1/nodes/a") == kube.create("/api/v1/nodes", b"{}") == b"{}"
print(*sorted(sys.modules))
"""


def test_layer_dependencies_are_pinned_to_the_tested_versions() -> None:
    environment = (bundling.ROOT / "requirements.lock").read_text().splitlines()
    assert {line for line in bundling.LOCK_FILE.read_text().splitlines() if "==" in line} < set(environment)


def test_excluded_libraries_are_removed_from_the_lock_file_with_their_hashes() -> None:
    lock_text = bundling.LOCK_FILE.read_text()
    names = re.compile(r"^([a-z0-9-]+)==", flags=re.MULTILINE)
    filtered_text = bundling.filter_lock_entries(lock_text)
    assert set(names.findall(lock_text)) - set(names.findall(filtered_text)) == (
        bundling.NO_FEATURES.list_excluded_libraries()
    )
    assert filtered_text.count("--hash") < lock_text.count("--hash")
    assert all(entry.count("==") == 1 for entry in re.split(r"^(?=[a-z])", filtered_text, flags=re.MULTILINE) if entry)


def test_tzdata_is_included_in_the_layer() -> None:
    assert re.search(
        r"^tzdata==.* \\$", bundling.filter_lock_entries(bundling.LOCK_FILE.read_text()), flags=re.MULTILINE
    )


def test_layer_is_installed_from_hashed_wheels_for_the_lambda_platform(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, check, **_: commands.append(command) if check else None)
    assert bundling.UvBundling("").try_bundle(str(tmp_path), image="unused")
    [[python, *options]] = commands
    assert python == sys.executable
    assert {"--require-hashes", "--only-binary=:all:", f"--target={tmp_path}/python"} < set(options)
    assert {"--python-version=3.13", "--python-platform=aarch64-manylinux_2_28"} < set(options)


def test_own_code_is_bundled_without_local_bytecode(tmp_path: Path) -> None:
    assert bundling.OwnBundling("", {"prices.json": b"{}"}).try_bundle(str(tmp_path), image="unused")
    assert {entry.name for entry in tmp_path.iterdir()} == {"functions", "shared", "prices.json"}
    assert (tmp_path / "shared" / "aws" / "ec2" / "branches.json").exists()
    assert not list(tmp_path.rglob("__pycache__"))


def make_uv(*results: tuple[str, int]) -> tuple[list[list[str]], Run]:
    """Return the list of its commands and a fake uv with *results*: text and status; the last one repeats forever."""
    commands: list[list[str]] = []

    def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        environment = options["env"]
        assert isinstance(environment, dict)
        assert environment["PYENV_VERSION"] == "3.13"
        text, status = results[min(len(commands), len(results) - 1)]
        commands.append(command)
        return subprocess.CompletedProcess(command, returncode=status, stdout=text, stderr="")

    return commands, run


@pytest.mark.parametrize(
    ("results", "expected_path", "verbs"),
    [
        ([("/usr/bin/python3.13\n", 0)], "/usr/bin/python3.13", ["find"]),
        ([("", 2), ("Installed", 0), ("/managed/python3.13\n", 0)], "/managed/python3.13", ["find", "install", "find"]),
        ([("", 2)], "", ["find", "install"]),
    ],
)
def test_python_of_the_lambda_version_is_found_or_installed_or_reported_missing(
    results: list[tuple[str, int]],
    expected_path: str,
    verbs: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    commands, run = make_uv(*results)
    monkeypatch.setattr(subprocess, "run", run)
    assert bundling.find_interpreter() == expected_path
    assert [command[4] for command in commands] == verbs
    assert {command[-1] for command in commands} == {"3.13"}
    assert ("packaged without bytecode" in capsys.readouterr().err) is not bool(expected_path)


@pytest.mark.parametrize("python", ["/usr/bin/python3.13", ""])
def test_bytecode_is_compiled_only_with_the_lambda_python_version(
    python: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, check: commands.append(command) if check else None)
    bundling.compile_bytecode(tmp_path, python)
    assert [command[:3] for command in commands] == ([[python, "-m", "compileall"]] if python else [])


def test_bytecode_does_not_depend_on_the_folder(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text("def f() -> frozenset[str]:\n    return frozenset({'a', 'b'})\n")
        bundling.compile_bytecode(tmp_path / name, sys.executable)
    [first], [second] = ([*(tmp_path / name / "__pycache__").iterdir()] for name in ("one", "two"))
    assert first.read_bytes() == second.read_bytes()


def test_unused_files_are_pruned_from_the_layer(tmp_path: Path) -> None:
    for name in (
        "botocore/data/ec2/2014-10-01",
        "botocore/data/ec2/2016-11-15",
        "botocore/data/chime",
        "bin",
        "boto3/data",
        "msgspec",
    ):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "botocore" / "data" / "endpoints.json").touch()
    bundling.prune_dependencies(tmp_path)
    remaining = list_paths(tmp_path)
    newest = {"botocore/data/ec2", "botocore/data/ec2/2016-11-15"}
    assert remaining == {"boto3", "botocore", "botocore/data", *newest, "botocore/data/endpoints.json", "msgspec"}


def list_paths(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_only_modules_of_raw_requests_are_kept_of_the_kubernetes_client(tmp_path: Path) -> None:
    for name in ("client/rest.py", "client/api/core_v1_api.py", "client/models/v1_pod.py", "aio/__init__.py"):
        (tmp_path / "kubernetes" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "kubernetes" / name).write_text("import os")
    (tmp_path / "kubernetes" / "utils").mkdir()
    (tmp_path / "kubernetes" / "utils" / "retry.py").touch()
    (tmp_path / "kubernetes" / "__init__.py").write_text("from . import client, dynamic")
    bundling.prune_dependencies(tmp_path)
    module_paths = {"client", "client/rest.py", "utils", "utils/__init__.py", "utils/retry.py", "__init__.py"}
    assert list_paths(tmp_path / "kubernetes") == module_paths
    assert not (tmp_path / "kubernetes" / "__init__.py").read_text()
    assert (tmp_path / "kubernetes" / "client" / "rest.py").read_text() == "import os"


def test_pydantic_replacement_has_every_name_that_the_kubernetes_client_imports() -> None:
    package = Path(kubernetes.client.__file__).parents[1]
    trees = [ast.parse((package / name).read_text()) for name in trimming.KEPT_MODULES]
    imports = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = {alias.name for node in imports if node.module == "pydantic" for alias in node.names}
    module = types.ModuleType("pydantic", "")
    exec(trimming.PYDANTIC_REPLACEMENT, vars(module))  # noqa: S102 - the text of a module
    assert names == {name for name in vars(module) if not name.startswith("_")}


def test_every_called_aws_service_model_is_in_the_layer() -> None:
    sources = "".join(source.read_text() for source in (bundling.ROOT / "shared" / "aws").rglob("*.py"))
    service_names = set(re.findall(r"\.(?:get_retrying_client|get_single_attempt_client)\(\"([a-z0-9-]+)\"", sources))
    assert len(service_names) >= 6
    assert service_names <= set(bundling.KEPT_SERVICES)


@pytest.fixture(scope="module")
def asset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both halves as they are deployed, with bytecode if a Python of Lambda's version is installed here."""
    folder = tmp_path_factory.mktemp("asset")
    python = bundling._run_uv_python("find", "--no-python-downloads")  # noqa: SLF001 - nothing is fetched for a test
    assert bundling.UvBundling(python).try_bundle(str(folder / "layer"))
    (folder / "own").mkdir()
    assert bundling.OwnBundling(python, {}).try_bundle(str(folder / "own"))
    return folder


def measure_zip_bytes(folder: Path) -> int:
    path = folder.with_suffix(".zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, file.relative_to(folder))
    return path.stat().st_size


def test_bundle_with_bytecode_stays_under_the_size_limit(asset: Path) -> None:
    assert measure_zip_bytes(asset / "layer") + measure_zip_bytes(asset / "own") < MAX_BUNDLE_BYTES


def test_compiled_libraries_in_the_bundle_are_for_linux_arm64(asset: Path) -> None:
    compiled = [library.name for library in asset.rglob("*.so")]
    assert any(name.startswith("_core.") for name in compiled)
    assert {name.rpartition(".cpython-")[2] for name in compiled} == {"313-aarch64-linux-gnu.so"}


def test_every_function_import_resolves_to_a_file_in_the_bundle(asset: Path) -> None:
    """Lazy ones too; what only a type checker imports is not looked at.

    `cel` evaluates the rules of CRDs for the command line; an import contract keeps it out of the functions.
    """
    roots = [asset / "own", asset / "layer" / "python"]
    imported_names = {
        name
        for source in sorted((asset / "own").rglob("*.py"))
        for name in iterate_imports(ast.parse(source.read_text()))
    }
    libraries = {"boto3.session", "aws_lambda_powertools.metrics", "msgspec", "urllib3"}
    assert libraries | {"kubernetes.client.api_client"} <= imported_names
    assert [name for name in sorted(imported_names) if not can_import(name, roots)] == ["cel"]


def iterate_imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        yield from iterate_imports(node)


def can_import(name: str, roots: list[Path]) -> bool:
    if name.partition(".")[0] in sys.stdlib_module_names:
        return True
    parts = name.split(".")
    return any(
        root.joinpath(*parts).is_dir() or list(root.joinpath(*parts[:-1]).glob(f"{parts[-1]}.*")) for root in roots
    )


def list_import_folders(asset: Path, folder: Path) -> list[str]:
    """Return the folders of the bundle, after *folder* with its compiled modules for this platform.

    The local ones, locked in the same version, replace those for Lambda.
    """
    compiled = {library.relative_to(asset / "layer" / "python").parts[0] for library in asset.rglob("*.so")}
    assert compiled == {"msgspec"}
    shutil.copytree(Path(msgspec.__file__).parent, folder / "msgspec")
    return [str(folder), str(asset / "own"), str(asset / "layer" / "python")]


@pytest.mark.loopback
def test_bundled_kubernetes_client_sends_requests_without_importing_models(asset: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-S", "-B", "-c", REQUEST_SCRIPT, *list_import_folders(asset, tmp_path)]
    process = subprocess.run(command, check=True, capture_output=True, text=True, env={})
    kept_names = [
        name.removesuffix(".py").replace("/", ".").removesuffix(".__init__") for name in trimming.KEPT_MODULES
    ]
    imported_names = set(process.stdout.split())
    assert {name for name in imported_names if name.startswith("kubernetes.")} == {
        *(f"kubernetes.{name}" for name in kept_names),
        "kubernetes.utils",
    }
    assert not {"annotated_types", "pydantic_core", "requests", "websocket", "yaml"} & imported_names


def test_every_function_starts_with_only_the_bundle(asset: Path, tmp_path: Path) -> None:
    function_names = {handler_path.parent.name for handler_path in (asset / "own" / "functions").glob("*/handler.py")}
    assert function_names == {*FUNCTIONS, "installer"}
    folders = list_import_folders(asset, tmp_path)
    for name in FUNCTIONS:
        measure_cold_start(sys.executable, name, *map(Path, folders))
    ordered = PROBE_SCRIPT.replace('{"source": "schedule"}', repr(build_event("Create", {"Part": "installed"})))
    ordered = ordered.replace("aws_request_id =", "aws_request_id = log_stream_name =")
    command = [sys.executable, "-I", "-S", "-B", "-c", ordered, "installer", *folders]
    subprocess.run(command, check=True, capture_output=True, env=ENVIRONMENT)


IMPORT_SCRIPT = """
import sys
name, *folders = sys.argv[1:]
sys.path[:0] = folders
__import__(f"functions.{name}.handler")
print(*sys.modules)
"""
HEAVY_LIBRARIES = (
    "aws_xray_sdk",
    "jinja2",
    "pydantic.main",
    "pydantic_core",
    "requests",
    "rich",
    "s3transfer.crt",
    "awscrt",
    "yaml",
)


@pytest.mark.parametrize("name", [*FUNCTIONS, "installer"])
def test_a_cold_start_imports_only_what_it_needs(name: str, asset: Path, tmp_path: Path) -> None:
    shutil.copytree(Path(msgspec.__file__).parent, tmp_path / "msgspec")
    folders = (str(tmp_path), str(asset / "own"), str(asset / "layer" / "python"))
    command = [sys.executable, "-I", "-S", "-B", "-c", IMPORT_SCRIPT, name, *folders]
    loaded = set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    assert {"boto3.session", "aws_lambda_powertools.logging.logger"} <= loaded
    assert [library for library in HEAVY_LIBRARIES if library in loaded] == []
    # The batch processor belongs to the function that returns partial failures.
    assert ("aws_lambda_powertools.utilities.batch" in loaded) is (name == "interrupt")
    assert {service for service in loaded if service.startswith("functions.")} >= {f"functions.{name}.handler"}


def test_layer_has_the_selector_library_only_with_the_setting_and_without_its_command_line(tmp_path: Path) -> None:
    lock = bundling.LOCK_FILE.read_text()
    for has_selectors in (False, True):
        entries = bundling.filter_lock_entries(
            lock, features=bundling.LayerFeatures(has_device_selectors=has_selectors)
        )
        assert ("\ncommon-expression-language==" in entries) is has_selectors
        assert "\ntyper==" not in entries
    package = tmp_path / "cel"
    package.mkdir()
    for name in ("__init__.py", "cli.py", "cel.pyi"):
        (package / name).write_text("from . import cli")
    bundling.prune_dependencies(tmp_path)
    assert sorted(path.name for path in package.iterdir()) == ["__init__.py", "cel.pyi"]
    assert (package / "__init__.py").read_text() == bundling.SELECTOR_PACKAGE
