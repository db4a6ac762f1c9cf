"""What goes wrong around a running shuffler: load, slow and hostile clients, disks, clocks, processes."""

import asyncio
import datetime
import os
import random
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from service.conftest import crash, patiently
from service.running import Running, Setting, post_all, request, sealed
from service.test_promises import released_rows, wait_for

from shuffledp.service.sealing import body_size

DEPLOY = Path(__file__).resolve().parent.parent.parent / "examples" / "deploy"


def test_overload_is_told_memory_is_bounded_and_nothing_acknowledged_is_lost(each: Setting) -> None:
    """Eight times as many clients as there is room for."""
    task = each.create()
    running = each.start("--capacity", "16", "--group", "8", "--no-release")
    bodies = sealed(each, task, ["yes"] * 500)
    running.post_all(bodies[:100])
    before = running.memory
    statuses = running.post_all(bodies, connections=128)
    told = Counter(statuses)
    assert set(told) <= {202, 409, 503}
    assert told[503] > 50
    assert running.memory - before < 32 << 20
    with socket.create_connection(("127.0.0.1", running.port), timeout=30) as one:
        one.sendall(request(bodies[0]))
        assert b" 409 " in one.recv(4096)
    with each.shuffler() as shuffler:
        assert shuffler.pending("pets") == 100 + told[202]
    later = [body for body, status in zip(bodies, statuses, strict=True) if status == 503]
    assert set(running.post_all(later, connections=4)) <= {202, 409}
    with each.shuffler() as shuffler:
        assert shuffler.pending("pets") == len(bodies)


def test_a_refusal_for_overload_says_when_to_come_again(each: Setting) -> None:
    task = each.create()
    running = each.start("--capacity", "1")
    bodies = sealed(each, task, ["yes"] * 2)
    with socket.create_connection(("127.0.0.1", running.port), timeout=30) as slow:
        slow.sendall(request(bodies[0])[:-1])  # one byte is missing: the room is taken
        time.sleep(0.3)
        with socket.create_connection(("127.0.0.1", running.port), timeout=30) as other:
            other.sendall(request(bodies[1]))
            answer = other.recv(4096).lower()
    assert b" 503 " in answer
    assert b"retry-after: 1" in answer


def fuzz(setting: Setting, count: int) -> None:
    """Bodies of the right size that are noise, or almost reports; requests that are almost HTTP."""
    task = setting.create()
    running = setting.start("--no-release")
    good = sealed(setting, task, ["yes"] * 20)
    rng, size = random.Random(count), body_size(task.report_bytes)

    def hostile() -> bytes:
        body = bytearray(rng.choice(good))
        kind = rng.randrange(4)
        if kind == 0:
            return rng.randbytes(size)
        if kind == 1:
            body[rng.randrange(size)] ^= 1 << rng.randrange(8)
            return bytes(body)
        if kind == 2:
            return bytes(body[:9]) + rng.randbytes(size - 9)
        at = rng.randrange(1, size)
        return bytes(body[at:] + body[:at])

    before = running.memory
    for start in range(0, count, 5000):
        statuses = running.post_all([hostile() for _ in range(min(5000, count - start))], connections=8)
        assert set(statuses) <= {400, 422}
    for _ in range(max(20, count // 500)):
        raw = bytearray(
            request(good[0], length=rng.choice(["-1", "1e3", "", size, 2**70, "0x7a", f"{size} "]))
        )
        for _ in range(rng.randrange(3)):
            raw[rng.randrange(len(raw))] = rng.randrange(256)
        with socket.create_connection(("127.0.0.1", running.port), timeout=30) as one:
            one.settimeout(5.0)
            one.sendall(bytes(raw))
            one.shutdown(socket.SHUT_WR)
            answer = one.recv(4096)
        assert not answer.startswith(b"HTTP/1.1 5")
    assert running.memory - before < 48 << 20
    assert set(running.post_all(good)) <= {202, 409}
    assert running.stop() == 0


def test_hostile_bodies_are_refused_and_take_nothing(setting: Setting) -> None:
    fuzz(setting, 600)


@pytest.mark.slow
def test_a_hundred_thousand_hostile_bodies_are_refused(setting: Setting) -> None:
    fuzz(setting, 100_000)


IMPATIENT = (
    "import shuffledp.service.server as s; s.HEAD_SECONDS = s.BODY_SECONDS = 1.0;"
    "from shuffledp.cli.main import main; main()"
)


def test_clients_that_never_come_to_the_point_are_let_go(each: Setting) -> None:
    """Also without a proxy; the seconds are fewer here."""
    task = each.create()
    running = each.start(code=IMPATIENT)
    (body,) = sealed(each, task, ["yes"])
    with ExitStack() as stack:
        slow = [
            stack.enter_context(socket.create_connection(("127.0.0.1", running.port), timeout=30))
            for _ in range(60)
        ]
        for one in slow[:30]:
            one.sendall(request(body)[:40])  # half of the headers
        for one in slow[30:]:
            one.sendall(request(body)[:-5])  # a part of the body
        assert running.post(body) == 202
        for one in slow[:30]:
            assert one.recv(4096) == b""
        for one in slow[30:]:
            assert b" 408 " in one.recv(4096)


def certificate(folder: Path) -> None:
    """Of survey.example, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "survey.example")])
    now = datetime.datetime.now(datetime.UTC)
    built = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    built = built.not_valid_before(now - datetime.timedelta(1)).not_valid_after(now + datetime.timedelta(1))
    (folder / "survey.pem").write_bytes(
        built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    )
    pem = serialization.PrivateFormat.TraditionalOpenSSL
    plain = serialization.NoEncryption()
    (folder / "survey.key").write_bytes(key.private_bytes(serialization.Encoding.PEM, pem, plain))


@pytest.fixture(params=["nginx", "caddy"])
def proxy(request: pytest.FixtureRequest, each: Setting) -> Iterator[tuple[Setting, Running, int]]:
    """The example configurations, with other ports and files, and less patience."""
    program = shutil.which(request.param) or shutil.which(f"/usr/sbin/{request.param}")
    if program is None:
        pytest.skip(f"no {request.param} on this machine")
    folder = each.folder
    certificate(folder)
    running = each.start()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    if request.param == "nginx":
        name, run = "nginx.conf", ["-p", str(folder), "-g", "daemon off;", "-c"]
        changes = {
            "listen 443": f"listen 127.0.0.1:{port}",
            "/etc/ssl": str(folder),
            "/run/nginx.pid": str(folder / "nginx.pid"),
            "worker_processes auto": "worker_processes 1",
            "5s;": "2s;",
        }
    else:
        name, run = "Caddyfile", ["run", "--adapter", "caddyfile", "--config"]
        own = f"bind 127.0.0.1\n\ttls {folder}/survey.pem {folder}/survey.key"
        changes = {
            "survey.example {": f"survey.example:{port} {{\n\t{own}",
            "{\n\tservers": "{\n\tadmin off\n\tauto_https disable_redirects\n\tservers",
            " 5s": " 2s",
        }
    text = (DEPLOY / name).read_text()
    for old, new in (changes | {"127.0.0.1:8440": f"127.0.0.1:{running.port}"}).items():
        assert old in text
        text = text.replace(old, new)
    (folder / name).write_text(text)
    home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    command = [program, *run, str(folder / name)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, env=os.environ | home) as process:
        try:
            yield each, running, port
        finally:
            process.terminate()


def through(port: int) -> ssl.SSLSocket:
    """A TLS connection to the proxy."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    for _ in range(400):
        try:
            plain = socket.create_connection(("127.0.0.1", port), timeout=30)
            return context.wrap_socket(plain, server_hostname="survey.example")
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise AssertionError("the proxy did not start")


def test_slow_clients_stay_in_the_proxy(proxy: tuple[Setting, Running, int]) -> None:
    setting, running, port = proxy
    task = setting.create()
    time.sleep(1.2)  # the service looks for new tasks
    first, second = sealed(setting, task, ["yes"] * 2)
    with ExitStack() as stack:
        slow = [stack.enter_context(through(port)) for _ in range(40)]
        for one in slow[:20]:
            one.sendall(request(first)[:30])
        for one in slow[20:]:
            one.sendall(request(first)[:-5])
        good = stack.enter_context(through(port))
        good.sendall(request(second))
        assert b" 202 " in good.recv(4096)
        good.sendall(b"GET /metrics HTTP/1.1\r\nHost: survey.example\r\n\r\n")
        assert b" 404 " in good.recv(4096)
        assert b'outcome="too slow"' not in running.get("/metrics")
        for one in slow:
            one.settimeout(20.0)
            with suppress(OSError):  # reset
                assert b" 202 " not in one.recv(4096)
    assert b'shuffledp_pending_reports{task="pets"} 1\n' in running.get("/metrics")


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[None]:
    """A disk of its own at an empty folder."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill_and_free(setting: Setting, disk: Path) -> None:
    """A store on a small disk: full, nothing is acknowledged that is not kept; with room again, all is."""
    task = setting.create()
    running = setting.start("--no-release")
    bodies = sealed(setting, task, ["yes"] * 600)
    assert set(running.post_all(bodies[:100])) == {202}
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass
    waiting = bodies[100:500]
    for _ in range(200):  # a small group may find room in pages that the store has already: until none does
        statuses = running.post_all(waiting, connections=64)
        assert set(statuses) <= {202, 503}
        waiting = [body for body, status in zip(waiting, statuses, strict=True) if status == 503]
        if len(waiting) == len(statuses):
            break
        if not waiting:
            waiting = sealed(setting, task, ["no"] * 400)
            bodies += waiting
    assert set(statuses) == {503}
    with pytest.raises(OSError, match="503"):
        running.get("/health")
    filler.unlink()
    waiting = waiting + bodies[500:600]
    for _ in range(50):  # whoever is told 503 (busy, too) comes again
        statuses = running.post_all(waiting)
        assert set(statuses) <= {202, 503}
        waiting = [body for body, status in zip(waiting, statuses, strict=True) if status == 503]
        if not waiting:
            break
    assert not waiting
    assert running.get("/health") == b'{"status":"ok"}'
    running.kill()
    with setting.shuffler() as shuffler:
        assert shuffler.pending("pets") == len(bodies)
        opened = [shuffler.opened(shuffler.collection("pets"), body) for body in bodies]
        assert not any(shuffler.store.add(opened)), "an acknowledged report was lost"


def test_a_full_disk_acknowledges_nothing_and_heals(embedded: Setting) -> None:
    embedded.data.mkdir()
    with small_disk(embedded.data, 16):
        fill_and_free(embedded, embedded.data)
        for one in embedded.running:
            one.process.wait()


def test_a_full_disk_of_postgresql_acknowledges_nothing_and_heals(postgres: Any, tmp_path: Path) -> None:
    """The disk of its tables. Where that of its log is full, PostgreSQL stops: the next test."""
    disk = Path(tempfile.mkdtemp(prefix="shuffledp-disk-"))
    with small_disk(disk, 16):
        data = disk / "tables"
        data.mkdir(mode=0o700)
        owner = postgres.pgdata.stat()
        os.chown(data, owner.st_uid, owner.st_gid)
        disk.chmod(0o711)
        postgres.psql(f"CREATE TABLESPACE small LOCATION '{data}';")
        postgres.psql("CREATE DATABASE small TABLESPACE small;")
        setting = Setting(tmp_path, postgres.get_uri("small"))
        try:
            fill_and_free(setting, disk)
        finally:
            for one in setting.running:
                one.kill()
            postgres.psql("DROP DATABASE small WITH (FORCE);")
            postgres.psql("DROP TABLESPACE small;")
    disk.rmdir()


@pytest.mark.slow
def test_a_database_that_dies_and_comes_back_has_every_acknowledged_report_once(
    postgres: Any, tmp_path: Path
) -> None:
    postgres.psql("CREATE DATABASE dying;")
    setting = Setting(tmp_path, postgres.get_uri("dying"))
    task = setting.create()
    running = setting.start("--no-release")
    try:
        waiting = sealed(setting, task, ["yes"] * 700)

        async def under_load() -> list[int]:
            sending = asyncio.create_task(post_all(running.port, waiting))
            await asyncio.sleep(0.3)
            await asyncio.to_thread(crash, postgres)
            return await sending

        statuses = asyncio.run(under_load())
        assert set(statuses) <= {202, 503}
        assert running.post(waiting[-1]) == 503
        patiently(lambda _: postgres.ensure_postgres_running())
        later = [body for body, status in zip(waiting, statuses, strict=True) if status == 503]
        for _ in range(20):  # connections of before fail once
            told = running.post_all(later)
            later = [body for body, status in zip(later, told, strict=True) if status == 503]
        assert not later
        assert running.stop() == 0
        with setting.shuffler() as shuffler:
            assert shuffler.pending("pets") == 700
    finally:
        for one in setting.running:
            one.kill()


JUMPING = (
    "import time, random; real, utc = time.time, time.gmtime;"
    "time.time = lambda: real() + random.choice([-4e8, 0.0, 4e8]);"
    "time.gmtime = lambda *given: utc(time.time());"
    "from shuffledp.cli.main import main; main()"
)


def test_a_clock_that_jumps_by_years_changes_nothing(each: Setting) -> None:
    task = each.create()
    running = each.start(code=JUMPING)
    bodies = sealed(each, task, ["yes"] * 300)
    assert set(running.post_all(bodies)) == {202}
    wait_for(each, 1)
    assert set(running.post_all(bodies[:5])) == {409}
    assert running.stop() == 0


def test_two_tasks_at_once_keep_to_themselves(each: Setting) -> None:
    pets, cars = each.create("pets"), each.create("cars", minimum=320)
    running = each.start()
    first, second = sealed(each, pets, ["yes"] * 310), sealed(each, cars, ["no"] * 310)

    async def both() -> list[list[int]]:
        sending = [post_all(running.port, first, name="pets"), post_all(running.port, second, name="cars")]
        return await asyncio.gather(*sending)

    assert {status for statuses in asyncio.run(both()) for status in statuses} == {202}
    wait_for(each, 1)
    time.sleep(0.5)
    (batch,) = each.batches()
    assert batch.name.startswith("pets-1-")
    with each.shuffler() as shuffler:
        own = {shuffler.opened(shuffler.collection("pets"), body).sealed for body in first}
        assert set(released_rows(each)) <= own
        assert shuffler.pending("cars") == 310


def test_three_processes_on_postgresql_take_every_report_once_though_one_is_killed(
    postgres: Any, tmp_path: Path
) -> None:
    postgres.psql("CREATE DATABASE three;")
    setting = Setting(tmp_path, postgres.get_uri("three"))
    task = setting.create(spread=5)
    others = [tmp_path / f"host-{number}" for number in range(2)]
    for host in others:
        shutil.copytree(setting.data / "keys", host / "keys")
    processes = [setting.start(), *(setting.start("--no-release", folder=host) for host in others)]
    try:
        bodies = sealed(setting, task, ["yes"] * 500)

        async def together() -> list[list[int]]:
            """Everybody gets all reports; one process dies on the way."""
            sending = [asyncio.create_task(post_all(one.port, bodies, connections=8)) for one in processes]
            await asyncio.sleep(0.5)
            processes[-1].kill()
            return await asyncio.gather(*sending)

        first, second, third = asyncio.run(together())
        assert set(first) | set(second) <= {202, 409}
        assert set(third) <= {0, 202, 409}
        for told in zip(first, second, third, strict=True):
            assert told.count(202) <= 1
        assert sum(told.count(202) for told in (first, second, third)) >= 500 - 16 * 8
        assert [one.stop() for one in processes[:2]] == [0, 0]
        with setting.shuffler() as shuffler:
            shuffler.reconcile()
            out = released_rows(setting)
            assert len(out) == len(set(out))
            assert len(out) + shuffler.pending("pets") == 500
            assert len(out) >= 300
    finally:
        for one in processes:
            if one.process.poll() is None:
                one.kill()
