"""Plots in a real notebook kernel: every one is shown, and the user's own too."""

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib_inline")

CELLS = [
    "import shuffledp as sdp; from shuffledp import plotting",
    "m = sdp.Shuffled(sdp.LocalRandomizer(1.0), n=1000)",
    "plotting.privacy_curve(m, epsilon=[0.1, 0.2]);",
    "m.plot(epsilon=[0.1, 0.2], delta=1e-3);",
    "import matplotlib.pyplot as plt; before = plt.rcParams['axes.grid']; plt.plot([1, 2]);",
    "m",
    "m.epsilon(delta=1e-6)",
    "print(before)",
]


def test_every_plot_is_shown_and_nothing_of_ours_stays_in_the_settings() -> None:
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    kinds = [{kind for out in cell.outputs for kind in out.get("data", {})} for cell in book.cells]
    assert all("image/png" in kinds[i] for i in (2, 3, 4)), kinds
    assert "text/html" in kinds[5] & kinds[6]
    assert book.cells[7].outputs[0].text == "False\n"
