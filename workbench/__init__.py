"""Workbench: a shared GPU lab inside JupyterLab.

Importing this package costs almost nothing: it loads a few small standard-library modules and no
other. What user code calls lives in `workbench.api` and is loaded when first used;
`%load_ext workbench` loads the magics. Read `workbench/api.py` first, then
`workbench/frontends/magics`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__version__ = "0.1.0"  # The one place where the version is written.

_FROM_API = frozenset({"device", "job"})

__all__ = ["__version__", "device", "job", "load_ipython_extension"]


def __getattr__(name: str) -> Any:
    """Loads a public name from `workbench.api` when it is first asked for.

    Args:
        name: The attribute that was looked up on the package.

    Returns:
        The attribute of the same name in `workbench.api`.

    Raises:
        AttributeError: The package has no such public name.
    """
    if name not in _FROM_API:
        message = f"module 'workbench' has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(importlib.import_module("workbench.api"), name)


def __dir__() -> list[str]:
    """Lists the public names, so that Tab completes those not loaded yet.

    Returns:
        The public names, sorted.
    """
    return sorted({*globals(), *__all__})


def load_ipython_extension(ipython: "InteractiveShell") -> None:
    """Registers the magics; IPython calls it for `%load_ext workbench`.

    Args:
        ipython: The running shell.
    """
    magics = importlib.import_module("workbench.frontends.magics")
    magics.load_ipython_extension(ipython)
