"""``shuffledp train``: a classifier from many people's examples, none of which leaves its owner.

Features and a class per person come from a table in a file or a folder of MNIST's idx files. Everything that
shapes the model is public: the names of the classes and the range of the features are given, never read off
the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp._digits import rounded_up, written
from shuffledp._progress import Progress
from shuffledp.cli.files import output_option, plot_option, write_picture, written_file
from shuffledp.cli.options import (
    FINITE,
    OUTPUT,
    POSITIVE,
    POSITIVE_PROBABILITY,
    WHOLE,
    Given,
    Real,
    Whole,
    command,
    option,
    stacked,
)
from shuffledp.cli.output import json_option, print_answer, print_json

if TYPE_CHECKING:
    from torch.utils.data import TensorDataset

    from shuffledp.bound import Bound
    from shuffledp.learning import ShuffledTrainer

DIGITS = tuple("0123456789")
_FORMATS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}


@dataclass(frozen=True)
class Layout:
    """What the columns mean: ``features`` None for all but the label, ``ends`` None to take them as
    they are."""

    label: str | None
    classes: tuple[str, ...]
    features: tuple[str, ...] | None
    ends: tuple[float, float] | None


def read_labelled(path: str, layout: Layout, split: str) -> TensorDataset:
    """(inputs, classes): a folder is taken for MNIST, of which ``split`` is read."""
    if Path(path).is_dir():
        from shuffledp.learning import load_mnist

        return load_mnist(path, split)
    if layout.label is None or not layout.classes:
        raise click.UsageError("a table needs --label and --classes.")
    import numpy as np
    import torch
    from torch.utils.data import TensorDataset

    names = layout.features or [name for name in _column_names(path) if name != layout.label]
    inputs = np.stack([_feature(path, name) for name in names], axis=1)
    if layout.ends is not None:
        low, high = layout.ends
        beyond = int(np.sum((inputs < low) | (inputs > high)))
        if beyond:
            click.echo(
                f"{beyond:,} of {inputs.size:,} features are beyond --low and --high: clipped", err=True
            )
        inputs = 2.0 * (np.clip(inputs, low, high) - low) / (high - low) - 1.0
    targets = _places(path, layout.label, layout.classes)
    return TensorDataset(torch.from_numpy(inputs.astype(np.float32)), torch.from_numpy(targets))


def _column(path: str, name: str, *, text: bool = False) -> Any:
    import numpy as np

    from shuffledp.shuffling.columns import open_column

    parts = list(open_column(path, name, text=text))
    return np.concatenate(parts) if parts else np.zeros(0)


def _places(path: str, label: str, classes: tuple[str, ...]) -> Any:
    """The place of each person's class; labels that are whole numbers are known by their digits."""
    import numpy as np

    from shuffledp.collecting._domain import CategoryIndex

    column = _column(path, label, text=True)
    as_text = column.astype(np.str_) if column.dtype.kind in "iu" else column
    return np.asarray(CategoryIndex.of(classes).places(as_text), dtype=np.int64)


def _feature(path: str, name: str) -> Any:
    """One feature; missing values are an error that counts them."""
    import numpy as np

    from shuffledp.collecting._domain import missing_in, refuse

    column = _column(path, name)
    missing = missing_in(column)
    refuse(column, missing, np.zeros_like(missing))
    if column.dtype.kind not in "biuf":
        raise click.ClickException(f"feature {name!r} must be numbers, got {column.dtype}")
    return column.astype(np.float64)


def _column_names(path: str) -> Sequence[str]:
    """All columns of a file, asked of the reader of tables."""
    from shuffledp._lazy import needed

    kind = _FORMATS.get(Path(path).suffix.lower())
    if kind is None:
        raise click.UsageError(f"--features must be given for {path}.")
    dataset = needed("pyarrow.dataset", extra="collect").dataset(path, format=kind)
    names: Sequence[str] = dataset.schema.names
    return names


EXAMPLE = """
$ shuffledp train a.csv --label y --classes 0,1 --epsilon 2 --delta 1e-5 --test b.csv
epsilon <= 2 at delta = 1e-5 after 100 rounds
"""

table = partial(option, group="The table")
training = partial(option, group="Training")
privacy = partial(option, group="Privacy")
output = partial(option, group=OUTPUT)

table_options = stacked(
    table("--label", "NAME", "The column with the class."),
    table("--classes", "A,B,...", "All classes, a public list."),
    table("--features", "A,B,...", "Columns of numbers.  [default: all]"),
    table("--low", FINITE, "Public range of the features,"),
    table("--high", FINITE, "which becomes [-1, 1]."),
)
training_options = stacked(
    training("--cohort", WHOLE, "Drawn afresh for each round.  [default: everybody]"),
    training("--rounds", WHOLE, "In total.", default=100, metavar="T"),
    training("--hidden", Whole(most=2**20), "Units of one hidden layer.  [default: none, a linear model]"),
    training("--learning-rate", POSITIVE, "Size of a step.", default=0.5),
    training("--momentum", Real(high=1.0), "Share of the last step in the next.", default=0.0),
    training("--radius", POSITIVE, "Gradients are clipped to this l2 norm.", default=1.0),
    training("--seed", Whole(least=0), "Repeatable: for simulations only."),
    output_option("--checkpoint", "Kept up to date, and gone on from if it exists.", group="Training"),
)


@command(section="Learning", example=EXAMPLE)
@click.argument("data", type=click.Path(exists=True))
@table_options
@privacy("--epsilon", POSITIVE, "In total.", required=True)
@privacy("--delta", POSITIVE_PROBABILITY, "In total.", required=True)
@privacy(
    "--honest-fraction",
    POSITIVE_PROBABILITY,
    "Count only on so many of the people to hide others.",
    default=1.0,
)
@training_options
@output(
    "--test test_data", click.Path(exists=True), "Public examples to measure the accuracy on.", metavar="DATA"
)
@output("--every", WHOLE, "Measure each so many rounds.", default=10)
@output_option("--model model_file", "Write the weights (a state_dict of PyTorch).")
@output_option("--history history_file", "Write what was measured: .csv or .json.")
@plot_option
@json_option
def train(data: str, as_json: bool, **given: Any) -> None:
    """Train a classifier with shuffled, randomized gradients.

    Simulates clients with one example each: a row of DATA (.csv or .parquet), or a digit of a folder
    with MNIST's idx files. Each round a random cohort sends clipped gradients randomized by PrivUnit,
    calibrated so that all rounds together are (epsilon, delta)-DP. Needs shuffledp[learn]."""
    if given["plot_file"] is not None and given["test_data"] is None:
        raise click.UsageError("--plot needs --test: without it nothing is measured.")
    if (given["low"] is None) != (given["high"] is None):
        raise click.UsageError("--low and --high go together.")
    trainer = _trained(data, given)
    with Progress.clock("bounding epsilon"):
        bound = trainer.epsilon(delta=given["delta"])
    _write(trainer, given)
    _report(trainer, bound, given, as_json)


def _trained(data: str, given: Given) -> ShuffledTrainer:
    from shuffledp._lazy import needed

    with Progress.clock("loading PyTorch"):
        torch = needed("torch", extra="learn")
        from shuffledp._validate import part_of
        from shuffledp.learning import Budget, ShuffledTrainer, epsilon0_for, parameter_count
        from shuffledp.randomizers.privunit import PrivUnit
    layout = _layout(given)
    with Progress.clock(f"reading {data}"):
        people = read_labelled(data, layout, "train")
    if len(people) == 0:
        raise click.ClickException(f"{data} has no rows")
    model = _model(people.tensors[0], len(layout.classes or DIGITS), given)
    shape = {"dimension": parameter_count(model), "radius": given["radius"]}
    target = {name: given[name] for name in ("epsilon", "delta", "rounds")}
    cohort = given["cohort"] or len(people)
    if cohort > len(people):
        raise click.UsageError(f"--cohort must be at most the {len(people):,} people.")
    # Dishonest people are accounted as such who never answer.
    crowd: dict[str, Any] = {"cohort": cohort}
    crowd["least_reports"] = max(1, part_of(given["honest_fraction"], cohort))
    steps = torch.optim.SGD(model.parameters(), lr=given["learning_rate"], momentum=given["momentum"])
    with Progress.clock("calibrating"):
        epsilon0 = epsilon0_for(PrivUnit, population=len(people), **crowd, **target, **shape)
        trainer = ShuffledTrainer(
            model,
            people,
            torch.nn.functional.cross_entropy,
            randomizer=PrivUnit(epsilon0=epsilon0, **shape),
            **crowd,
            optimizer=steps,
            budget=Budget(given["epsilon"], given["delta"]),
            seed=given["seed"],
        )
    return _run(trainer, layout, given)


def _layout(given: Given) -> Layout:
    def listed(text: str | None) -> tuple[str, ...]:
        return () if text is None else tuple(each.strip() for each in text.split(","))

    ends = None if given["low"] is None else (given["low"], given["high"])
    if ends is not None and not ends[0] < ends[1]:
        raise click.UsageError("--low must be less than --high.")
    return Layout(given["label"], listed(given["classes"]), listed(given["features"]) or None, ends)


def _model(inputs: Any, classes: int, given: Given) -> Any:
    """Linear, or with one hidden layer; it begins at the same place for the same seed."""
    import torch

    from shuffledp.learning._make_private import classifier

    if given["seed"] is not None:
        torch.manual_seed(given["seed"])
    return classifier(inputs[:1].numel(), classes, given["hidden"])


def _run(trainer: ShuffledTrainer, layout: Layout, given: Given) -> ShuffledTrainer:
    """From the checkpoint, if there is one, to the last round."""
    checkpoint = given["checkpoint"]
    if checkpoint is not None and Path(checkpoint).exists():
        trainer.load(checkpoint)
        if not click.get_current_context().params.get("as_json"):
            click.echo(f"resuming {checkpoint} after round {trainer.rounds} of {given['rounds']}", err=True)
    left = min(given["rounds"] - trainer.rounds, trainer.spending.rounds_left)
    try:
        return trainer.run(
            max(0, int(left)),
            evaluate=_accuracy(given["test_data"], layout),
            every=given["every"],
            checkpoint=checkpoint,
            checkpoint_every=given["every"],
            progress=True,
        )
    except KeyboardInterrupt:
        kept = checkpoint is not None and Path(checkpoint).exists()
        said = f"{checkpoint} is kept: the same command goes on from there"
        click.echo(said if kept else "nothing is kept: --checkpoint FILE would be gone on from", err=True)
        raise


def _accuracy(test_data: str | None, layout: Layout) -> Callable[[Any], dict[str, float]] | None:
    if test_data is None:
        return None
    import torch

    inputs, targets = read_labelled(test_data, layout, "test").tensors

    def evaluate(model: Any) -> dict[str, float]:
        with torch.no_grad():
            return {"accuracy": float((model(inputs).argmax(dim=1) == targets).double().mean())}

    return evaluate


def _write(trainer: ShuffledTrainer, given: Given) -> None:
    import torch

    history = trainer.history
    if given["model_file"] is not None:
        with written_file(given["model_file"]) as partial:
            torch.save(trainer.model.state_dict(), partial)
    if given["history_file"] is not None:
        as_json = Path(given["history_file"]).suffix.lower() == ".json"
        with written_file(given["history_file"]) as partial:
            (history.to_json if as_json else history.to_csv)(partial)
    if given["plot_file"] is not None:
        from shuffledp.plotting import new_axes
        from shuffledp.plotting._curves import learning_curve

        ax = learning_curve(history, delta=given["delta"], ax=new_axes())
        write_picture(given["plot_file"], ax)


def _report(trainer: ShuffledTrainer, bound: Bound, given: Given, as_json: bool) -> None:
    accuracy = trainer.history.last.get("accuracy")
    if as_json:
        facts = {"rounds": trainer.rounds, "parameters": trainer.randomizer.dimension}
        answer = {"lower": bound.lower, "upper": bound.upper, "accuracy": accuracy}
        seeded = given["seed"] is not None
        print_json(**answer, **facts, epsilon0=trainer.randomizer.epsilon0, simulated=seeded)
        return
    one, least = trainer.spending.round, trainer.least_reports
    relied = "" if least == trainer.cohort else f", {least:,} of them relied on"
    measured = [("accuracy", "not measured: --test FILE names examples that may be looked at")]
    if accuracy is not None:
        measured = [("accuracy", f"{accuracy:.4f} on {given['test_data']}")]
    because = [("SIMULATED", f"by --seed {given['seed']}: repeatable, which protects nobody")]
    simulated = "SIMULATED " * (given["seed"] is not None)
    print_answer(
        f"{simulated}epsilon <= {rounded_up(bound.upper)} at delta = {written(given['delta'])} "
        f"after {trainer.rounds:,} rounds",
        [
            *(because if simulated else []),
            *measured,
            ("clients", f"{trainer.cohort:,} of {one.population or trainer.cohort:,} in each round{relied}"),
            ("randomizer", repr(trainer.randomizer)),
            ("neighbours", "one client's example replaced by any other"),
        ],
    )
