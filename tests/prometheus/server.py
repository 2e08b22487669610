"""A real Prometheus on a free port of 127.0.0.1, which receives remote writes and scrapes one target."""

import json
import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode
from urllib.request import urlopen

START_TIMEOUT_SECONDS: Final = 60
_ADDRESS: Final = re.compile(r'msg="Listening on" .*address=(127\.0\.0\.1:[0-9]+)')

Series = tuple[tuple[str, str], ...]


class PrometheusServer:
    """One server, with its data in a folder of its own."""

    def __init__(self, program: Path, folder: Path) -> None:
        """Start *program* in *folder*, and wait until it is ready."""
        self._folder = folder
        (folder / "prometheus.yml").write_text("{}")
        command = [
            str(program),
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/data",
            "--storage.tsdb.retention.time=1d",
            "--query.lookback-delta=1h",  # the tests write each sample once, and may run for longer than five minutes
            "--web.listen-address=127.0.0.1:0",
            "--web.enable-remote-write-receiver",
            "--web.enable-lifecycle",
        ]
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder)
        try:
            self.url = f"http://{self._wait_for_address()}"
            self.wait_until(self._is_ready, "Prometheus is ready")
        except BaseException:
            self.stop()
            raise

    @property
    def write_url(self) -> str:
        """The URL of the receiver of remote writes."""
        return f"{self.url}/api/v1/write"

    def scrape(self, target: str) -> None:
        """Scrape *target* (host and port) every second from now on, as the guide configures it."""
        job = {
            "job_name": "joiner",
            "scrape_interval": "1s",
            "static_configs": [{"targets": [target], "labels": {"cluster": "prod"}}],
        }
        (self._folder / "prometheus.yml").write_text(json.dumps({"scrape_configs": [job]}))
        with urlopen(f"{self.url}/-/reload", data=b"", timeout=10):  # noqa: S310 - a server of this test
            pass

    def query(self, expression: str) -> dict[Series, float]:
        """Return the current values of *expression* by series."""
        result = self._get("/api/v1/query", {"query": expression})["result"]
        if isinstance(result, list) and result and not isinstance(result[0], dict):
            return {(): float(result[1])}
        return {tuple(sorted(item["metric"].items())): float(item["value"][1]) for item in result}

    def wait_until(self, is_true: Any, condition: str) -> None:
        """Wait until *is_true* returns a true value."""
        end = time.monotonic() + START_TIMEOUT_SECONDS
        while not is_true():
            assert self._process.poll() is None, self.read_log()
            assert time.monotonic() < end, f"{condition}: not within {START_TIMEOUT_SECONDS} s\n{self.read_log()}"
            time.sleep(0.1)

    def read_log(self) -> str:
        """Return the end of the log."""
        return (self._folder / "log").read_text()[-4000:]

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()

    def _get(self, path: str, parameters: Mapping[str, str]) -> Any:
        with urlopen(f"{self.url}{path}?{urlencode(parameters)}", timeout=10) as response:  # noqa: S310 - as above
            return json.load(response)["data"]

    def _is_ready(self) -> bool:
        try:
            with urlopen(f"{self.url}/-/ready", timeout=10) as response:  # noqa: S310 - as above
                return bool(response.status == 200)
        except OSError:
            return False

    def _wait_for_address(self) -> str:
        self.wait_until(lambda: _ADDRESS.search(self.read_log()), "Prometheus listens")
        match = _ADDRESS.search(self.read_log())
        assert match
        return match[1]
