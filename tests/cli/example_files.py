"""The files that the examples of the help begin with: ``write_example_files(folder, command)``."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from shuffledp import KaryRandomizedResponse, Shuffled
from shuffledp._json import canonical
from shuffledp.collecting.histogram import HistogramProtocol
from shuffledp.shuffling.roles import randomize_file, shuffle_files

PETS = ["cat"] * 50_000 + ["dog"] * 35_000 + ["fish"] * 15_000
AGES = [20 + person % 61 for person in range(100_000)]


@cache
def survey() -> HistogramProtocol:
    """The protocol of the examples."""
    return HistogramProtocol(["cat", "dog", "fish"], epsilon=1.0, delta=1e-6, n=100_000)


def write_example_files(folder: Path, command: str) -> None:
    """What the examples of a command need; nothing for most."""
    for write in NEEDED.get(command, ()):
        write(folder)


def column(path: Path, name: str, values: list[object]) -> None:
    """A .csv file of one column."""
    path.write_text("\n".join([name, *map(str, values), ""]))


def pets(folder: Path) -> None:
    column(folder / "pets.csv", "pet", list(PETS))


def ages(folder: Path) -> None:
    column(folder / "ages.csv", "age", list(AGES))


def people(folder: Path) -> None:
    homes = ["in", "out"] * 50_000
    lines = [f"{pet},{home}" for pet, home in zip(PETS, homes, strict=True) if pet != "fish"]
    (folder / "folk.csv").write_text("\n".join(["pet,home", *lines, ""]))


def names(folder: Path) -> None:
    column(folder / "names.csv", "name", ["anna"] * 6000 + ["otto"] * 3000 + ["zoe"] * 1000)


def steps(folder: Path) -> None:
    rng = np.random.default_rng(3)
    np.save(folder / "steps.npy", np.clip(rng.normal(0.1, 0.1, (10_000, 4)), -0.5, 0.5))


def protocol(folder: Path) -> None:
    (folder / "survey.json").write_text(canonical(survey().to_dict()))


def reports(folder: Path) -> None:
    (folder / "used").mkdir()
    for name, half in (("a.pq", PETS[::2]), ("b.pq", PETS[1::2])):
        randomize_file(survey(), half, folder / name)


def shuffled(folder: Path) -> None:
    randomize_file(survey(), PETS, folder / "reports.parquet")
    (folder / "used").mkdir()
    files = folder / "reports.parquet", folder / "shuffled.parquet"
    shuffle_files(survey(), *files, minimum=100_000, used=folder / "used")


def clouds(folder: Path) -> None:
    """Two classes of points about (-1, -1) and (1, 1): a.csv to learn from, b.csv to test with."""
    rng = np.random.default_rng(7)
    for name, people in (("a.csv", 1_000), ("b.csv", 500)):
        classes = rng.integers(0, 2, people)
        points = rng.normal(scale=0.7, size=(people, 2)) + (2 * classes - 1)[:, None]
        rows = (f"{u:.4f},{v:.4f},{c}" for (u, v), c in zip(points, classes, strict=True))
        (folder / name).write_text("\n".join(["u,v,y", *rows, ""]))


def service(folder: Path) -> None:
    """A shuffler that collects for one task."""
    from shuffledp.service.documents import Task
    from shuffledp.service.keys import AnalystKey
    from shuffledp.service.shuffler import Shuffler

    shuffler, key = Shuffler(folder / "shuffler"), AnalystKey.new(folder / "analyst.key")
    identity = shuffler.keys.public
    task = Task.new("pets", survey(), key=key.signs, analyst=key.public, shuffler=identity)
    shuffler.create(task.signed)


def analyst(folder: Path) -> None:
    """The key of an analyst."""
    from shuffledp.service.keys import AnalystKey

    AnalystKey.new(folder / "analyst.key")


def certificate(folder: Path) -> None:
    """Of 30 days."""
    month = 30 * Shuffled(KaryRandomizedResponse(k=16, epsilon0=4.0), n=1_000_000)
    month.epsilon(delta=1e-8).certificate().save(folder / "month.json")


NEEDED: dict[str, tuple[Callable[[Path], None], ...]] = {
    "analyze": (shuffled,),
    "histogram": (pets,),
    "ledger": (protocol,),
    "mean": (ages,),
    "quantiles": (ages,),
    "randomize": (pets, protocol),
    "ranges": (ages,),
    "serve": (service,),
    "shuffle": (protocol, reports),
    "sign": (protocol, analyst),
    "strings": (names,),
    "sum": (ages,),
    "table": (people,),
    "task": (protocol,),
    "train": (clouds,),
    "vectors": (steps,),
    "verify": (certificate,),
}
