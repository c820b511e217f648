"""scikit-learn models: fitted here or there, they predict the same."""

import pytest

from tests.boundary.two_sides import Notebook, check_as_in_order

for part in ("ensemble", "linear_model", "neighbors", "neural_network", "pipeline", "svm", "tree"):
    pytest.importorskip(f"sklearn.{part}", reason="scikit-learn comes with the lab extra")

DATA = "import numpy as np\nrng = np.random.default_rng(0)\nX = rng.normal(size=(40, 3))\ny = (X[:, 0] > 0).astype(int)\n"
MODELS = {
    "linear": "from sklearn.linear_model import LogisticRegression\nm = LogisticRegression()",
    "sgd": "from sklearn.linear_model import SGDClassifier\nm = SGDClassifier(random_state=0)",
    "tree": "from sklearn.tree import DecisionTreeClassifier\nm = DecisionTreeClassifier(random_state=0)",
    "forest": "from sklearn.ensemble import RandomForestClassifier\nm = RandomForestClassifier(5, random_state=0)",
    "boosting": "from sklearn.ensemble import HistGradientBoostingClassifier\nm = HistGradientBoostingClassifier(max_iter=3)",
    "pipeline": (
        "from sklearn.pipeline import make_pipeline\nfrom sklearn.preprocessing import StandardScaler\n"
        "from sklearn.svm import SVC\nm = make_pipeline(StandardScaler(), SVC())"
    ),
    "neighbours": "from sklearn.neighbors import KNeighborsClassifier\nm = KNeighborsClassifier(3, algorithm='kd_tree')",
    "a_shared_random_state": (
        "from sklearn.neural_network import MLPClassifier\nr = np.random.RandomState(1)\n"
        "m = MLPClassifier((4,), random_state=r, tol=1, n_iter_no_change=1)"
    ),
}
IMPORTS = ("filters",)  # What is imported only as a model is fitted changes them.
SEEN = "p = m.predict(X)\ns = float((p == y).mean())"


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_model_fitted_here_predicts_there(notebook: Notebook, model: str) -> None:
    check_as_in_order(notebook, DATA + model + "\nm.fit(X, y)\nsame = m", SEEN, unsteady=IMPORTS)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_model_fitted_there_predicts_here(notebook: Notebook, model: str) -> None:
    before = DATA + model + "\nsame = m"
    check_as_in_order(notebook, before, "m.fit(X, y)\n" + SEEN, unsteady=IMPORTS)
    names = notebook.world.names
    assert (names["same"].predict(names["X"]) == names["p"]).all()


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_model_is_fitted_again_there(notebook: Notebook, model: str) -> None:
    before = DATA + model + "\nm.fit(X, y)\nsame = m\nZ = 1 - y"
    check_as_in_order(notebook, before, "m.fit(X, Z)\n" + SEEN, unsteady=IMPORTS)
    names = notebook.world.names
    assert (names["same"].predict(names["X"]) == names["p"]).all()
