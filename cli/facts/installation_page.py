"""An installation as text and as a document."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from cli.facts.cluster_group import describe_group
from cli.facts.installation import ABSENT, SUCCESS_LOOKBACK, UNSEEN, FunctionHealth, Installation
from cli.terminal.text import Palette, wrap_text
from shared.cycles.setup.options_from_settings import build_budget_policy
from shared.decide.provisioning.monthly_budget import describe_budget
from shared.model.cloud_provider.cluster_group import GroupUsage
from shared.model.core.formatting import format_elapsed
from shared.model.core.units import format_instant
from shared.model.decisions.month_costs import find_budget_state
from shared.model.karpenter.money_limit import MICRO_USD
from shared.store.zonal_shifts import describe_failure


def build_installation_document(installation: Installation | None) -> dict[str, Any] | None:
    """Return the document that programs read; None if the installation was not read."""
    if installation is None:
        return None
    mode = installation.operating_mode
    return {
        "stack": installation.stack,
        "status": installation.status,
        "message": installation.reason or None,
        "mode": None if mode is None else mode.state,
        "disruptionPaused": None if installation.settings is None else installation.settings.disruption_paused,
        "functions": [
            {
                "name": beat.function,
                "lastSuccess": beat.last_success and format_instant(beat.last_success),
                "late": beat.is_late,
            }
            for beat in installation.function_health
        ],
        "zonalShifts": _build_shift_documents(installation),
        "group": _build_group_document(installation.group_usage),
        "dashboard": installation.dashboard_url or None,
    }


def _build_group_document(usage: GroupUsage | None) -> dict[str, Any] | None:
    """Return the group of the cluster as a document; the amounts are None if they could not be read."""
    if usage is None:
        return None
    is_known = not usage.read_error
    return {
        "name": usage.group,
        "usedUsdPerHour": usage.used / MICRO_USD if is_known else None,
        "limitUsdPerHour": usage.limit / MICRO_USD if is_known else None,
        "message": usage.read_error or None,
    }


def render_installation(
    installation: Installation | None, now: datetime, palette: Palette, width: int | None
) -> Iterator[str]:
    """Yield the lines that people read."""
    for color, text in _describe_installation(installation, now):
        yield from (palette.colorize(color, line) for line in wrap_text(text, width, ""))
    if installation is not None and installation.dashboard_url:
        yield f"dashboard: {installation.dashboard_url}"


def render_installation_concerns(
    installation: Installation | None, now: datetime, palette: Palette, width: int | None
) -> Iterator[str]:
    """Yield only the lines about problems and unusual settings."""
    for color, text in _describe_installation(installation, now):
        if color:
            yield from (palette.colorize(color, line) for line in wrap_text(text, width, ""))


def _describe_installation(installation: Installation | None, now: datetime) -> Iterator[tuple[str, str]]:
    """Yield sentences, each with its color; "" if there is no problem."""
    if installation is None:
        return
    if installation.status == UNSEEN:
        yield ("yellow", f"{installation.stack} could not be read: {installation.reason} (--no-account skips it)")
        return
    if installation.status == ABSENT:
        region_text = f" in {installation.region}" if installation.region else ""
        fix = f"`npx cdk deploy -c cluster={installation.cluster}`, or name the stack with --stack"
        yield "yellow", f"Joiner is not installed: no stack {installation.stack}{region_text}. To fix: {fix}"
        return
    mode = installation.operating_mode
    if mode is not None:
        fix = f" ({mode.fix})" if mode.fix else ""
        yield "yellow" if mode.fix else "", f"{installation.stack}: {mode.message}{fix}"
    yield from _describe_monthly_budget(installation, now)
    yield from _describe_zonal_shifts(installation, now)
    if installation.group_usage is not None:
        yield describe_group(installation.group_usage, now)
    if installation.reason:
        yield "yellow", f"{installation.stack}: the functions could not be read: {installation.reason}"
    if installation.function_health:
        is_late = any(beat.is_late for beat in installation.function_health)
        words = ", ".join(_format_function_health(beat, now) for beat in installation.function_health)
        fix = f"; to find the cause: `joiner doctor --cluster {installation.cluster}`" if is_late else ""
        yield "red" if is_late else "", f"last success: {words}{fix}"


def _describe_monthly_budget(installation: Installation, now: datetime) -> Iterator[tuple[str, str]]:
    if installation.settings is not None and installation.settings.monthly_budget_usd:
        policy = build_budget_policy(installation.settings)
        budget = find_budget_state(policy, installation.month_costs, now)
        yield "yellow" if budget.step else "", describe_budget(budget)


def _describe_zonal_shifts(installation: Installation, now: datetime) -> Iterator[tuple[str, str]]:
    record = installation.zonal_shifts
    if record is None:
        return
    for shift in record.shifts:
        if shift.is_active(now):
            yield (
                "yellow",
                f"zone {shift.zone_id} has a zonal shift {shift.describe_end()}: no nodes are launched there",
            )
    if record.error:
        yield "yellow", f"zonal shifts: {describe_failure(record)}"


def _build_shift_documents(installation: Installation) -> list[dict[str, Any]]:
    shifts = () if installation.zonal_shifts is None else installation.zonal_shifts.shifts
    return [
        {"zoneId": shift.zone_id, "expiresAt": None if shift.expires_at is None else format_instant(shift.expires_at)}
        for shift in shifts
    ]


def _format_function_health(health: FunctionHealth, now: datetime) -> str:
    when = (
        f"none in {format_elapsed(SUCCESS_LOOKBACK)}"
        if health.last_success is None
        else f"{format_elapsed(now - health.last_success)} ago"
    )
    return f"{health.function} {when}{' (late)' if health.is_late else ''}"
