"""torch tensors, modules and optimizers: trained in the home, they are trained here."""

import pytest

from tests.boundary.two_sides import Notebook, check_as_in_order
from workbench.boundary import CannotCross, pack

torch = pytest.importorskip("torch", reason="torch is an extra")

MODEL = (
    "torch.manual_seed(0)\n"
    "class Net(torch.nn.Module):\n"
    "    def __init__(self):\n"
    "        super().__init__()\n"
    "        self.a, self.b = torch.nn.Linear(3, 4), torch.nn.Linear(4, 1)\n"
    "        self.norm = torch.nn.BatchNorm1d(4)\n"
    "        self.drop = torch.nn.Dropout(0.5)\n"
    "    def forward(self, x): return self.b(self.drop(torch.relu(self.norm(self.a(x)))))\n"
    "x, y = torch.randn(8, 3), torch.randn(8, 1)\n"
    "model = Net()\nfirst = model.a.weight\n"
)
TRAIN = (
    "for _ in range(3):\n    optimizer.zero_grad()\n    loss = torch.nn.functional.mse_loss(model(x), y)\n"
    "    loss.backward()\n    optimizer.step()\nloss = loss.item()"
)
CASES = {
    "in_place": ("a = torch.zeros(3)\nb = a", "a += 1\nb[0] = 5"),
    "a_view_and_its_base": (
        "a = torch.zeros(4)\nv = a[1:3]",
        "v.fill_(2)\nw = a.view(2, 2)\nw[0, 0] = 9",
    ),
    "a_view_alone": ("a = torch.arange(6.)\nv = a[2:4]\nw = v", "v += 1"),
    "views_made_there": ("a = torch.arange(6.)", "v = a[1:]\nv[0] = 9\nu = a.T"),
    "strides": (
        "a = torch.arange(12.).reshape(3, 4)\nt = a.t()\nc = a[:, 1]",
        "t[0] = 1\nc.mul_(2)",
    ),
    "memory_format": (
        "a = torch.zeros(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)",
        "a[0, 0] = 1",
    ),
    "memory_shared_with_numpy": (
        "import numpy as np\nn = np.zeros(3)\nt = torch.from_numpy(n)",
        "t[0] = 1\nn[1] = 2\nm = t.numpy()\nm[2] = 3",
    ),
    "types_of_items": (
        "ts = [torch.ones(2, dtype=d) for d in (torch.bool, torch.bfloat16, torch.float16, torch.int8, torch.complex64)]\n"
        "s = torch.tensor(5)\ne = torch.zeros(0, 3)",
        "ts[1][0] = 3\nts[0][1] = False\nts[4][0] = 1j\ns += 1\nf = e.shape",
    ),
    "expanded": ("a = torch.arange(3.).expand(100, 3)", "b = a.sum()"),
    "a_gradient": ("w = torch.ones(3, requires_grad=True)", "(w * 2).sum().backward()\ng = w.grad"),
    "a_gradient_that_crosses": (
        "w = torch.ones(2, requires_grad=True)\n(w * 2).sum().backward()\ng = w.grad",
        "w.grad.zero_()\ng[0] = 7",
    ),
    "a_gradient_that_goes": (
        "w = torch.ones(2, requires_grad=True)\n(w * 2).sum().backward()",
        "w.grad = None",
    ),
    "frozen_there": ("w = torch.ones(2, requires_grad=True)", "w.requires_grad_(False)"),
    "attributes": ("a = torch.ones(2)\na.tags = ['x']", "a.tags.append('y')\na.more = 1"),
    "a_model_is_trained_with_sgd": (
        MODEL + "optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)",
        TRAIN,
    ),
    "a_model_is_trained_with_adam": (
        MODEL + "optimizer = torch.optim.Adam(model.parameters())",
        TRAIN,
    ),
    "a_trained_model_is_trained_on": (
        MODEL + "optimizer = torch.optim.Adam(model.parameters())\n" + TRAIN,
        TRAIN,
    ),
    "an_optimizer_is_made_there": (
        MODEL,
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n" + TRAIN,
    ),
    "a_model_is_made_there": (
        "",
        MODEL + "optimizer = torch.optim.Adam(model.parameters())\n" + TRAIN,
    ),
    "tied_weights": (
        "m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))\nm[1].weight = m[0].weight\n"
        "w = m[0].weight",
        "with torch.no_grad(): m[1].weight.fill_(3)",
    ),
    "a_model_of_another_precision": (
        "m = torch.nn.Linear(2, 2)\nw = m.weight",
        "m.double()\ny = m.weight is w",
    ),
    "a_state_dict": (
        "m = torch.nn.Linear(2, 2)\ns = m.state_dict()",
        "with torch.no_grad(): m.weight.zero_()\nt = s['weight'].sum()",
    ),
    "a_buffer_and_a_mode": (
        "m = torch.nn.BatchNorm1d(2)\nx = torch.ones(3, 2)",
        "m(x)\nm.eval()\nm.register_buffer('extra', torch.ones(1))",
    ),
    "a_loader": (
        "from torch.utils.data import TensorDataset, DataLoader\nds = TensorDataset(torch.arange(6.))\n"
        "dl = DataLoader(ds, batch_size=2, shuffle=True)\ntorch.manual_seed(2)",
        "ys = [b[0].tolist() for b in dl]",
    ),
    "random_numbers": (
        "torch.manual_seed(3)\ng = torch.Generator().manual_seed(4)",
        "y = torch.rand(2)\nz = torch.rand(2, generator=g)",
    ),
    "sizes_and_types": (
        "s, d, dev = torch.ones(2, 3).shape, torch.float16, torch.device('cpu')",
        "y = s[0], str(d), dev.type",
    ),
}


@pytest.mark.parametrize(("before", "cell"), CASES.values(), ids=CASES)
def test_as_in_order(notebook: Notebook, before: str, cell: str) -> None:
    unsteady = ("environment", "filters")  # An optimizer imports the compiler, which sets both.
    check_as_in_order(notebook, f"import torch\n{before}", cell, unsteady=unsteady)


def test_a_loss_comes_back_without_its_graph_and_that_is_said(notebook: Notebook) -> None:
    notebook.start(f"import torch\n{MODEL}")
    changes = notebook.cross("loss = model(x).sum()")
    assert changes.notes == ["tensors came back without the autograd graph that they were part of"]
    assert not notebook.world.names["loss"].requires_grad


@pytest.mark.parametrize(
    ("before", "message"),
    [
        (
            "t = torch.ones(2, requires_grad=True) * 2",
            r"t \(torch.Tensor\) is part of an autograd graph",
        ),
        ("t = [torch.eye(3).to_sparse()]", r"t\[0\] \(torch.Tensor\) is not a dense tensor"),
        ("t = torch.ones(2, device='meta')", r"t \(torch.Tensor\) has no memory"),
        (
            "t = torch.ones(2).untyped_storage()",
            r"t \(torch.storage.UntypedStorage\) is the memory of a",
        ),
    ],
)
def test_tensors_that_cannot_cross_are_named(notebook: Notebook, before: str, message: str) -> None:
    notebook.start(f"import torch\n{before}")
    with notebook.world.active(), pytest.raises(CannotCross, match=message):
        pack(notebook.world.names, ["t"])
