"""Shuffled learning in Flower: a mod makes a client's update a report, a strategy plays the shuffler.

    app = ClientApp(mods=[ReportMod(randomizer)])                       on the devices
    strategy = ShuffledReports(randomizer, cohort=..., population=..., budget=Budget(3.0, 1e-5))
    strategy.start(grid, ArrayRecord(model.state_dict()), num_rounds=strategy.spending.rounds_left)

The client's own training function stays as it is: it takes the server's arrays, trains as long as it likes
on all of its data, and returns arrays. The mod sends one report of the difference, clipped and randomized:
no arrays, no metrics, no counts. The strategy must be run by somebody whom the clients trust to forget who
sent what: Flower's messages carry node ids up to there. It draws cohorts securely, mixes the reports, and
steps by their mean. Certified epsilon and numbers of reports are in the history.

*What comes, and what does not* (``least_reports``). A reply that fails or never comes is a drop-out. A report
names its round, and is mixed in that one or never. Of two from one node the first
counts. A report that the randomizer cannot have sent is dropped. Below the minimum a round is void: the
model stays, and nothing is spent.

Needs Flower, best in an environment of its own: ``pip install "shuffledp[flower]"``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.common import MessageType
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg

from shuffledp import _validate
from shuffledp._certified.rounding import Floats
from shuffledp.learning._budget import Budget, Spending, training_round
from shuffledp.learning._clients import draw_cohort
from shuffledp.randomizers.vectors import VectorRandomizer

__all__ = ["ReportMod", "ShuffledReports"]

REPORT = "report"


def _flat(arrays: ArrayRecord) -> Floats:
    parts = [np.asarray(part, np.float64).reshape(-1) for part in arrays.to_numpy_ndarrays()]
    return np.concatenate(parts) if parts else np.zeros(0)


class ReportMod:
    """A mod for ``ClientApp``: a reply to training becomes one report of the update, and nothing else.

    The update is the arrays that came minus those that are returned."""

    def __init__(self, randomizer: VectorRandomizer) -> None:
        self.randomizer = randomizer

    def __call__(self, message: Message, context: Context, call_next: Any) -> Message:
        if message.metadata.message_type != MessageType.TRAIN:
            raise RuntimeError(
                f"only training is private: a message of type {message.metadata.message_type!r} came"
            )
        before = _flat(next(iter(message.content.array_records.values())))
        reply = call_next(message, context)
        if reply.has_error():
            return reply
        records = list(reply.content.array_records.values())
        if len(records) != 1 or (after := _flat(records[0])).size != before.size:
            raise ValueError("a client must return one ArrayRecord with the arrays that it was sent")
        report = self.randomizer.randomize(self.randomizer.clip(before - after))
        number = str(message.content["config"]["server-round"])
        content = RecordDict({REPORT: ArrayRecord({number: Array(report)})})
        return Message(content, reply_to=message)


class ShuffledReports(FedAvg):
    """The shuffler and the server: ``rate`` times the mean of the reports is subtracted from the arrays.

    ``population``: all nodes that may ever take part; those that are not connected are drop-outs.
    ``cohort`` of them are asked in a round (default: all)."""

    def __init__(
        self,
        randomizer: VectorRandomizer,
        *,
        population: int,
        cohort: int | None = None,
        least_reports: int | None = None,
        rate: float = 1.0,
        budget: Budget,
    ) -> None:
        super().__init__(fraction_evaluate=0.0)
        self.population = _validate.count("population", population)
        self.cohort = (
            self.population
            if cohort is None
            else _validate.count("cohort", cohort, most=self.population, limit="the population")
        )
        sizes = {"cohort": self.cohort, "population": self.population}
        one = training_round(randomizer, **sizes, least_reports=least_reports)
        self.least_reports = self.cohort if least_reports is None else least_reports
        self.spending = Spending(one, budget=budget)
        self.rate, self.void = _validate.positive("rate", rate), 0
        self._asked: set[int] = set()
        self._arrays = ArrayRecord()

    def summary(self) -> None:
        """Nothing beyond Flower's own words: what is spent is in the history."""

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Ask a secret random cohort; BudgetExceededError before anybody is."""
        self.spending.require()
        nodes = sorted(grid.get_node_ids())
        if len(nodes) > self.population:
            raise RuntimeError(f"{len(nodes)} nodes are connected, the budget is for {self.population}")
        drawn = draw_cohort(self.population, self.cohort, None).tolist()
        asked = [nodes[place] for place in drawn if place < len(nodes)]
        self._asked, self._arrays = set(asked), arrays
        config["server-round"] = server_round
        record = RecordDict({self.arrayrecord_key: arrays, self.configrecord_key: config})
        return list(self._construct_messages(record, asked, MessageType.TRAIN))

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """A step from the shuffled reports, or nothing where too few came."""
        reports = self._reports(server_round, replies)
        if len(reports) < self.least_reports:
            self.void += 1
            return None, self._metrics(len(reports))
        self.spending = self.spending.spend()
        # The order of arrival would show in the rounding of the mean: a secure random one instead.
        order = draw_cohort(len(reports), len(reports), None).numpy()
        step = self.rate * self.spending.round.randomizer.mean(np.stack(reports)[order])
        changed, start = {}, 0
        for name, array in self._arrays.items():
            part = array.numpy()
            move = step[start : start + part.size].reshape(part.shape)
            changed[name] = Array((part - move).astype(part.dtype))
            start += part.size
        return ArrayRecord(changed), self._metrics(len(reports))

    def _reports(self, server_round: int, replies: Iterable[Message]) -> list[Any]:
        """One of this round of each node that was asked, if it is one; ids and all else end here."""
        found: dict[int, Any] = {}
        for reply in replies:
            node = reply.metadata.src_node_id
            if reply.has_error() or node not in self._asked or node in found:
                continue
            try:
                report = reply.content[REPORT][str(server_round)].numpy()
                checked, single = self.spending.round.randomizer._checked_reports(report)
            except (KeyError, TypeError, ValueError):
                continue
            if single:
                found[node] = checked[0]
        return list(found.values())

    def _metrics(self, reports: int) -> MetricRecord:
        budget = self.spending.budget
        assert budget is not None
        spent = self.spending.upper_epsilon(delta=budget.delta)
        return MetricRecord(
            {"epsilon": spent, "delta": budget.delta, "reports": reports, "void-rounds": self.void}
        )
