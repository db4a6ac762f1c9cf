"""A client of a running shuffler: fetch the signed plan, check it, randomize, seal twice, submit once.

    plan = sdp.client.fetch("https://survey.example/tasks/pets", signer="5f0c...", max_epsilon0=3.0)
    sdp.client.submit(plan, "cat")

``signer`` is the analyst's public key, which comes with the program and not from the server. The answer is
randomized once and sealed under one random id: however often it has to be sent, it counts once. Of a plan
with several messages a person all go in one body, each with a seal of its own.
Needs the extra ``client``.
"""

from __future__ import annotations

import json
import random
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shuffledp import _validate
from shuffledp._digits import rounded_up, written
from shuffledp.collecting.plan import short_fingerprint
from shuffledp.errors import PlanError, SubmitError
from shuffledp.service.documents import Signed, Task
from shuffledp.service.sealing import PublicKey, new_id, seal

if TYPE_CHECKING:
    from shuffledp.collecting._protocol import Protocol

_MOST_ANSWER = 1 << 20  # bytes of a plan
_LONGEST_WAIT = 30.0  # seconds between two attempts
_LATER = (408, 429, 500, 502, 503, 504)


@dataclass(frozen=True)
class Plan:
    """A task whose signature, fingerprint and cost were checked, and where to send reports."""

    address: str
    task: Task
    key: PublicKey

    @property
    def protocol(self) -> Protocol:
        """What is asked, and how answers are randomized."""
        return self.task.protocol

    @property
    def words(self) -> str:
        """What submitting an answer means, for the person who gives it."""
        protocol, alone = self.protocol, self.protocol.randomizer.facts().epsilon0.upper
        if protocol.messages == 1:
            sent = (
                "Your answer is changed at random on this device before it is sent, and sealed so that the "
                f"server which collects it cannot read it. Alone it is {rounded_up(alone)}-differentially "
                "private; mixed"
            )
        else:
            sent = (
                f"Your answer is sent in {protocol.messages} messages, each sealed so that the server which "
                "collects them cannot read it. Together they reveal the answer: all rests on that server, "
                "which must mix and not tell which belong together. Mixed"
            )
        return (
            f"{sent} among the reports of {protocol.n:,} people it meets ({written(protocol.epsilon)}, "
            f"{written(protocol.delta)}). Plan {short_fingerprint(protocol)}."
        )


class Receipt(NamedTuple):
    """An acknowledged report, and how often it was sent."""

    attempts: int


def fetch(
    address: str,
    *,
    signer: str,
    fingerprint: str | None = None,
    max_epsilon0: float | None = None,
    timeout: float = 10.0,
) -> Plan:
    """The task at ``address``, if ``signer`` signed it, and one report costs no more than ``max_epsilon0``.

    ``fingerprint``: of the plan, if it is pinned. PlanError says what is wrong."""
    answer = _task(address, timeout)
    pinned = {"fingerprint": fingerprint, "max_epsilon0": max_epsilon0}
    task = Task.checked(Signed.from_dict(answer.get("task")), signer=bytes.fromhex(signer), **pinned)
    return Plan(address.rstrip("/"), task, task.shuffler_key(Signed.from_dict(answer.get("key"))))


def submit(plan: Plan, value: Any, *, attempts: int = 8, timeout: float = 10.0) -> Receipt:
    """Randomize one value, seal it, send it until it is acknowledged: it counts once.

    DomainError where the value is none of the plan's; SubmitError after so many ``attempts``."""
    tries = _validate.count("attempts", attempts)
    protocol = plan.protocol
    report = np.asarray(protocol.randomize(value), dtype=protocol.report_dtype.newbyteorder("<"))
    several = (protocol.messages,) if protocol.messages > 1 else ()
    if report.shape != several + protocol.report_shape:
        raise ValueError("value must be one value")
    messages = [row.tobytes() for row in (report if several else report[None])]
    random.SystemRandom().shuffle(messages)
    key, name = plan.key, new_id()
    body = seal(messages, plan.task.id, plan.task.analyst, key, name)
    for attempt in range(1, tries + 1):
        status, wait = _post(f"{plan.address}/reports", body, timeout)
        if status in (202, 409):  # 409: an earlier attempt arrived, its answer did not
            return Receipt(attempt)
        if status == 422:  # the shuffler has a new key; the report and its id stay
            key = plan.task.shuffler_key(Signed.from_dict(_task(plan.address, timeout).get("key")))
            body = seal(messages, plan.task.id, plan.task.analyst, key, name)
        elif status is not None and status not in _LATER:
            raise SubmitError(f"the shuffler refused the report: {status}")
        elif attempt < tries:
            backoff = min(_LONGEST_WAIT, 0.25 * 2.0**attempt)
            time.sleep(min(wait, _LONGEST_WAIT) + random.uniform(0.0, backoff))
    raise SubmitError(f"the shuffler did not acknowledge the report in {tries} attempts")


def _task(address: str, timeout: float) -> dict[str, Any]:
    with urllib.request.urlopen(address, timeout=timeout) as answer:
        text = answer.read(_MOST_ANSWER)
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError):
        entries = None
    if not isinstance(entries, dict):
        raise PlanError(f"no task at {address!r}")
    return entries


def _post(address: str, body: bytes, timeout: float) -> tuple[int | None, float]:
    """(status, seconds to wait as the server asks); no status where there was no answer."""
    headers = {"Content-Type": "application/octet-stream"}
    request = urllib.request.Request(address, data=body, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return int(answer.status), 0.0
    except urllib.error.HTTPError as error:
        with error:
            later = error.headers.get("Retry-After", "")
        return error.code, float(later) if later.isdecimal() else 0.0
    except OSError:  # refused, reset, timed out
        return None, 0.0
