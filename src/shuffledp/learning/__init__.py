"""Learning from many people without seeing any of them: shuffled, subsampled, locally private SGD.

Girgis, Data, Diggavi, Kairouz, Suresh 2021 (Algorithm 1). In every round a uniformly random cohort of
fixed size is asked; each client computes the gradient of its own example at the current model, clips
it, randomizes it and sends one report; the shuffler permutes the reports; the server averages them,
undoes the bias and takes a step. ``ShuffledTrainer`` simulates that, with the certified accountant
attached; ``randomize_gradient`` and ``aggregate`` are the two ends for use in any federated framework.

Needs PyTorch: ``pip install "shuffledp[learn]"``. Importing ``shuffledp`` alone never imports it.
"""

try:
    import torch as _torch
except ImportError as error:
    raise ImportError('shuffledp.learning needs PyTorch: pip install "shuffledp[learn]"') from error

from shuffledp.errors import BudgetExceededError
from shuffledp.learning._budget import Budget, Spending, epsilon0_for, rounds_for, training_round
from shuffledp.learning._history import History
from shuffledp.learning._make_private import ShuffledClassifier, make_private
from shuffledp.learning._messages import GradientShares
from shuffledp.learning._planner import Setting, search_settings
from shuffledp.learning._reports import aggregate, parameter_count, randomize_gradient
from shuffledp.learning._trainer import ShuffledTrainer
from shuffledp.learning.mnist import load_mnist

del _torch

__all__ = [
    "Budget",
    "BudgetExceededError",
    "GradientShares",
    "History",
    "Setting",
    "ShuffledClassifier",
    "ShuffledTrainer",
    "Spending",
    "aggregate",
    "epsilon0_for",
    "load_mnist",
    "make_private",
    "parameter_count",
    "randomize_gradient",
    "rounds_for",
    "search_settings",
    "training_round",
]
