"""What user code calls. `workbench` re-exports these names lazily."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from workbench.protocol.environment import MARK

if TYPE_CHECKING:
    from workbench.client import Job


def device() -> str:
    """Return where tensors of this process belong: `"cuda:0"` under a GPU lease, else `"cpu"`.

    Inside a scheduled cell this is what its lease gives; in a kernel it is `"cuda:0"` only where
    the kernel itself holds a GPU. A simulated GPU gives `"cpu"`, since the code runs there.
    """
    leased = os.environ.get(MARK, "").strip("- ")
    return "cuda:0" if leased and os.environ.get("CUDA_VISIBLE_DEVICES") else "cpu"


def job(id: str) -> Job:  # noqa: A002  (the field's word, and users write job("3f2a"))
    """Return a job of yours by its id or a unique beginning of it, also after a kernel restart.

    Its `result()` shows here what it printed, binds its names and returns its last value.

    Raises:
        UserError: There is no such job, or more than one.
    """
    from workbench.client import Background, Job, KernelSession

    return Job(
        id,
        session=KernelSession(modules=list),
        background=Background(),
        namespace=vars(sys.modules["__main__"]),
        shell=sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None,
    )
