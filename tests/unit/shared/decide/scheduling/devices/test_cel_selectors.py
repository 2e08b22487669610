"""CEL selectors: the variable device, quantities, versions, and errors."""

import pytest

from shared.decide.scheduling.devices import cel_selectors
from shared.decide.scheduling.devices.cel_selectors import SelectorError, is_selected
from shared.model.core.devices import Device
from tests.support.device_cases import DRIVER

DEVICE = Device(
    driver=DRIVER,
    pool="n",
    name="a",
    attributes=(
        (f"{DRIVER}/cores", "int", "4"),
        (f"{DRIVER}/driverVersion", "version", "1.12.3"),
        (f"{DRIVER}/ecc", "bool", "true"),
        (f"{DRIVER}/model", "string", "A100"),
        ("resource.kubernetes.io/pcieRoot", "string", "pci0"),
    ),
    capacity=((f"{DRIVER}/memory", "40Gi"),),
)
OWN = f'device.attributes["{DRIVER}"]'


@pytest.mark.parametrize(
    ("expression", "is_match"),
    [
        (f'device.driver == "{DRIVER}"', True),
        (f'{OWN}.model == "A100" && {OWN}.ecc', True),
        (f"{OWN}.cores > 4", False),
        (f'{OWN}.model.lowerAscii() == "a100" && {OWN}.model.upperAscii().startsWith("A1")', True),
        (f'{OWN}.model in ["H100", "A100"]', True),
        (f'"model" in {OWN}', True),
        (f"has({OWN}.absent)", False),
        ('"model" in device.attributes["other.example.com"]', False),
        ('device.attributes["resource.kubernetes.io"].pcieRoot.matches("^pci[0-9]$")', True),
        (f'{OWN}.driverVersion.compareTo(semver("1.9.0")) > 0', True),
        (f'{OWN}.driverVersion.isGreaterThan(semver("1.12.3-rc.1"))', True),
        (f'semver("1.0.0-rc.2").isLessThan(semver("1.0.0-rc.10")) && {OWN}.driverVersion.minor() == 12', True),
        (f'device.capacity["{DRIVER}"].memory.isGreaterThan(quantity("40000Mi"))', True),
        (f'device.capacity["{DRIVER}"].memory == quantity("40960Mi")', True),
        (f'device.capacity["{DRIVER}"].memory.asInteger() == 42949672960', True),
        ('quantity("1500m").isInteger() || quantity("1").sub(quantity("2")).sign() == 1', False),
        ('quantity("1").add(quantity("500m")).asApproximateFloat() == 1.5 && isQuantity("3k")', True),
        ('isSemver("1.2") || !isSemver("1.2.3")', False),
    ],
)
def test_selector_sees_attributes_and_capacity_of_the_device(expression: str, *, is_match: bool) -> None:
    assert is_selected(expression, DEVICE) is is_match


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("device.driver ==", "is not valid CEL"),
        (f'{OWN}.absent == "x"', "cannot be evaluated for device a"),
        ('device.attributes["other.example.com"].model == "x"', "cannot be evaluated for device a"),
        ("device.driver", "is not true or false for device a"),
        ('semver("one") == semver("1.0.0")', "cannot be evaluated"),
        ('quantity("1500m").asInteger() == 1', "cannot be evaluated"),
        ('quantity("1").compareTo(semver("1.0.0")) == 0', "cannot be evaluated"),
        (f'device.driver == "{"x" * 10_300}"', "is longer than 10240 characters"),
    ],
)
def test_selector_error_names_the_expression_and_the_device(expression: str, error: str) -> None:
    for _ in range(2):
        with pytest.raises(SelectorError, match=error):
            is_selected(expression, DEVICE)


def test_functions_without_the_library_report_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ImportError

    monkeypatch.setattr(cel_selectors, "_import_library", fail)
    with pytest.raises(SelectorError, match="deploy again"):
        is_selected("true || false || 4711 == 4711", DEVICE)
