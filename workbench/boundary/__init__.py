"""What crosses between a notebook's kernel and the home of a cell, and back.

The kernel packs the names that a cell reads, the home unpacks them, runs the cell on its copy and
packs back what the cell bound and changed; the kernel stages that and commits it, all or nothing.
After the commit the kernel is as if the cell had run in it: shared objects are still shared, what
was changed in place is changed in the same objects, and no class or function is redefined.

Read `memo.py` first: one pickle memo serves both directions, which is what makes this exact.
"""

from workbench.boundary.arrival import Arrival, unpack
from workbench.boundary.cell_error import CellError
from workbench.boundary.crossing import Crossing, pack
from workbench.boundary.errors import BrokenTransfer, CannotCross, RemoteError
from workbench.boundary.returning import Changes, load_result, stage
from workbench.boundary.submodules import attributes_in

__all__ = [
    "Arrival",
    "BrokenTransfer",
    "CannotCross",
    "CellError",
    "Changes",
    "Crossing",
    "RemoteError",
    "attributes_in",
    "load_result",
    "pack",
    "stage",
    "unpack",
]
