import msgspec
import pytest

from tests.core.builders import history, same
from tests.journal.golden import golden_lab, move_priorities
from workbench.journal import codec


def test_every_entry_comes_back_equal() -> None:
    for entry in golden_lab()[0].entries:
        assert codec.decode(*codec.encode(entry)) == entry


def test_every_state_of_a_history_comes_back_equal_in_its_order_too() -> None:
    state = history().state
    assert same(codec.decode_state(codec.encode_state(state)), state)


def test_what_moves_priorities_comes_back_equal_at_every_step() -> None:
    for steps in range(1, 5):
        lab = golden_lab(2)[0]
        known = len(lab.entries)
        move_priorities(lab, steps=steps)
        for entry in lab.entries[known:]:
            assert codec.decode(*codec.encode(entry)) == entry
        assert lab.job("f" * 32).use is not None
        assert same(codec.decode_state(codec.encode_state(lab.state)), lab.state)


def test_a_field_that_is_missing_is_an_error_unless_it_has_a_default() -> None:
    with pytest.raises(msgspec.DecodeError):
        codec.decode("Tick", b"{}")
    old = b'{"at":0,"device":"GPU-1","model":"A100","memory_bytes":null,"simulated":false}'
    assert codec.decode("DeviceSeen", old).busy_outside is None  # type: ignore[union-attr]
