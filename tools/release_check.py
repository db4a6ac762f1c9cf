"""A dry run of a release: build the sdist and the wheel, install each alone, and try what was installed.

    python tools/release_check.py [--keep DIST]

Each of the two is installed in an empty virtual environment, away from this checkout; there the demo and
a smoke test run. ``--keep`` copies the two files to a folder: they are what is uploaded.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NEEDED = ("CHANGELOG.md", "LICENSE", "Makefile", "README.md", "examples/demo.py", "tests/conftest.py")
SMOKE = """
import sys
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
import shuffledp as sdp

loaded = {"numpy", "click"} & sys.modules.keys()
assert not loaded, f"import shuffledp loads {loaded}"
assert Path(sdp.__file__).is_relative_to(sys.prefix), sdp.__file__
assert version("shuffledp") == sdp.__version__, (version("shuffledp"), sdp.__version__)
assert files("shuffledp").joinpath("py.typed").is_file(), "py.typed is missing"
for name in sdp.__all__:
    getattr(sdp, name)
month = 30 * sdp.Shuffled(sdp.KaryRandomizedResponse(k=16, epsilon0=4.0), n=1_000_000)
bound = month.epsilon(delta=1e-8)
assert 0.23 < bound.lower <= bound.upper < 0.24, bound
"""
COMMANDS = (
    "--version",
    "--help",
    "epsilon --krr 5 --epsilon0 3 --n 20000 --rounds 12 --delta 1e-7",
    "reproduce --list",
)


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints; everything it says and an end where it fails.

    Nothing of the caller's environment may lend a package to what is tried here."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        command, cwd=cwd, env=clean, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}\nrelease check: FAILED")
    return done.stdout


def environment(folder: Path) -> Path:
    """An empty virtual environment; the folder of its programs."""
    run(sys.executable, "-m", "venv", folder, cwd=ROOT)
    return folder / ("Scripts" if os.name == "nt" else "bin")


def pip(programs: Path, *arguments: str | Path, cwd: Path) -> None:
    run(
        programs / "python", "-m", "pip", "install", "-qq", "--disable-pip-version-check", *arguments, cwd=cwd
    )


def built(work: Path) -> tuple[Path, Path]:
    """The sdist, and the wheel that is built from it."""
    programs = environment(work / "builder")
    pip(programs, "build", cwd=work)
    run(programs / "python", "-m", "build", "--outdir", work / "dist", ROOT, cwd=work)
    (sdist,) = (work / "dist").glob("*.tar.gz")
    (wheel,) = (work / "dist").glob("*.whl")
    return sdist, wheel


def check_contents(sdist: Path, wheel: Path) -> None:
    """Both hold every module; the sdist what a checkout needs; the metadata is whole."""
    with tarfile.open(sdist) as file:
        unpacked = {name.partition("/")[2] for name in file.getnames()}
    missing = [name for name in NEEDED if name not in unpacked]
    assert not missing, f"not in the sdist: {missing}"
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
        (name,) = (name for name in packed if name.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(archive.read(name))
    source = ROOT / "src"
    modules = {path.relative_to(source).as_posix() for path in source.rglob("*") if _is_ours(path)}
    assert modules <= packed, f"not in the wheel: {sorted(modules - packed)}"
    assert {f"src/{name}" for name in modules} <= unpacked
    check_metadata(metadata)


def _is_ours(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts


def check_metadata(metadata: Message) -> None:
    """Complete, and of this version, which the changelog knows."""
    for field in ("Name", "Version", "Summary", "Author", "License-Expression", "Requires-Python"):
        assert metadata[field], f"{field} is missing"
    assert metadata["Description-Content-Type"] == "text/markdown"
    version = metadata["Version"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(version)}\]", changelog, re.MULTILINE), (
        f"CHANGELOG.md has no section [{version}]"
    )


def check_installed(package: Path, work: Path) -> None:
    """Installed alone, with its two dependencies, it imports cheaply, answers and shows its demo."""
    away = work / f"away-{package.suffix[1:]}"
    away.mkdir()
    programs = environment(work / f"user-{package.suffix[1:]}")
    pip(programs, package, cwd=away)
    run(programs / "python", "-c", SMOKE, cwd=away)
    for line in COMMANDS:
        run(programs / "shuffledp", *line.split(), cwd=away)
    demo = shutil.copy(ROOT / "examples" / "demo.py", away)
    print(run(programs / "python", demo, cwd=away).splitlines()[4])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--keep", type=Path, help="copy the two files to this folder")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        packages = built(work)
        check_contents(*packages)
        for package in packages:
            print(f"== {package.name}")
            check_installed(package, work)
        if asked.keep:
            asked.keep.mkdir(parents=True, exist_ok=True)
            for package in packages:
                shutil.copy(package, asked.keep)
    print("release check: passed")


if __name__ == "__main__":
    main()
