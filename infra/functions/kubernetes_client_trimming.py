"""The Kubernetes client in the layer: the few modules of the library that raw requests need.

The library has 75 MB, mostly generated models and APIs, and its packages import all of it: configuration loaders,
websockets and the pydantic library, of which raw requests use nothing. The layer has the modules of `KEPT_MODULES`
unchanged; two package files are empty, and pydantic is replaced by the names that these modules import from it. The
first import takes 10 ms instead of 120 ms (ADR 16).
"""

from pathlib import Path
from typing import Final

UNUSED_DEPENDENCIES: Final = (
    *("annotated-types", "certifi", "charset-normalizer", "durationpy", "idna", "oauthlib", "pydantic"),
    *("pydantic-core", "pyyaml", "requests", "requests-oauthlib", "typing-inspection", "websocket-client"),
)
"""Dependencies of the library that no kept module imports, apart from pydantic, which is replaced."""
KEPT_MODULES: Final = (
    *("client/__init__.py", "client/api_client.py", "client/api_response.py", "client/configuration.py"),
    *("client/exceptions.py", "client/models/__init__.py", "client/rest.py"),
    *("utils/_retry_base.py", "utils/keepalive.py", "utils/retry.py"),
)
"""Files of the package `kubernetes`; the packages `client` and `client.models` import their modules on first use."""
EMPTY_PACKAGES: Final = ("__init__.py", "utils/__init__.py")
"""Package files that import all their modules; in the layer, they import none."""
PYDANTIC_REPLACEMENT: Final = '''"""What the Kubernetes client imports from pydantic; raw requests do not use it."""


class BaseModel:
    """A base class without fields."""


class SecretStr:
    """A type without values."""


StrictBytes, StrictInt = bytes, int


def Field(*_arguments, **_options):
    """Describe no field."""
'''


def trim_kubernetes_client(target: Path) -> None:
    """Remove the modules of the Kubernetes client in *target* that raw requests do not need."""
    package = target / "kubernetes"
    if not package.is_dir():
        return
    kept_paths = {package / name for name in KEPT_MODULES}
    for path in sorted(package.rglob("*"), reverse=True):
        if path.is_file() and path not in kept_paths:
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    for name in EMPTY_PACKAGES:
        (package / name).write_text("")
    (target / "pydantic").mkdir()
    (target / "pydantic" / "__init__.py").write_text(PYDANTIC_REPLACEMENT)
