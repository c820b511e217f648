"""The options of `%%gpu-schedule`: what they mean and what is refused."""

import pytest
from IPython.core.error import UsageError

from workbench.core.errors import UserError
from workbench.frontends.magics.magics import WorkbenchMagics
from workbench.frontends.magics.options import (
    OPTIONS,
    help_text,
    parse_options,
    refuse_leftover,
    split_line,
)

MAGIC = WorkbenchMagics.gpu_schedule


def test_without_options_a_cell_asks_for_nothing_special() -> None:
    options = parse_options(MAGIC, "")
    assert (options.priority, options.device, options.split) == ("normal", "auto", "auto")
    assert options.gpus is None
    assert options.cpus is None
    assert not options.detach


def test_every_option_reaches_the_request() -> None:
    line = "--priority low --gpus 2 --cpus 3 --gpu-memory 6GiB --memory 8GiB --time 20m"
    request = parse_options(MAGIC, line).request(gpus=2, cores=3)
    assert request.priority == "low"
    assert (request.gpus, request.cores) == (2, 3)
    assert (request.gpu_memory_bytes, request.memory_bytes) == (6 * 2**30, 8 * 2**30)
    assert request.time_limit_s == 1200


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("--gpus -1", "--gpus -1"),
        ("--cpus 0", "--cpus 0"),
        ("--memory banana", "banana"),
        ("--memory -5GB", "--memory '-5GB' is not a size"),
        ("--time -5m --detach", "--time '-5m' is not a time"),
        ("--cpus 99999999999999999999999", "--cpus 99999999999999999999999 is more than any host"),
        ("--gpus 99999999999999999999999", "--gpus 99999999999999999999999 is more than any host"),
        ("--memory 99999999999TiB", "more than any host"),
        ("--gpu-memory 99999999999TiB", "more than any host"),
        (f"--memory {'9' * 400}B", "more than any host"),
        (f"--time {'9' * 400}d", "more than 10 years"),
        ("--time soon", "soon"),
        ("--device cpu --gpus 1", "contradict"),
        ("--device gpu --gpus 0", "contradict"),
        ("--device cpu --gpu-memory 6GiB", "--gpu-memory 6GiB"),
    ],
)
def test_a_value_that_breaks_a_rule_is_named_with_a_next_step(line: str, named: str) -> None:
    with pytest.raises(UserError) as raised:
        parse_options(MAGIC, line)
    assert named in raised.value.message
    assert raised.value.next_step


@pytest.mark.parametrize(
    "line", ["--gpu 1x", "--frobnicate", "--priority urgent", "--gpus two", '--name "open']
)
def test_what_is_misspelt_is_a_usage_error(line: str) -> None:
    with pytest.raises(UsageError):
        parse_options(MAGIC, line)


@pytest.mark.parametrize(
    ("line", "options", "code"),
    [
        ("", "", ""),
        ("f(x)", "", "f(x)"),
        ('--cpus 2 f("a b")', "--cpus 2", 'f("a b")'),
        ("--detach --name 'my run' x = f(-1)", "--detach --name 'my run'", "x = f(-1)"),
        ("--cpus=2 -x", "--cpus=2", "-x"),
        ('--name="my run" f(x)', '--name="my run"', "f(x)"),
    ],
)
def test_options_end_where_the_code_begins(line: str, options: str, code: str) -> None:
    assert split_line(line) == (options, code)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("--frob", "there is no option --frob; `%gpu-schedule --help` lists them"),
        ("--gpuz", "there is no option --gpuz; did you mean --gpus?"),
        ("--name", "--name needs a value"),
        ("--cpus=", "--cpus needs a value"),
        ("x = 1", "unexpected 'x = 1' behind the options; code goes below the line"),
    ],
)
def test_what_stands_behind_the_options_is_named_for_what_it_is(code: str, says: str) -> None:
    with pytest.raises(UsageError) as raised:
        refuse_leftover(code, is_cell=True)
    assert str(raised.value).startswith(says)


@pytest.mark.parametrize("code", ["", "f(x)", "-x", "--(-x)"])
def test_code_on_the_line_is_no_leftover(code: str) -> None:
    refuse_leftover(code, is_cell=False)


def test_an_unknown_option_with_a_value_is_named_too() -> None:
    with pytest.raises(UsageError, match="no option --timee; did you mean --time"):
        parse_options(MAGIC, "--timee 5m")


def test_help_and_tab_know_every_option() -> None:
    text = help_text(MAGIC)
    assert text.lstrip().startswith("%gpu-schedule [")
    known = [one for action in MAGIC.parser._actions for one in action.option_strings]
    assert known == list(OPTIONS)
    assert all(option in text for option in OPTIONS)


@pytest.mark.parametrize("line", ['--name "a b" --cpus "2"', "--name='a b' --cpus=2"])
def test_quotes_hold_words_together_and_are_not_part_of_them(line: str) -> None:
    options = parse_options(MAGIC, line)
    assert (options.name, options.cpus) == ("a b", 2)


def test_who_names_the_memory_of_a_gpu_wants_one() -> None:
    assert parse_options(MAGIC, "--gpu-memory 6GiB").gpus == 1
    assert parse_options(MAGIC, "--gpu-memory 6GiB --gpus 2").gpus == 2
