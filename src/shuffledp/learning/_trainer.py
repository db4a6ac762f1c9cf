"""Shuffled, subsampled, locally private SGD, simulated end to end with the accountant attached.

Girgis et al. 2021, Algorithm 1. Per round, with cohort n of a population and g_i the gradient of
client i at the current model:

    report_i = randomizer(clip(g_i)),   estimate = mean of the de-biased reports,   step, project.

A client holds one example, or (``local_steps``) is a user with many records, who takes some steps on them all
alone and reports how far that went: one clipped report per user and round either way, so that what is
protected is all of a user's data. Some clients never answer: ``least_reports`` (``_budget``).

A round releases the new model and nothing else, and the model is computed from the shuffled reports
(``_clients``) and earlier models: momentum, schedules, projection and averages of iterates cost
no privacy. The certified epsilon holds even for somebody who sees all the shuffled reports.

Three things it does not cover. ``evaluate`` must look at data that may be looked at: the clients' losses
and accuracies are not private, and none are recorded. The settings (step, clipping, network) are free
only if they were chosen without the clients' data. A run that stops because of some client's data (a
gradient that is not finite) says something about it.

>>> import torch
>>> from shuffledp.randomizers.privunit import PrivUnit
>>> people = torch.utils.data.TensorDataset(torch.randn(500, 3), torch.randint(2, (500,)))
>>> model = torch.nn.Linear(3, 2)
>>> trainer = ShuffledTrainer(
...     model, people, torch.nn.functional.cross_entropy,
...     randomizer=PrivUnit(dimension=8, epsilon0=1.0), cohort=200,
...     optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
...     budget=Budget(epsilon=1.0, delta=1e-5),
... )
>>> trainer.run(2).spending.spent, float(trainer.epsilon(delta=1e-5)) < 1.0
(2, True)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from shuffledp import _html, _validate
from shuffledp._progress import Progress
from shuffledp.bound import Bound
from shuffledp.collecting.ledger import Ledger
from shuffledp.learning import _checkpoint as checkpoints
from shuffledp.learning._budget import Budget, Spending, epsilon0_for, rounds_for, training_round
from shuffledp.learning._clients import (
    ClientData,
    LocalUpdates,
    Loss,
    PerExampleGradients,
    UserData,
    draw_cohort,
    draw_events,
    shaped_like,
    trainable,
)
from shuffledp.learning._history import History
from shuffledp.learning._messages import GradientShares
from shuffledp.learning._reports import parameter_count, refuse_non_finite, simulated_sum
from shuffledp.randomizers.vectors import VectorRandomizer

Evaluate = Callable[[nn.Module], Mapping[str, float]]

_CHUNK_BYTES = {"cpu": 10 << 20, "cuda": 1 << 32}  # of gradients at a time; speed, and Ctrl-C is heard
_SECURE_CHUNK = 256  # clients; their reports take long


class ShuffledTrainer:
    """Trains ``model`` on the clients of ``dataset`` (or ``(X, y)``), one example each, a round at a time.

    * ``randomizer`` acts on gradients: its dimension is the number of parameters, its radius (in l2,
      l-infinity or l1, as it is) is where gradients are clipped.
    * ``cohort`` clients are drawn afresh in every round. ``optimizer`` and ``scheduler`` are any of
      PyTorch's, and act once a round. ``projection`` keeps the parameters within this l2 norm.
    * ``budget``: a round that would exceed it raises BudgetExceededError before anything is sent.
      ``ledger``: the file that also counts surveys of the same ``people`` (their name there) does so.
    * ``least_reports``: every round is accounted at so many, uses all that come, and is void below: it
      changes no model and costs nothing. ``drop_out``: simulated, the chance that a client never answers.
    * ``local_steps``: ``dataset`` is a list of users' (inputs, targets), who take so many steps of
      ``local_rate`` each.
    * ``seed`` or ``generator`` make the run repeatable, for simulations only: whoever knows the seed
      can undo the noise. Otherwise the clients' randomness and the cohorts are secure.
    * ``chunk`` clients' gradients are in memory at a time.
    * ``aggregate="messages"``: several messages a client, whose sum has hardly more noise than a trusted
      server's (``GradientShares``, given as ``randomizer``; or noise is sized for ``planned_rounds`` within
      the budget, gradients clipped to ``radius`` in l2). Everything then rests on the shuffler, and
      ``bytes_per_client`` is larger."""

    def __init__(
        self,
        model: nn.Module,
        dataset: Any,
        loss: Loss,
        *,
        randomizer: VectorRandomizer | GradientShares | None = None,
        cohort: int,
        optimizer: torch.optim.Optimizer,
        aggregate: str = "reports",
        radius: float = 1.0,
        planned_rounds: int | None = None,
        scheduler: torch.optim.lr_scheduler.LRScheduler | None = None,
        budget: Budget | None = None,
        ledger: Ledger | None = None,
        people: str | None = None,
        least_reports: int | None = None,
        drop_out: float = 0.0,
        local_steps: int | None = None,
        local_rate: float = 0.1,
        projection: float | None = None,
        seed: int | None = None,
        generator: torch.Generator | None = None,
        chunk: int | None = None,
    ) -> None:
        self.model, self.optimizer, self.scheduler = model, optimizer, scheduler
        self._parameters = trainable(model)
        _refuse_other_optimizer(optimizer, self._parameters)
        device = self._parameters[0].device
        self._data, self._gradients = _clients(model, dataset, loss, local_steps, local_rate)
        self.cohort = _validate.count("cohort", cohort, most=self._data.population, limit="the population")
        sizes = {"cohort": self.cohort, "population": self._data.population}
        if randomizer is None:
            randomizer = _planned(model, aggregate, radius, budget, planned_rounds, sizes)
        _refuse_other_randomizer(randomizer, aggregate, parameter_count(model))
        one = training_round(randomizer, **sizes, least_reports=least_reports)
        self.least_reports = self.cohort if least_reports is None else int(least_reports)
        self.drop_out = _validate.probability("drop_out", drop_out)
        if (ledger is None) != (people is None):
            raise ValueError("ledger and people (the name of the clients in it) go together")
        self.ledger, self.people = ledger, people
        self.spending = Spending(one, budget=budget)
        self.history = self._history([])
        self.projection = None if projection is None else _validate.positive("projection", projection)
        self.generator = _generator(seed, generator, device)
        self._chunk = _chunk(chunk, randomizer.dimension, device, secure=self.generator is None)
        self.rounds = self.void = 0
        self._resumed: Path | None = None

    def _history(self, rows: list[dict[str, float]]) -> History:
        budget = self.spending.budget
        return History(rows, delta=None if budget is None else budget.delta)

    def __repr__(self) -> str:
        part, budget = self.spending.round, self.spending.budget
        planned = "" if budget is None else f", budget ({budget.epsilon:g}, {budget.delta:g})"
        people = f"cohorts of {self.cohort:,} out of {self._data.population:,}"
        return f"ShuffledTrainer({part.randomizer!r}, {people}, {self.rounds} rounds done{planned})"

    def _repr_html_(self) -> str:
        return _html.text(repr(self)) + self.history._repr_html_()

    @property
    def randomizer(self) -> Any:
        return self.spending.round.randomizer

    @property
    def bytes_per_client(self) -> int:
        """What one client sends in a round, without whatever carries it."""
        if isinstance(self.randomizer, GradientShares):
            return self.randomizer.bytes_per_client
        report = self.randomizer.randomize(np.zeros(self.randomizer.dimension))
        return int(np.asarray(report).nbytes)

    def epsilon(self, *, delta: float) -> Bound:
        """The certified epsilon of all rounds so far."""
        return self.spending.epsilon(delta=delta)

    def rounds_for(self, *, epsilon: float, delta: float) -> int:
        """The most rounds, from the first one on, that are (epsilon, delta)-DP."""
        return rounds_for(self.spending.round, epsilon=epsilon, delta=delta)

    def epsilon0_for(self, *, epsilon: float, delta: float, rounds: int) -> float:
        """The largest epsilon0 of a randomizer like this one for which so many rounds are."""
        if isinstance(self.randomizer, GradientShares):
            raise ValueError("gradients in shares have no epsilon0: see GradientShares.planned")
        names = {field.name for field in fields(self.randomizer)} - {"epsilon0"}
        given = {name: getattr(self.randomizer, name) for name in names}
        given |= {"cohort": self.cohort, "population": self._data.population}
        given |= {"least_reports": self.least_reports, "rounds": rounds}
        return epsilon0_for(type(self.randomizer), epsilon=epsilon, delta=delta, **given)

    def step(self) -> None:
        """One round. Nothing is sent if the budget does not allow it."""
        with self._reserved(1):
            self._step()

    def _step(self, stopped: Callable[[], bool] = lambda: False) -> bool:
        """One round; false where it was ``stopped`` in the middle, before anything of it was used.

        Such a round costs nothing, and a seeded run has the random numbers of before: it will repeat it."""
        after = self.spending.spend()
        before = checkpoints.random_state(self.generator)
        asked = draw_cohort(self._data.population, self.cohort, self.generator)
        came = asked[~draw_events(self.drop_out, self.cohort, self.generator)] if self.drop_out else asked
        if len(came) < self.least_reports:
            self.rounds, self.void = self.rounds + 1, self.void + 1  # nothing of it is released
            return True
        total = self._reports(came, stopped)
        if total is None:
            checkpoints.restore_random_state(before, self.generator)
            return False
        # From here on reports have been sent: the round counts whatever happens next.
        self.spending = after
        self._update(total / len(came))
        self.rounds += 1
        return True

    def _reports(self, clients: Tensor, stopped: Callable[[], bool]) -> Tensor | None:
        """The sum of the clients' de-biased reports, a chunk of them at a time; None if stopped."""
        like = self._parameters[0]
        total = torch.zeros(self.randomizer.dimension, device=like.device, dtype=like.dtype)
        for start in range(0, len(clients), self._chunk):
            part = clients[start : start + self._chunk]
            groups = [(places, self._gradients(*data)) for places, *data in self._data.groups(part)]
            rows = groups[0][1] if groups else total[None]
            if len(rows) < len(part) or not groups:  # others, and who has no records at all
                rows = total.new_zeros(len(part), len(total))
                for places, some in groups:
                    rows[places.to(rows.device)] = some
            refuse_non_finite(rows)
            total += simulated_sum(self.randomizer, rows, self.generator)
            if stopped():
                return None
        return total

    @contextmanager
    def _reserved(self, rounds: int) -> Iterator[None]:
        """Rounds that the ledger has agreed to; those that were run are committed, however it ends."""
        if self.ledger is None or self.people is None or rounds == 0:
            yield
            return
        ticket = self.ledger.reserve_rounds(
            self.spending.round, rounds, population=self.people, note="training"
        )
        before = self.spending.spent
        try:
            yield
        finally:
            self.ledger.commit_rounds(ticket, rounds=self.spending.spent - before)

    def _update(self, estimate: Tensor) -> None:
        for parameter, part in zip(self._parameters, shaped_like(estimate, self._parameters), strict=True):
            parameter.grad = part
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.scheduler is not None:
            self.scheduler.step()
        if self.projection is not None:
            project(self._parameters, self.projection)

    def run(
        self,
        rounds: int,
        *,
        evaluate: Evaluate | None = None,
        every: int = 100,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 1000,
        progress: bool = False,
    ) -> Self:
        """So many more rounds. Ctrl-C gives up the current one and ends them, with a checkpoint.

        ``evaluate(model)`` gives numbers (on data that may be looked at) for the history, every so
        many rounds and at the end; epsilon is recorded at the budget's delta. ``progress`` shows a line
        on a terminal. A secure run that was loaded from a checkpoint goes on writing there unless
        another is named."""
        todo = _validate.count("rounds", rounds, least=0)
        self.spending.require(todo)  # before anybody is asked
        _validate.count("every", every)
        _validate.count("checkpoint_every", checkpoint_every)
        last = self.rounds + todo
        checkpoint = self._resumed if checkpoint is None else checkpoint
        if checkpoint is not None:
            # Before anything is sent: a crash must not forget the rounds that follow.
            self.save(checkpoint, in_flight=min(todo, _until(self.rounds, checkpoint_every)))
        line = Progress(todo, what="rounds", shown=progress)
        with self._reserved(todo), checkpoints.Interruptible() as interrupt, line:
            for _ in range(todo):
                if not self._step(lambda: interrupt.asked):
                    break
                if self.rounds % every == 0 or self.rounds == last:
                    self._record(evaluate)
                line.advance(latest=self.history.last)
                if interrupt.asked:
                    break
                if checkpoint is not None and self.rounds % checkpoint_every == 0:
                    self.save(checkpoint, in_flight=min(checkpoint_every, last - self.rounds))
        if checkpoint is not None:
            self.save(checkpoint)
        if interrupt.asked:
            raise KeyboardInterrupt
        return self

    def _record(self, evaluate: Evaluate | None) -> None:
        row: dict[str, float] = {"round": self.rounds}
        if self.spending.budget is not None:
            row["epsilon"] = self.spending.upper_epsilon(delta=self.spending.budget.delta)
        measured = {} if evaluate is None else evaluate(self.model)
        self.history.add({**row, **measured, **row})  # round and epsilon are ours to say

    def save(self, path: str | Path, *, in_flight: int = 0) -> None:
        """A checkpoint. ``in_flight``: rounds that may follow before the next one."""
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": None if self.scheduler is None else self.scheduler.state_dict(),
            "random": checkpoints.random_state(self.generator),
            "settings": self._settings(),
            "rounds": self.rounds,
            "void": self.void,
            "spent": self.spending.spent,
            "in_flight": in_flight,
            "history": self.history.rows,
        }
        checkpoints.write(path, state)

    def load(self, path: str | Path) -> Self:
        """Go on from a checkpoint of a trainer built with the same arguments.

        A seeded run goes on exactly as it would have. A secure one is charged for the rounds that may
        have been lost in a crash, and for those that this trainer has run (see
        ``_checkpoint``)."""
        state = checkpoints.read(path)
        checkpoints.refuse_other_randomness(state["random"], self.generator)
        checkpoints.refuse_other_settings(path, state["settings"], self._settings())
        checkpoints.restore_random_state(state["random"], self.generator)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.scheduler is not None:
            self.scheduler.load_state_dict(state["scheduler"])
        secure = self.generator is None
        # Going back takes no report back: what this trainer sent before stays spent.
        more = state["in_flight"] + self.spending.spent if secure else 0
        self.spending = self.spending.having_spent(state["spent"] + more)
        self.rounds, self.void = state["rounds"], state.get("void", 0)
        self.history = self._history(state["history"])
        self._resumed = Path(path) if secure else None
        return self

    def _settings(self) -> str:
        """What must be the same for a checkpoint to fit."""
        chunk = "" if self.generator is None else f", chunk={self._chunk}"
        lost = f", least_reports={self.least_reports}, drop_out={self.drop_out}"
        lost = lost if self.least_reports < self.cohort or self.drop_out else ""
        return f"{self.spending.round!r}, projection={self.projection!r}{lost}{chunk}"


def _until(rounds: int, every: int) -> int:
    """Rounds until the next multiple of ``every``, which is not this one."""
    return every - rounds % every


def project(parameters: list[nn.Parameter], radius: float) -> None:
    """Onto the l2 ball of this radius about zero."""
    with torch.no_grad():
        norm = torch.linalg.vector_norm(
            torch.stack([torch.linalg.vector_norm(value) for value in parameters])
        )
        for value in parameters:
            value.mul_((radius / norm.clamp_min(radius)).to(value.dtype))


def _generator(
    seed: int | None, generator: torch.Generator | None, device: torch.device
) -> torch.Generator | None:
    """The one that was given, on the model's device, or one with this seed, or none: secure."""
    if seed is not None and generator is not None:
        raise ValueError("give one of seed and generator, got both")
    if seed is not None:
        whole = _validate.count("seed", seed, least=0, most=2**63 - 1)
        return torch.Generator(device).manual_seed(whole)
    if generator is not None and generator.device.type != device.type:
        raise ValueError(
            f"generator must be on the model's device {device.type!r}, got {generator.device.type!r}"
        )
    return generator


def _clients(
    model: nn.Module, dataset: Any, loss: Loss, steps: int | None, rate: float
) -> tuple[ClientData, PerExampleGradients]:
    """People with one example each, or users who take some steps on their own; and what they report on."""
    device = trainable(model)[0].device
    if steps is None:
        return ClientData(dataset, device), PerExampleGradients(model, loss)
    count, size = _validate.count("local_steps", steps), _validate.positive("local_rate", rate)
    return UserData(dataset, device), LocalUpdates(model, loss, count, size)


def _planned(
    model: nn.Module,
    aggregate: str,
    radius: float,
    budget: Budget | None,
    rounds: int | None,
    sizes: dict[str, int],
) -> GradientShares:
    """Shares whose noise is sized for so many rounds within the budget."""
    if aggregate != "messages" or budget is None or rounds is None:
        raise ValueError('randomizer must be given, or aggregate="messages" with budget and planned_rounds')
    target: dict[str, Any] = {"epsilon": budget.epsilon, "delta": budget.delta, "rounds": rounds}
    return GradientShares.planned(parameter_count(model), radius=radius, **target, **sizes)


def _refuse_other_randomizer(randomizer: Any, aggregate: str, dimension: int) -> None:
    shared = _validate.one_of("aggregate", aggregate, ("reports", "messages")) == "messages"
    if isinstance(randomizer, GradientShares) != shared:
        raise ValueError(f'aggregate must be "messages" for GradientShares alone, got {aggregate!r}')
    if randomizer.dimension != dimension:
        raise ValueError(
            f"randomizer.dimension must be {dimension}, the number of parameters that are learned, got "
            f"{randomizer.dimension}"
        )


def _refuse_other_optimizer(optimizer: Any, parameters: list[nn.Parameter]) -> None:
    """Parameters that nobody steps would be asked about, and paid for, in vain."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"optimizer must be one of torch.optim, of the model's parameters, got {optimizer!r}")
    held = {id(value) for group in optimizer.param_groups for value in group["params"]}
    missing = sum(id(value) not in held for value in parameters)
    if missing:
        raise ValueError(
            f"optimizer must hold all {len(parameters)} parameters of the model that require a "
            f"gradient, got one without {missing} of them"
        )


def _chunk(chunk: int | None, dimension: int, device: torch.device, *, secure: bool) -> int:
    """Clients at a time: by default what fits a fixed amount of memory, and soon done."""
    if chunk is not None:
        return _validate.count("chunk", chunk)
    fitting = max(1, _CHUNK_BYTES.get(device.type, 1 << 27) // (4 * dimension))
    return min(fitting, _SECURE_CHUNK) if secure else fitting
