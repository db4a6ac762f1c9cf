"""What the service says of itself: a page for people, counters for Prometheus, lines for a log.

Nothing in here is about one report: no address, no value, no time of arrival. The public count is in
steps of a twentieth of the threshold.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterable
from html import escape
from typing import Any

from shuffledp._digits import rounded_up, written

_STEPS = 20

_PROMISES = (
    "A report that was acknowledged is on the disk, once.",
    "A report is in at most one batch: what came once is refused from then on.",
    "No batch is smaller than the threshold; what went into a batch is deleted.",
    "The plan is signed; reports are sealed for it and open for no other.",
    "The shuffler sees no answer and keeps no address and no time; the analyst sees no sender.",
    "A bad report costs one report.",
    "Only as many reports as planned are counted on, however many come.",
    "Under overload the service says so (503) and loses nothing.",
)

_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem}"
    "h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}dt{opacity:.75}dd{margin:0 0 .6rem}"
    "progress{width:100%;height:1rem}code{word-break:break-all}"
)


def log(event: str, **fields: Any) -> None:
    """One line of JSON on standard error; the time to the minute."""
    line = {"time": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime()), "event": event, **fields}
    print(json.dumps(line), file=sys.stderr, flush=True)


def coarse(pending: int, minimum: int) -> int:
    """The count in steps of a twentieth of the threshold, rounded down."""
    return min(_STEPS, pending * _STEPS // minimum) * 100 // _STEPS


def page(tasks: Iterable[dict[str, Any]]) -> str:
    """All tasks, and what is promised."""
    listed = "".join(map(_section, tasks)) or "<p>No task yet.</p>"
    promises = "".join(f"<li>{escape(promise)}</li>" for promise in _PROMISES)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>shuffler</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><h1>A shuffler of private reports</h1>{listed}"
        f"<h2>What is promised</h2><ol>{promises}</ol></body></html>"
    )


def _section(task: dict[str, Any]) -> str:
    share = coarse(task["pending"], task["minimum"])
    amount = f"at least {share}%" if share else f"less than {100 // _STEPS}%"
    epsilon, alone = rounded_up(task["epsilon"]), f"one report alone: {rounded_up(task['epsilon0'])}"
    if task["messages"] > 1:
        alone = f"of {task['messages']} messages a person, which together reveal the answer"
    facts = {
        "collected": f'<progress max="100" value="{share}" aria-label="collected"></progress> {amount} '
        f"of the {task['minimum']:,} reports that a batch needs",
        "released": f"{len(task['batches'])} batch{'es' * (len(task['batches']) != 1)}",
        "privacy": f"epsilon &le; {epsilon} at delta = {written(task['delta'])}, certified for {task['n']:,} "
        f"honest reports; {alone}",
        "plan": f"{escape(task['protocol'])}, fingerprint <code>{task['fingerprint']}</code>",
    }
    rows = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in facts.items())
    return f"<h2>{escape(task['name'])}</h2><dl>{rows}</dl>"


def metrics(counts: Counter[tuple[str, str]], gauges: dict[str, int], pending: dict[str, int]) -> str:
    """In the text format of Prometheus."""
    lines = ["# TYPE shuffledp_reports_total counter"]
    for (task, outcome), count in sorted(counts.items()):
        lines.append(f'shuffledp_reports_total{{task="{task}",outcome="{outcome}"}} {count}')
    lines.append("# TYPE shuffledp_pending_reports gauge")
    lines += [f'shuffledp_pending_reports{{task="{task}"}} {n}' for task, n in sorted(pending.items())]
    for name, value in gauges.items():
        lines += [f"# TYPE shuffledp_{name} gauge", f"shuffledp_{name} {value}"]
    return "\n".join(lines) + "\n"
