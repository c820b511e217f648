import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.protocol.text import carried, plain, restored, visible

ANY = st.text(st.characters(exclude_characters="\0", codec=None))


@given(ANY)
def test_every_name_and_path_survives_a_message(text: str) -> None:
    carried(text).encode()
    assert restored(carried(text)) == text


def test_what_is_utf8_is_carried_as_it_is() -> None:
    assert carried("/home/zoé") == "/home/zoé"


@given(ANY)
def test_plain_text_is_utf8(text: str) -> None:
    plain(text).encode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a job", "a job"),
        ("Zoë 训练 🙂", "Zoë 训练 🙂"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("evil\u202egnp.exe\u2066", "evil\\u202egnp.exe\\u2066"),
        ("two\nlines\u2028", "two\\nlines\\u2028"),
        ("bad\udcff", "bad\\udcff"),
        ("back\\slash", "back\\slash"),
    ],
)
def test_what_steers_a_terminal_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(ANY)
def test_nothing_that_is_shown_is_a_control_or_turns_the_text(text: str) -> None:
    assert {unicodedata.category(one)[0] for one in visible(text)}.isdisjoint({"C"}) or all(
        unicodedata.category(one) in {"Cn", "Co"}
        for one in visible(text)
        if unicodedata.category(one)[0] == "C"
    )
