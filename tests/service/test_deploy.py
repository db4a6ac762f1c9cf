"""What a new user does: the how-to, line by line; the steps of the container file, without a container."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
import tomllib
import urllib.request
from pathlib import Path

import pytest
from service.running import SOURCE

ROOT = Path(__file__).resolve().parent.parent.parent
HOW_TO = (ROOT / "docs" / "how-to" / "service.md").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "examples" / "deploy" / "Dockerfile").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    """The code of the page."""
    return re.findall(rf"```{kind}\n(.*?)```", HOW_TO, re.DOTALL)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def listening(address: str, process: "subprocess.Popen[bytes]") -> None:
    for _ in range(1200):
        assert process.poll() is None
        try:
            urllib.request.urlopen(f"{address}/health", timeout=30).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the service did not start")


@pytest.mark.slow
def test_the_how_to_leads_from_nothing_to_an_estimate(tmp_path: Path) -> None:
    """Every command of the page but the installation, in its order; only the port is another one."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "shuffledp").write_text(f'#!/bin/sh\nexec {sys.executable} -m shuffledp "$@"\n')
    (tmp_path / "bin" / "shuffledp").chmod(0o755)
    path = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": SOURCE}
    environment, port = os.environ | path, free_port()

    def run(command: list[str]) -> str:
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    (set_up,), (answer,), (count,) = blocks("sh"), blocks("py"), blocks("text")
    install, *lines = set_up.strip().splitlines()
    assert install.startswith("pip install")
    said = run(["sh", "-ec", "\n".join(lines)])
    assert "shuffler: ready to serve 1 task" in said
    signer = re.search(r"clients pin\s+([0-9a-f]{64})", said)
    assert signer is not None
    serve = [str(tmp_path / "bin" / "shuffledp"), "serve", "--port", str(port)]
    with subprocess.Popen(serve, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            listening(f"http://127.0.0.1:{port}", process)
            program = answer.replace("SIGNER", signer[1]).replace("8440", str(port))
            assert "changed at random on this device" in run([sys.executable, "-c", program])
            end = time.monotonic() + 60.0
            while not list((tmp_path / "shuffler" / "batches").glob("*.parquet")):
                assert time.monotonic() < end
                time.sleep(0.1)
        finally:
            process.terminate()
    told = re.match(
        r"histogram of 300 reports, epsilon <= (\S+) at delta = 1e-6\n", run(["sh", "-ec", count])
    )
    assert told is not None
    assert 0.9 < float(told[1]) <= 1.0
    assert "certified" in (tmp_path / "privacy.txt").read_text()


def instructions() -> dict[str, list[str]]:
    """The container file: instruction -> arguments of each."""
    joined = DOCKERFILE.replace("\\\n", " ")
    lines = [line.split(None, 1) for line in joined.splitlines() if line and not line.startswith("#")]
    return {word: [rest for other, rest in lines if other == word] for word, _ in lines}


def test_the_container_file_copies_what_there_is_and_installs_what_is_declared() -> None:
    found = instructions()
    for line in found["COPY"]:
        assert all((ROOT / name).exists() for name in line.split()[:-1]), line
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (extras,) = re.findall(r'"/source\[(.*?)\]"', found["RUN"][0])
    assert set(extras.split(",")) <= set(declared)
    assert found["USER"] == ["shuffler"]


@pytest.mark.slow
def test_the_steps_of_the_container_file_give_a_service_that_answers(tmp_path: Path) -> None:
    """In a new virtual environment: no container is built here, and no user is made."""
    found, source = instructions(), tmp_path / "source"
    for line in found["COPY"]:
        *names, place = line.split()
        target = tmp_path / place.strip("/")
        for name in names:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, target, dirs_exist_ok=True)
            else:
                target.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, target)
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    install = shlex.split(found["RUN"][0].split("&&")[0])
    assert install[:2] == ["pip", "install"]
    pip = [str(tmp_path / "venv" / "bin" / "pip"), *install[1:]]
    subprocess.run([one.replace("/source", str(source)) for one in pip], check=True, capture_output=True)
    (entry,) = json.loads(found["ENTRYPOINT"][0])
    options = json.loads(found["CMD"][0])
    options[options.index("/data")] = str(tmp_path / "data")
    options[options.index("0.0.0.0")] = "127.0.0.1"
    port = free_port()
    command = [str(tmp_path / "venv" / "bin" / entry), *options, "--port", str(port)]
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with subprocess.Popen(command, env=clean, stderr=subprocess.DEVNULL) as process:
        try:
            listening(f"http://127.0.0.1:{port}", process)
        finally:
            process.terminate()
        assert process.wait(30) == 0
