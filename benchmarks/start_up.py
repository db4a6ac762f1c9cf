"""How fast the command line starts: whole processes beside the imports that nobody can avoid.

python benchmarks/start_up.py
"""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median

from report import ROW_HEADER, Row, table

NUMPY, SPECIAL = "import numpy", "import numpy, scipy.special"
HELP = ["-m", "shuffledp", "--help"]
QUESTION = "epsilon --krr 16 --epsilon0 4 --n 1e6 --delta 1e-8"
EPSILON = ["-m", "shuffledp", *QUESTION.split()]


def command_line() -> Iterator[Row]:
    """CPU seconds of the commands, from the start of the interpreter to its end."""
    numpy, special, shown, answered = in_turn([["-c", NUMPY], ["-c", SPECIAL], HELP, EPSILON])
    yield Row("`shuffledp --help`", shown, numpy, f"`python -c '{NUMPY}'`", at_most=3)
    what = f"`shuffledp {QUESTION}`"
    yield Row(what, answered, special, f"`python -c '{SPECIAL}'`", at_most=3)


def in_turn(arguments: Sequence[list[str]], repeats: int = 15) -> list[float]:
    """Median CPU seconds of the interpreter with each of the arguments, taken in turn.

    One unmeasured round fills the bytecode caches."""
    rounds = [[process_cpu(each) for each in arguments] for _ in range(repeats + 1)]
    return [median(times) for times in zip(*rounds[1:], strict=True)]


def process_cpu(arguments: list[str]) -> float:
    """CPU seconds of one process."""
    before = children_cpu()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return children_cpu() - before


def children_cpu() -> float:
    """CPU seconds, user and system, of all processes that were started here and have ended."""
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    print(table(ROW_HEADER, [row.cells() for row in command_line()]))
