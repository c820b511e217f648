"""What is set for the whole process travels with the cell, both ways."""

import os
import warnings
from collections.abc import Iterator

import pandas as pd
import pytest

from tests.boundary.two_sides import Notebook
from workbench.boundary.process_state import arrive, capture


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    state = capture()
    yield
    arrive(state)


def test_pandas_options_travel_both_ways(notebook: Notebook) -> None:
    notebook.start("import pandas as pd")
    pd.set_option("display.max_rows", 7)
    pd.set_option("display.float_format", "{:.1f}".format)
    pd.set_option("display.precision", 3)
    notebook.cross(
        "seen = pd.get_option('display.max_rows'), str(pd.Series([1.25]))\n"
        "pd.options.display.max_rows = 5\npd.reset_option('display.float_format')\n"
        "pd.set_option('display.max_colwidth', None)"
    )
    assert notebook.world.names["seen"] == (7, "0   1.2\ndtype: float64")
    assert pd.get_option("display.max_rows") == 5
    assert pd.get_option("display.float_format") is None
    assert pd.get_option("display.max_colwidth") is None
    assert pd.get_option("display.precision") == 3


def test_an_option_that_is_the_notebooks_function_stays_as_it_is(notebook: Notebook) -> None:
    notebook.start("import pandas as pd")
    pd.set_option("display.float_format", own := lambda _: "x")
    notebook.cross("pd.options.display.max_rows = 6")
    assert pd.get_option("display.max_rows") == 6
    assert pd.get_option("display.float_format") is own


def test_to_read_the_options_warns_of_none() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert capture()["pandas settings"]["display.max_rows"] == 60


def test_the_file_mode_mask_travels_both_ways(notebook: Notebook) -> None:
    notebook.start("import os")
    os.umask(0o027)
    notebook.cross("seen = os.umask(0o002)")
    assert notebook.world.names["seen"] == 0o027
    assert os.umask(0o022) == 0o002
