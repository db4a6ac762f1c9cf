"""Medians of CPU time: of a task here, of two tasks in turn, of a fresh interpreter's first steps.

CPU time of the process, all its threads counted, moves little when the machine is shared. A task
takes the number of the repetition and should vary its parameters with it, so that no cache of an
earlier repetition can answer.
"""

import math
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from statistics import median
from time import process_time

Task = Callable[[int], object]


def cpu(task: Task, repetition: int = 0) -> float:
    """CPU seconds of one call."""
    start = process_time()
    task(repetition)
    return process_time() - start


def median_cpu(task: Task, repeats: int = 5) -> float:
    """Median CPU seconds of a warm call."""
    task(0)
    return median(cpu(task, i) for i in range(1, repeats + 1))


def cpu_within(task: Task, patience: float) -> float:
    """CPU seconds of a warm call; infinite if it, or the first one, takes longer than that."""

    def out_of_patience(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, out_of_patience)
    try:
        found = 0.0
        for repetition in (0, 1):
            signal.setitimer(signal.ITIMER_VIRTUAL, patience)
            found = cpu(task, repetition)
        return found
    except TimeoutError:
        return math.inf
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


def median_cpu_of_many(task: Task, size: int = 10, repeats: int = 25) -> float:
    """The same for calls so short that the clock and a cold cache count: ``size`` different ones each."""

    def many(repetition: int) -> None:
        for i in range(size):
            task(size * repetition + i)

    return median_cpu(many, repeats) / size


def in_turn(ours: Task, baseline: Task, repeats: int = 3) -> tuple[float, float]:
    """Median CPU seconds of two warm tasks, run alternately so that both see the same machine."""
    ours(0)
    baseline(0)
    pairs = [(cpu(ours, i), cpu(baseline, i)) for i in range(1, repeats + 1)]
    return median(a for a, _ in pairs), median(b for _, b in pairs)


def fresh_interpreters(codes: Sequence[str], repeats: int = 15) -> dict[str, float]:
    """Median CPU seconds of each piece of code in a new interpreter, the pieces taken in turn.

    The interpreter's own start is not counted. One unmeasured round fills the bytecode caches.
    """
    rounds = [[fresh_interpreter(code) for code in codes] for _ in range(repeats + 1)]
    return {code: median(cpu) for code, *cpu in zip(codes, *rounds[1:], strict=True)}


def fresh_interpreter(code: str) -> float:
    """CPU seconds that a new interpreter spends in `code`."""
    measure = f"import time as _t; _s = _t.process_time()\n{code}\nprint(_t.process_time() - _s)"
    command = [sys.executable, "-c", measure]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(output.split()[-1])


def fresh_memory(code: str) -> float:
    """The most bytes that a new interpreter held at once for `code` (Linux tells; a child's own peak in
    ``getrusage`` begins with what its parent held)."""
    told = f"{code}\nprint(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    output = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True).stdout
    return 1024.0 * float(output.split()[-2])
