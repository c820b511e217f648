import pytest

from workbench.core.model import DeviceId
from workbench.core.spelling import count, short_device, spell_bytes


@pytest.mark.parametrize(
    ("amount_bytes", "spelled"),
    [
        (0, "0 MiB"),
        (1, "1 byte"),
        (5000, "5000 bytes"),
        (1 << 20, "1 MiB"),
        (3 << 29, "1.5 GiB"),
        (80 << 30, "80 GiB"),
        ((80 << 30) - 1, "79.99 GiB"),
        ((1 << 30) + (1 << 28) + 5, "1.25 GiB"),
    ],
)
def test_an_amount_is_rounded_down(amount_bytes: int, spelled: str) -> None:
    assert spell_bytes(amount_bytes) == spelled


def test_things_are_counted() -> None:
    assert [count(n, "core") for n in range(3)] == ["0 cores", "1 core", "2 cores"]


def test_a_uuid_is_shortened() -> None:
    assert short_device(DeviceId("GPU-9b2f41c0-aaaa-bbbb")) == "GPU-9b2f41c0"
