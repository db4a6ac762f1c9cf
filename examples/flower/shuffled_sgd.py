"""Shuffled learning in Flower: forty users with many records each, some of whom never answer.

    pip install "shuffledp[flower]"
    python shuffled_sgd.py

Each node holds 1 to 8 records and takes five steps on them. Its reply passes a mod that makes it one
randomized report. A round counts with at least 20 reports: every tenth client fails in each. In the fourth
one client's process is killed, and with it all clients that Flower simulates there: that round and the next
are void, cost nothing and change nothing. The last line is a JSON object: the history, with the certified
epsilon of every round.
"""

from __future__ import annotations

import json
import os
import signal

import torch
from flwr.app import ArrayRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation
from torch import nn

from shuffledp.flower import ReportMod, ShuffledReports
from shuffledp.learning import Budget, parameter_count
from shuffledp.randomizers.privunit import PrivUnit

POPULATION, LEAST, ROUNDS = 40, 20, 5
BUDGET = Budget(epsilon=40.0, delta=1e-3)  # forty people hide little: a toy
KILLED = 7  # this node's process is killed while it trains, in the fourth round


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(4, 2)


def records(user: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Two clouds of points, a few points per user."""
    generator = torch.Generator().manual_seed(user)
    labels = torch.randint(2, (1 + user % 8,), generator=generator)
    return torch.randn(len(labels), 4, generator=generator) + 2.0 * (2 * labels[:, None] - 1), labels


RANDOMIZER = PrivUnit(parameter_count(model()), epsilon0=4.0, radius=0.2)

client = ClientApp(mods=[ReportMod(RANDOMIZER)])


@client.train()
def train(message: Message, context: Context) -> Message:
    """Five steps on this node's own records, as anybody would write it."""
    user = int(context.node_config["partition-id"])
    number = int(message.content["config"]["server-round"])
    if user == KILLED and number == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    if (user + number) % 10 == 0:
        raise ConnectionError("the train went into a tunnel")
    net, (inputs, labels) = model(), records(user)
    net.load_state_dict(message.content["arrays"].to_torch_state_dict())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(inputs), labels).backward()
        optimizer.step()
    return Message(RecordDict({"arrays": ArrayRecord(net.state_dict())}), reply_to=message)


server = ServerApp()


@server.main()
def main(grid: Grid, context: Context) -> None:
    strategy = ShuffledReports(
        RANDOMIZER, population=POPULATION, least_reports=LEAST, rate=2.0, budget=BUDGET
    )
    result = strategy.start(grid, ArrayRecord(model().state_dict()), num_rounds=ROUNDS, timeout=600)
    net = model()
    net.load_state_dict(result.arrays.to_torch_state_dict())
    everybody = [records(user) for user in range(POPULATION)]
    points, labels = (torch.cat(part) for part in zip(*everybody, strict=True))
    with torch.no_grad():
        accuracy = float((net(points).argmax(dim=1) == labels).double().mean())
    history = {number: dict(record) for number, record in result.train_metrics_clientapp.items()}
    print(json.dumps({"accuracy": accuracy, "spent": strategy.spending.spent, "history": history}))


if __name__ == "__main__":
    run_simulation(server, client, num_supernodes=POPULATION)
