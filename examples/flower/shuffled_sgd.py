"""Shuffled, locally private SGD in Flower: a client that randomizes, a strategy that plays the shuffler.

    pip install "shuffledp[learn]" "flwr[simulation]==1.41.0"
    python shuffled_sgd.py

Each node holds one example. Its reply is one randomized report: no metrics, no counts, nothing else. The
strategy stands where the shuffler stands: it must be run by somebody whom the clients trust to
forget who sent what, since Flower's messages carry node ids up to that point. It draws cohorts
securely, releases nothing unless the whole cohort has answered, counts the privacy spent and stops
before the budget is exceeded.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.common import MessageType
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from torch import nn
from torch.utils.data import TensorDataset

from shuffledp import Shuffled
from shuffledp.learning import Budget, Spending, aggregate, parameter_count, randomize_gradient
from shuffledp.learning._clients import draw_cohort
from shuffledp.randomizers.privunit import PrivUnit

POPULATION, COHORT, ROUNDS = 40, 30, 8
BUDGET = Budget(epsilon=20.0, delta=1e-3)  # forty people hide little: a toy


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(4, 2)


def people() -> TensorDataset:
    """Two clouds of points, one point per person."""
    generator = torch.Generator().manual_seed(5)
    labels = torch.arange(POPULATION) % 2
    points = torch.randn(POPULATION, 4, generator=generator) + 2.0 * (2 * labels[:, None] - 1)
    return TensorDataset(points, labels)


RANDOMIZER = PrivUnit(parameter_count(model()), epsilon0=4.0)

client = ClientApp()


@client.train()
def train(message: Message, context: Context) -> Message:
    """The gradient of this node's own example at the server's model, clipped and randomized."""
    net = model()
    net.load_state_dict(message.content["arrays"].to_torch_state_dict())
    example, label = people()[int(context.node_config["partition-id"])]
    loss = nn.functional.cross_entropy(net(example[None]), label[None])
    gradient = torch.autograd.grad(loss, list(net.parameters()))
    report = randomize_gradient(gradient, RANDOMIZER)
    content = RecordDict({"report": ArrayRecord({"report": Array(report)})})
    return Message(content, reply_to=message)


class ShuffledSGD(FedAvg):
    """One SGD step per round from the shuffled reports of a secure random cohort of fixed size."""

    def __init__(self, net: nn.Module, spending: Spending, lr: float) -> None:
        super().__init__(fraction_evaluate=0.0, min_available_nodes=spending.round.population or 1)
        self.net, self.spending = net, spending
        self.optimizer = torch.optim.SGD(net.parameters(), lr=lr)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        self.spending.require()  # before anybody is asked
        nodes = list(grid.get_node_ids())
        if len(nodes) != self.spending.round.population:
            raise RuntimeError(f"{len(nodes)} nodes, the budget is for {self.spending.round}")
        drawn = draw_cohort(len(nodes), self.spending.round.n, None).tolist()
        record = RecordDict({self.arrayrecord_key: arrays, self.configrecord_key: config})
        asked = [nodes[index] for index in drawn]
        return list(self._construct_messages(record, asked, MessageType.TRAIN))

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        # Only the reports are kept: ids and everything else end here.
        reports = [reply.content["report"]["report"].numpy() for reply in replies if reply.has_content()]
        if len(reports) != self.spending.round.n:
            return None, None  # an incomplete crowd hides less: nothing is released
        self.spending = self.spending.spend()
        parameters = list(self.net.parameters())
        # The order of arrival would show in the rounding of the mean: a secure random one instead.
        shuffled = np.stack(reports)[draw_cohort(len(reports), len(reports), None).numpy()]
        estimate = aggregate(shuffled, self.spending.round.randomizer, like=parameters)
        for parameter, part in zip(parameters, estimate, strict=True):
            parameter.grad = part
        self.optimizer.step()
        return ArrayRecord(self.net.state_dict()), None


server = ServerApp()


@server.main()
def main(grid: Grid, context: Context) -> None:
    net = model()
    one = Shuffled(RANDOMIZER, n=COHORT).sampled_from(POPULATION)
    strategy = ShuffledSGD(net, Spending(one, budget=BUDGET), lr=0.2)
    strategy.start(grid, ArrayRecord(net.state_dict()), num_rounds=ROUNDS)
    points, labels = people().tensors
    with torch.no_grad():
        accuracy = float((net(points).argmax(dim=1) == labels).double().mean())
    spent = strategy.spending.epsilon(delta=BUDGET.delta).upper
    print(f"{strategy.spending.spent} rounds, accuracy {accuracy:.2f}, epsilon {spent:.2f}")


if __name__ == "__main__":
    run_simulation(server, client, num_supernodes=POPULATION)
