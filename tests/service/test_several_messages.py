"""Several messages a person through a running shuffler: together on the way, torn apart when mixed."""

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from service.running import Setting, public_key, sealed, sealed_report
from service.test_promises import released_rows, wait_for

import shuffledp as sdp
from shuffledp.errors import PlanError
from shuffledp.service.batches import analyze_batch, open_batch, result_of
from shuffledp.service.sealing import at_rest, body_size, inner_size, open_inner
from shuffledp.shuffling.report_files import open_reports

PEOPLE = 60
VALUES = [7.0] * 40 + [2.0] * 20


@cache
def ages() -> sdp.SumProtocol:
    """Numbers in shares: nine messages a person."""
    return sdp.SumProtocol(0, 10, epsilon=2.0, delta=1e-3, n=PEOPLE, messages="auto")


@cache
def pets() -> sdp.HistogramProtocol:
    """The own category and two random ones."""
    own_and_two = sdp.BlanketMessages(k=2, rate=0.5, slots=2)
    return sdp.HistogramProtocol(["no", "yes"], 2.0, 1e-2, PEOPLE, randomizer=own_and_two)


def test_a_sum_of_shares_comes_through_and_one_body_counts_once(setting: Setting) -> None:
    task = setting.create(protocol=ages())
    running = setting.start()
    plan = sdp.client.fetch(f"{running.address}/tasks/pets", signer=setting.key.signer.hex())
    assert "Together they reveal the answer" in plan.words
    assert sdp.client.submit(plan, 7.0) == (1,)
    bodies = sealed(setting, task, VALUES[1:])
    assert {len(body) for body in bodies} == {body_size(4, ages().messages)}
    assert set(running.post_all(bodies[:-1])) == {202}
    assert set(running.post_all(bodies[:9])) == {409}, "sent again: not one message more"
    page = running.get("/").decode()
    assert f"of {ages().messages} messages a person, which together reveal the answer" in page
    assert not setting.batches(), "59 people have sent 531 messages, 60 people are waited for"
    assert running.post(bodies[-1]) == 202
    wait_for(setting, 1)
    (batch,) = setting.batches()
    assert open_reports(batch).n == PEOPLE * ages().messages
    result = analyze_batch(batch, setting.key)
    assert result.n == PEOPLE
    low, high = result.interval(confidence=1 - 1e-9)
    assert low <= sum(VALUES) <= high
    assert "everything rests on the shuffler" in str(result.privacy)
    with setting.shuffler() as shuffler:
        assert shuffler.status("pets")["batches"] == [PEOPLE]


def test_neither_the_store_nor_a_batch_tells_which_messages_belong_together(each: Setting) -> None:
    task, m, width = each.create(protocol=ages(), spread=5), ages().messages, inner_size(4)
    with each.shuffler() as shuffler:
        collection = shuffler.collection("pets")
        kept = [shuffler.opened(collection, body) for body in sealed(each, task, VALUES + VALUES[:10])]
        shuffler.store.add(kept)
        store = each.stored
        key = shuffler.keys.at_rest(task.id)
        assert key not in store
        person = {}
        for place, one in enumerate(kept):
            inner = at_rest(one.sealed, one.id, key)
            for start in range(0, m * width, width):
                seal = inner[start : start + width]
                assert seal not in store, "the store has no message as it will be released"
                person[seal] = place
        shuffler.release("pets")
        rows = released_rows(each)
        waiting = shuffler.pending("pets")
    assert len(rows) == len(set(rows)) == m * (len(kept) - waiting)
    assert set(Counter(person[row] for row in rows).values()) == {m}, "whole people are kept back"
    assert 0 <= waiting <= 5
    order = np.array([person[row] for row in rows])
    together = float(np.mean(order[1:] == order[:-1]))  # of neighbours, by chance (m - 1)/(rows - 1)
    assert together < (m - 1) / (len(rows) - 1) + 6 * (m / len(rows) / len(rows)) ** 0.5
    opened = [open_inner(row, task.id, each.key.opens) for row in rows]
    assert {len(message) for message in opened} == {4}


def test_one_bad_message_costs_one_message_of_a_histogram_and_is_told_of_a_sum(each: Setting) -> None:
    for name, protocol, values in (("pets", pets(), ["yes"] * 40 + ["no"] * 20), ("ages", ages(), VALUES)):
        task = each.create(name, protocol)
        width, m = task.report_bytes, protocol.messages
        hostile = [bytes([255]) * width, *[bytes(width)] * (m - 1)]  # one outside the domain
        with each.shuffler() as shuffler:
            bodies = sealed(each, task, values)
            bodies.append(sealed_report(task, public_key(each, task), hostile))
            shuffler.store.add([shuffler.opened(shuffler.collection(name), body) for body in bodies])
            found = open_batch(shuffler.release(name), each.key)
        assert (found.n, found.not_opened, found.outside) == (m * 61 - 1, 0, 1)
        if name == "ages":
            with pytest.raises(ValueError, match="one is missing"):
                result_of(found)
        else:
            result = result_of(found)
            assert result.n == PEOPLE, "a person of whom a message is missing does not count"
            assert result.privacy.n_honest == PEOPLE
            low, high = result.interval(confidence=1 - 1e-9)
            moved = result.poisoning(1)
            assert low[1] - moved[1] <= 40 <= high[1] + moved[1]


def test_a_plan_of_several_messages_is_refused_where_one_report_must_be_bounded(embedded: Setting) -> None:
    embedded.create(protocol=pets())
    running = embedded.start("--no-release")
    address, signer = f"{running.address}/tasks/pets", embedded.key.signer.hex()
    with pytest.raises(PlanError, match="max_epsilon0"):
        sdp.client.fetch(address, signer=signer, max_epsilon0=8.0)
    plan = sdp.client.fetch(address, signer=signer)
    with pytest.raises(ValueError, match="one value"):
        sdp.client.submit(plan, ["no", "yes"])
    assert running.get("/metrics").count(b'outcome="accepted"') == 0


def test_messages_that_nobody_could_send_in_one_body_are_refused(embedded: Setting) -> None:
    randomizer: Any = sdp.BlanketMessages(k=2, rate=1e-3, slots=2000)
    many = sdp.HistogramProtocol(["no", "yes"], 30.0, 0.5, 2, randomizer=randomizer)
    with pytest.raises(PlanError, match="more than 65536"):
        embedded.create(protocol=many)
    assert not Path(embedded.data / "batches").exists()


def test_a_mean_of_vectors_comes_through(each: Setting) -> None:
    moves = sdp.VectorMeanProtocol(dimension=2, radius=1.0, epsilon=3.0, delta=1e-3, n=PEOPLE)
    task = each.create(protocol=moves)
    with each.shuffler() as shuffler:
        bodies = sealed(each, task, [[0.6, -0.8]] * PEOPLE)
        shuffler.store.add([shuffler.opened(shuffler.collection("pets"), body) for body in bodies])
        result = analyze_batch(shuffler.release("pets"), each.key)
    assert result.n == PEOPLE
    low, high = result.interval(confidence=1 - 1e-9)
    assert (low <= [0.6, -0.8]).all()
    assert (high >= [0.6, -0.8]).all()
