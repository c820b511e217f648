import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.register_assert_rewrite("tests.boundary.two_sides")

from tests.boundary.two_sides import FarSide, Notebook, new_world  # noqa: E402

SKLEARN = ("sklearn.ensemble", "sklearn.neural_network", "sklearn.pipeline", "sklearn.svm")


@pytest.fixture(scope="session")
def far_side() -> Iterator[FarSide]:
    # As a zygote has: all that the kernel may have imported, so that no cell waits for it.
    names = ("numpy", "pandas", "torch", *SKLEARN)
    for name in names:  # The first import of some changes filters and environment.
        importlib.import_module(name)
    far = FarSide(*names)
    yield far
    far.close()


@pytest.fixture
def notebook(far_side: FarSide, tmp_path: Path) -> Notebook:
    return Notebook(far_side, tmp_path, new_world())
