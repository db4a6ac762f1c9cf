"""The promises of the running shuffler, against real processes on both stores."""

import asyncio
import json
import random
import re
import socket
import time
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
from service.running import (
    ANSWERS,
    Running,
    Setting,
    post_all,
    public_key,
    request,
    sealed,
    sealed_report,
    survey,
)

import shuffledp as sdp
from shuffledp.errors import PlanError, TooFewReportsError
from shuffledp.service.batches import analyze_batch, open_batch, result_of
from shuffledp.service.keys import KeyRing
from shuffledp.service.sealing import body_size, inner_size
from shuffledp.shuffling.report_files import open_reports


def released_rows(setting: Setting) -> list[bytes]:
    """Every sealed report of every released batch."""
    return [
        row.tobytes() for path in setting.batches() for batch in open_reports(path).batches() for row in batch
    ]


def wait_for(setting: Setting, batches: int) -> None:
    end = time.monotonic() + 30.0
    while len(setting.batches()) < batches:
        assert time.monotonic() < end, setting.logs
        time.sleep(0.05)


def test_a_survey_from_the_first_report_to_the_estimate(setting: Setting) -> None:
    task = setting.create()
    running = setting.start()
    plan = sdp.client.fetch(
        f"{running.address}/tasks/pets", signer=setting.key.signer.hex(), fingerprint=survey().fingerprint
    )
    assert sdp.client.submit(plan, "yes") == (1,)
    values = ["yes"] * 199 + ["no"] * 100
    assert set(running.post_all(sealed(setting, task, values))) == {202}
    wait_for(setting, 1)
    result = analyze_batch(setting.batches()[0], setting.key)
    assert result.n == 300
    low, high = result.interval(confidence=1 - 1e-9)
    assert low[0] <= 100 <= high[0]
    assert low[1] <= 200 <= high[1]
    assert low[2] <= 0
    assert result.privacy.epsilon <= 1.0
    assert not result.privacy.weakened
    assert running.stop() == 0


def test_one_report_short_of_the_threshold_nothing_is_released(each: Setting) -> None:
    task = each.create(minimum=310)
    running = each.start()
    bodies = sealed(each, task, ["yes"] * 310)
    assert set(running.post_all(bodies[:-1])) == {202}
    time.sleep(0.5)
    assert not each.batches()
    with each.shuffler() as shuffler, pytest.raises(TooFewReportsError, match="at least 310"):
        shuffler.release("pets")
    assert running.post(bodies[-1]) == 202
    wait_for(each, 1)
    assert open_reports(each.batches()[0]).n == 310


def test_what_came_once_is_refused_now_later_after_its_release_and_after_a_restart(each: Setting) -> None:
    task = each.create()
    running = each.start()
    bodies = sealed(each, task, ["yes"] * 300)
    assert running.post(bodies[0]) == 202
    assert running.post(bodies[0]) == 409
    assert running.post_all(bodies[:1] * 32, connections=32) == [409] * 32
    running.kill()
    running = each.start()
    assert running.post(bodies[0]) == 409
    assert set(running.post_all(bodies[1:])) == {202}
    wait_for(each, 1)
    assert set(running.post_all(bodies)) == {409}
    running.stop()
    running = each.start()
    assert set(running.post_all(bodies)) == {409}
    assert len(released_rows(each)) == len(set(released_rows(each))) == 300


def test_acknowledged_is_stored_once_and_released_once_whenever_the_process_is_killed(each: Setting) -> None:
    kill_at_random_points(each, kills=2, reports=700)


@pytest.mark.slow
def test_acknowledged_is_released_once_through_a_hundred_kills(setting: Setting) -> None:
    kill_at_random_points(setting, kills=100, reports=6000)


def kill_at_random_points(setting: Setting, kills: int, reports: int) -> None:
    """Clients send again what was not acknowledged; batches are released all the while."""
    task = setting.create(spread=8)
    rng = random.Random(kills)
    waiting = sealed(setting, task, [rng.choice(ANSWERS) for _ in range(reports)])
    acknowledged: list[bytes] = []
    for _ in range(kills):
        running = setting.start("--group", "16")
        some, waiting = waiting[: reports // kills + 40], waiting[reports // kills + 40 :]
        statuses = kill_under_load(running, some, rng.uniform(0.02, 0.4))
        assert set(statuses) <= {0, 202, 409}
        acknowledged += [body for body, status in zip(some, statuses, strict=True) if status]
        waiting += [body for body, status in zip(some, statuses, strict=True) if not status]
    running = setting.start()
    while waiting:
        statuses = running.post_all(waiting)
        acknowledged += [body for body, status in zip(waiting, statuses, strict=True) if status in (202, 409)]
        waiting = [body for body, status in zip(waiting, statuses, strict=True) if status == 503]
    assert running.stop() == 0
    assert len(acknowledged) == reports
    with setting.shuffler() as shuffler:
        opened = [shuffler.opened(shuffler.collection("pets"), body) for body in acknowledged]
        assert not any(shuffler.store.add(opened)), "an acknowledged report was lost"
        shuffler.reconcile()
        out = released_rows(setting)
        assert len(out) == len(set(out)), "a report was released twice"
        assert len(out) + shuffler.pending("pets") == reports
        assert set(out) <= {one.sealed for one in opened}
        assert all(open_reports(path).n >= 300 for path in setting.batches())
        assert setting.batches()


def kill_under_load(running: Running, bodies: list[bytes], after: float) -> list[int]:
    """Statuses until the process is killed."""

    async def both() -> list[int]:
        sending = asyncio.create_task(post_all(running.port, bodies))
        await asyncio.sleep(after)
        running.process.kill()
        return await sending

    statuses = asyncio.run(both())
    running.process.wait()
    return statuses


def test_a_restored_backup_releases_nothing_twice(setting: Setting) -> None:
    """The journal of releases outlives the store."""
    task = setting.create()
    bodies = sealed(setting, task, ["yes"] * 350)
    with setting.shuffler() as shuffler:
        collection = shuffler.collection("pets")
        shuffler.store.add([shuffler.opened(collection, body) for body in bodies[:320]])
    backup = backed_up(setting)
    with setting.shuffler() as shuffler:
        shuffler.release("pets")
    restore(setting, backup)
    running = setting.start()
    assert set(running.post_all(bodies[:320])) == {409}
    time.sleep(0.5)
    assert len(setting.batches()) == 1
    assert set(running.post_all(bodies[320:])) == {202}
    assert b'shuffledp_pending_reports{task="pets"} 30\n' in running.get("/metrics")


def backed_up(setting: Setting) -> bytes:
    """A copy of the store: of its file, or of the whole database."""
    if setting.store is None:
        return (setting.data / "store.sqlite").read_bytes()
    in_postgres(setting, "CREATE DATABASE backup_{0} TEMPLATE {0}")
    return b""


def restore(setting: Setting, backup: bytes) -> None:
    if setting.store is None:
        for file in setting.data.glob("store.sqlite*"):
            file.unlink()
        (setting.data / "store.sqlite").write_bytes(backup)
    else:
        in_postgres(setting, "DROP DATABASE {0}", "CREATE DATABASE {0} TEMPLATE backup_{0}")


def in_postgres(setting: Setting, *statements: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    assert setting.store is not None
    name = re.search(r"/(\w+)\?", setting.store)[1]
    with closing(
        psycopg.connect(setting.store.replace(f"/{name}?", "/postgres?"), autocommit=True)
    ) as server:
        for statement in statements:
            server.execute(statement.format(name))


def test_a_store_without_its_journal_is_not_released_from(setting: Setting) -> None:
    task = setting.create()
    with setting.shuffler() as shuffler:
        opened = [
            shuffler.opened(shuffler.collection("pets"), body) for body in sealed(setting, task, ["no"] * 600)
        ]
        shuffler.store.add(opened[:300])
        shuffler.release("pets")
        shuffler.store.add(opened[300:])
        for file in (setting.data / "released").rglob("*.ids"):
            file.unlink()
        with pytest.raises(sdp.LostJournalError, match="batch 1 was released elsewhere"):
            shuffler.release("pets")


@pytest.mark.parametrize("point", ["intend", "write_batch", "confirm", "exported"])
def test_a_crash_at_any_step_of_a_release_loses_and_doubles_nothing(
    setting: Setting, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from shuffledp.service._journal import Journal
    from shuffledp.service.store import Store, Transaction

    task = setting.create()
    with setting.shuffler() as shuffler:
        collection = shuffler.collection("pets")
        opened = [shuffler.opened(collection, body) for body in sealed(setting, task, ["no"] * 305)]
        shuffler.store.add(opened)
        home = {"intend": Journal, "write_batch": Transaction, "confirm": Journal, "exported": Store}[point]

        whole = getattr(home, point)

        def crash(*_: object) -> None:
            raise KeyboardInterrupt

        def step_and_crash(*given: object) -> None:
            whole(*given)
            raise KeyboardInterrupt

        for replacement in (crash, step_and_crash):
            with monkeypatch.context() as patch:
                patch.setattr(home, point, replacement)
                with pytest.raises((KeyboardInterrupt, TooFewReportsError)):
                    shuffler.release("pets")
            shuffler.reconcile()
            out = released_rows(setting)
            assert len(out) == len(set(out))
            assert len(out) + shuffler.pending("pets") == 305
        if not setting.batches():
            shuffler.release("pets")
        assert len(released_rows(setting)) == 305
        assert not list((setting.data / "released").rglob("*.intent"))


def test_batches_hold_back_a_secret_number_that_comes_with_the_next(setting: Setting) -> None:
    task, people = setting.create(spread=40), 2000  # some batches: two are alike by chance
    with setting.shuffler() as shuffler:
        collection = shuffler.collection("pets")
        opened = [shuffler.opened(collection, body) for body in sealed(setting, task, ["no"] * people)]
        for start in range(0, people, 50):
            shuffler.store.add(opened[start : start + 50])
            shuffler.release_if_ready("pets")
        sizes = [batch.n for batch in shuffler.store.batches(collection.key)]
        assert all(size >= 300 for size in sizes)
        assert len(set(sizes)) > 1
        out = released_rows(setting)
        assert len(out) == len(set(out)) == sum(sizes)
        assert len(out) + shuffler.pending("pets") == people


def test_a_batch_is_in_an_order_of_its_own(each: Setting) -> None:
    task = each.create()
    with each.shuffler() as shuffler:
        opened = [
            shuffler.opened(shuffler.collection("pets"), body) for body in sealed(each, task, ["no"] * 400)
        ]
        shuffler.store.add(opened)
        shuffler.release("pets")
        place = {one.sealed: i for i, one in enumerate(opened)}
        by_id = {one.sealed: i for i, one in enumerate(sorted(opened, key=lambda one: one.id))}
        out = released_rows(each)
        for order in (place, by_id):
            moved = np.array([order[row] for row in out])
            assert abs(np.corrcoef(moved, np.arange(400))[0, 1]) < 0.25  # five standard deviations


def test_what_is_no_report_is_refused_and_costs_nobody_else(each: Setting) -> None:
    task, other = each.create(), each.create("other")
    running = each.start()
    good = sealed(each, task, ["yes"] * 8)
    size = body_size(task.report_bytes)
    assert len(good[0]) == size
    assert running.post(good[0][:-1]) == 400
    assert running.post(good[0] + b"x") == 413
    assert running.post(b"") == 400
    assert running.post(bytes(size)) == 400
    assert running.post(b"\1" + bytes(size - 1)) == 422
    for place in (0, 9, 60, size - 1):
        changed = bytearray(good[0])
        changed[place] ^= 1
        assert running.post(bytes(changed)) == 400
    assert running.post(good[0], name="other") == 400, "a report of another task"
    assert running.post(sealed(each, other, ["yes"])[0]) == 400
    assert running.post(good[0], name="nowhere") == 404
    assert running.post_all(good) == [202] * 8
    counted = running.get("/metrics").decode()
    assert 'shuffledp_reports_total{task="pets",outcome="accepted"} 8' in counted
    assert running.process.poll() is None


def test_a_body_that_goes_on_for_ever_takes_no_memory(each: Setting) -> None:
    each.create()
    running = each.start()
    before = running.memory
    with socket.create_connection(("127.0.0.1", running.port), timeout=30) as hostile:
        hostile.sendall(request(b"", length=2**40))
        assert b" 413 " in hostile.recv(4096)
        sent = 0
        with suppress(OSError):
            for _ in range(1000):
                hostile.sendall(bytes(1 << 20))
                sent += 1
        assert sent < 1000, "the connection is closed"
    with socket.create_connection(("127.0.0.1", running.port), timeout=30) as chunked:
        head = b"POST /tasks/pets/reports HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        chunked.sendall(head + b"5\r\nhello\r\n")
        assert b" 411 " in chunked.recv(4096)
    assert running.memory - before < 32 << 20


def test_keys_change_under_way(each: Setting) -> None:
    task = each.create()
    running = each.start()
    address, signer = f"{running.address}/tasks/pets", each.key.signer.hex()
    plan = sdp.client.fetch(address, signer=signer)
    (under_way,) = sealed(each, task, ["yes"])
    ring = KeyRing.open(each.data / "keys").rotated()
    assert running.post(under_way) == 202, "sealed to the old key"
    time.sleep(1.2)
    new = sdp.client.fetch(address, signer=signer)
    assert new.key != plan.key
    assert sdp.client.submit(new, "yes") == (1,)
    (late,) = [sealed_report(task, plan.key, bytes(task.report_bytes))]
    ring.retired()
    time.sleep(1.2)
    assert running.post(late) == 422
    assert sdp.client.submit(plan, "yes") == (2,), "the client fetches the new key and sends again"


def test_a_client_refuses_another_signer_fingerprint_plan_key_or_cost(each: Setting, tmp_path: Path) -> None:
    each.create()
    running = each.start()
    address, signer = f"{running.address}/tasks/pets", each.key.signer.hex()
    with pytest.raises(PlanError, match="signed by"):
        sdp.client.fetch(address, signer="00" * 32)
    with pytest.raises(PlanError, match="fingerprint"):
        sdp.client.fetch(address, signer=signer, fingerprint=survey(301).fingerprint)
    with pytest.raises(PlanError, match="max_epsilon0"):
        sdp.client.fetch(address, signer=signer, max_epsilon0=1.0)
    assert "differentially" in sdp.client.fetch(address, signer=signer, max_epsilon0=3.0).words


def test_the_analyst_counts_what_is_wrong_and_goes_on(each: Setting, tmp_path: Path) -> None:
    task = each.create()
    with each.shuffler() as shuffler:
        collection, key = shuffler.collection("pets"), public_key(each, task)
        bodies = sealed(each, task, ["yes"] * 300)
        bodies += [sealed_report(task, key, bytes([200])) for _ in range(7)]  # outside the domain
        opened = [shuffler.opened(collection, body) for body in bodies]
        garbage = [
            one._replace(id=bytes([i]) * 16, sealed=bytes(len(one.sealed)))
            for i, one in enumerate(opened[:5])
        ]
        shuffler.store.add([*opened, *garbage])
        path = shuffler.release("pets")
    found = open_batch(path, each.key, fingerprint=survey().fingerprint)
    assert (found.n, found.not_opened, found.outside) == (300, 5, 7)
    assert found.tally.sum() == 300
    assert "300 received, 300 planned, 12 more set aside" in str(result_of(found).privacy)
    with pytest.raises(PlanError):
        open_batch(path, Setting(tmp_path_for(tmp_path)).key)
    with pytest.raises(PlanError, match="fingerprint"):
        open_batch(path, each.key, fingerprint=survey(301).fingerprint)
    with pytest.raises(sdp.ReportFileError, match="sealed"):
        sdp.analyze_file(survey(), path)


def tmp_path_for(path: Path) -> Path:
    (path / "else").mkdir()
    return path / "else"


def test_reports_beyond_the_plan_do_not_improve_the_statement(each: Setting) -> None:
    task = each.create()
    with each.shuffler() as shuffler:
        bodies = sealed(each, task, ["yes"] * 900)
        shuffler.store.add([shuffler.opened(shuffler.collection("pets"), body) for body in bodies])
        result = analyze_batch(shuffler.release("pets"), each.key)
    assert result.n == 900
    assert result.privacy.n_honest == 300


def test_a_task_is_for_one_shuffler_has_a_threshold_of_its_plan_and_stays_deleted(each: Setting) -> None:
    from shuffledp.service.documents import Task

    task = each.create()
    with each.shuffler() as shuffler:
        with pytest.raises(ValueError, match="minimum must be in"):
            each.create("small", minimum=299)
        with pytest.raises(ValueError, match="name must be new"):
            each.create()
        keys = {"key": each.key.signs, "analyst": each.key.public}
        with pytest.raises(PlanError, match="for the shuffler"):
            shuffler.create(Task.new("other", survey(), shuffler=bytes(32), **keys).signed)
        shuffler.delete("pets")
        with pytest.raises(ValueError, match="was deleted here"):
            shuffler.create(task.signed)
        assert not shuffler.collections


def test_nothing_but_counts_is_kept_and_only_the_owner_reads_it(each: Setting) -> None:
    task = each.create()
    running = each.start()
    bodies = sealed(each, task, ["perhaps"] * 310)
    assert set(running.post_all(bodies)) == {202}
    wait_for(each, 1)
    page = running.get("/").decode()
    assert "certified for 300 honest" in page
    assert json.loads(running.get("/health")) == {"status": "ok"}
    assert running.stop() == 0
    everything = list(each.data.rglob("*"))
    for path in everything:
        assert path.stat().st_mode & 0o077 == 0, path
    text = each.stored + each.logs
    document = task.signed.text.encode()
    for secret in (b"127.0.0.1:", b"user-agent", b"perhaps"):
        rest = text.replace(document, b"").replace(json.dumps(document.decode()).encode()[1:-1], b"")
        rest = re.sub(rb'"address": "http://[^"]*"', b"", rest)
        assert secret not in rest.lower(), secret
    assert all(body[9:] not in text for body in bodies), "outer seals are not kept"
    with each.shuffler() as shuffler:
        rows = released_rows(each)
        assert shuffler.pending("pets") == 310 - len(rows)
        assert all(row not in text for row in rows), "inputs are gone after their release"
        assert inner_size(task.report_bytes) == len(rows[0])
