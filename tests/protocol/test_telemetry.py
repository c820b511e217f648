from __future__ import annotations

import msgspec
import pytest

from workbench.protocol.telemetry import NotAvailable, Reading, Sample


def test_a_reading_has_either_a_value_or_a_reason() -> None:
    assert Reading(0).reason is None
    with pytest.raises(ValueError, match="either a value or a reason"):
        Reading()
    with pytest.raises(ValueError, match="either a value or a reason"):
        Reading(0, NotAvailable.LOST)


def test_a_peer_cannot_send_a_reading_without_both() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"value": null}', type=Reading)


def test_memory_keeps_every_byte_on_the_wire() -> None:
    reading = Reading(2**53 - 1)
    for codec in (msgspec.json, msgspec.msgpack):
        assert codec.decode(codec.encode(reading), type=Reading) == reading


def test_a_schema_for_other_languages_can_be_made() -> None:
    _, components = msgspec.json.schema_components([Sample])
    assert {"Sample", "DeviceSample", "HostSample", "NvmlState", "Reading"} <= set(components)
