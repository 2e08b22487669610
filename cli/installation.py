"""The installation beside a cluster: whether it acts, when its functions last succeeded, where its dashboard is."""

import argparse
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cli.checks.acting import Acting, acting
from cli.checks.facts import Unseen
from cli.eks_names import eks_name
from shared.settings import Settings

if TYPE_CHECKING:
    from shared.aws.clients import Clients

LOOKED: Final = timedelta(hours=3)
"""So far back a success is looked for."""
FRESH: Final = timedelta(minutes=1)
"""CloudWatch tells no more often: who looks again sooner is told the same."""
PATIENCE: Final = timedelta(minutes=5)
"""CloudWatch is some minutes late itself."""
MISSED: Final = 3
"""So many calls may be missing, as often as it is called otherwise, until it is late."""
TICKING: Final = ("provision", "lifecycle", "disrupt", "catalog")
ABSENT: Final = "ABSENT"
UNSEEN: Final = "UNSEEN"
_CONSOLES: Final = {"cn": "console.amazonaws.cn", "us-gov": "console.amazonaws-us-gov.com"}


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """How a function that ticks goes."""

    function: str
    last: datetime | None
    """The minute of its last success; None: there was none for `LOOKED`."""
    is_late: bool


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """A stack, seen or not."""

    stack: str
    cluster: str
    region: str
    status: str
    """CloudFormation's; `ABSENT` if there is none of that name, `UNSEEN` if nobody could look."""
    why: str = ""
    """Why not, or why its functions were not."""
    settings: Settings | None = None
    beats: tuple[Beat, ...] = ()
    dashboard: str = ""
    """Its address, "" if it has none."""

    @property
    def acting(self) -> Acting | None:
        """Whether it acts; None: that was not seen."""
        return None if self.settings is None else acting(self.settings)


def add_account_to(parser: argparse.ArgumentParser) -> None:
    """Add which installation is looked at beside a live cluster."""
    parser.add_argument(
        "--cluster", metavar="NAME", default="", help="the EKS cluster (default: as the kubeconfig says)"
    )
    parser.add_argument("--region", default="", help="default: that of the cluster's ARN, or of your credentials")
    parser.add_argument("--stack", metavar="NAME", default="", help="the installation (default: joiner-<cluster>)")
    parser.add_argument("--no-account", action="store_true", help="ask AWS nothing of the installation")


class Beside:
    """Looks at the installation beside whatever is looked at, no more often than it changes."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        """Look at what *chosen* names."""
        self._chosen = chosen
        self._at: datetime | None = None
        self._seen: Installation | None = None

    def __call__(self, hints: Iterable[str], now: datetime) -> Installation | None:
        """Answer it; None where nobody wants it, or neither *hints* of a kubeconfig nor anybody says which it is."""
        if self._at is None or now - self._at > FRESH:
            self._at, self._seen = now, self._look(tuple(hints), now)
        return self._seen

    def _look(self, hints: tuple[str, ...], now: datetime) -> Installation | None:
        known = next((found for hint in hints if (found := eks_name(hint))), None)
        cluster = self._chosen.cluster or (known.name if known else "")
        if self._chosen.no_account or not cluster:
            return None
        from cli.clouds import opened  # noqa: PLC0415 - boto3 takes half a second
        from cli.files import InputError  # noqa: PLC0415

        stack = self._chosen.stack or f"joiner-{cluster}"
        region = self._chosen.region or (known.region if known else "")
        try:
            with opened(region, embedded=False) as (clients, _):
                return seen_in(clients, stack, cluster, now)
        except InputError as error:
            return Installation(stack=stack, cluster=cluster, region=region, status=UNSEEN, why=str(error))


def seen_in(clients: "Clients", stack: str, cluster: str, now: datetime) -> Installation:
    """Look at *stack*; what cannot be asked is told."""
    from cli.doctor_cluster import seen  # noqa: PLC0415 - botocore takes a fifth of a second
    from cli.doctor_stack import resources_of, stack_said  # noqa: PLC0415
    from cli.progress import progress  # noqa: PLC0415

    base = Installation(stack=stack, cluster=cluster, region=clients.region, status=UNSEEN)
    with progress(f"asking {clients.region} about {stack}"):
        said = seen(lambda: stack_said(clients, stack))
        if isinstance(said, Unseen):
            return msgspec.structs.replace(base, why=said.why)
        if said is None:
            return msgspec.structs.replace(base, status=ABSENT)
        found = msgspec.structs.replace(base, status=said["StackStatus"], settings=_settings(said, cluster, clients))
        listed = seen(lambda: resources_of(clients, stack))
        if isinstance(listed, Unseen):
            return msgspec.structs.replace(found, why=listed.why)
        beats = seen(lambda: beats_of(clients, _functions(listed), now))
        return msgspec.structs.replace(
            found,
            why=beats.why if isinstance(beats, Unseen) else "",
            beats=() if isinstance(beats, Unseen) else beats,
            dashboard=_dashboard(listed, clients.region),
        )


def beats_of(clients: "Clients", functions: dict[str, str], now: datetime) -> tuple[Beat, ...]:
    """Answer how the functions go that tick; *functions* are their names in Lambda by ours.

    Raises:
        Fault: CloudWatch could not be asked.
    """
    from cli.doctor_stack import called_by_the_minute  # noqa: PLC0415 - botocore takes a fifth of a second

    names = {name: functions[name] for name in TICKING if name in functions}
    minutes = called_by_the_minute(clients, names.values(), now - LOOKED, now)
    return tuple(_beat(name, minutes[physical], now) for name, physical in names.items())


def _beat(name: str, minutes: tuple[tuple[datetime, int, int], ...], now: datetime) -> Beat:
    """Judge one by its calls and errors of each minute: it is late by how often it is called otherwise."""
    well = [at for at, calls, errors in minutes if calls > errors]
    calls = sum(calls for _, calls, _ in minutes)
    last = max(well, default=None)
    usual = LOOKED / calls if calls else LOOKED
    is_late = last is None or now - last > max(PATIENCE, MISSED * usual)
    return Beat(function=name, last=last, is_late=is_late)


def _settings(said: dict[str, Any], cluster: str, clients: "Clients") -> Settings:
    """Read what the functions are told from the stack's outputs, as far as it says whether they act."""
    told = {one["OutputKey"]: one["OutputValue"] for one in said.get("Outputs", ())}
    return Settings(
        cluster_name=cluster,
        region=clients.region,
        mode=told.get("JoinerMode", "active"),
        disruption=told.get("JoinerDisruption", "active"),
        disruption_paused=told.get("JoinerDisruptionPaused", ""),
    )


def _functions(listed: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Answer the functions' names in Lambda by ours, which their logical ids begin with."""
    return {
        name: physical
        for kind, logical, physical in listed
        for name in TICKING
        if kind == "AWS::Lambda::Function" and physical and logical.startswith(f"Functions{name.title()}")
    }


def _dashboard(listed: Iterable[tuple[str, str, str]], region: str) -> str:
    name = next((physical for kind, _, physical in listed if kind == "AWS::CloudWatch::Dashboard" and physical), "")
    console = next((host for prefix, host in _CONSOLES.items() if region.startswith(f"{prefix}-")), "")
    host = console or f"{region}.console.aws.amazon.com"
    return f"https://{host}/cloudwatch/home?region={region}#dashboards/dashboard/{name}" if name else ""
