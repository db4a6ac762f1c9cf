"""The public calculator: a folder of static files that runs shuffledp in the browser (``make site``).

    python tools/site.py build/site                      with the engine that can be had by npm, for tests
    python tools/site.py build/site --engine FOLDER      with the official NumPy and click, for publishing

Every file of the engine is checked against a hash: packages of npm against the ones below, the official
wheels in FOLDER (of an unpacked release) against the lock file that comes with that Pyodide. The npm pair
needs one symbol that Pyodide does not have, which is patched in: good for tests, and not what should be
published. Before a site is published, the golden numbers are replayed on it (``make test-slow`` runs
tests/web/test_site.py; ``SITE=build/site`` names one that was built).
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

from shuffledp.web._answer import DEFAULT, answer
from shuffledp.web._server import POLICY, page

ROOT = Path(__file__).resolve().parent.parent
PYODIDE, NUMPY = "pyodide@0.27.7", "@emscripten-forge/numpy@2.0.1-py312h4e66579-0"
NPM = {
    PYODIDE: ("pyodide-0.27.7.tgz", "89d5d952675eb08e11286e52c7238f1248ce71726e896db9703e73bef23dc343"),
    NUMPY: (
        "emscripten-forge-numpy-2.0.1-py312h4e66579-0.tgz",
        "7c6dab4b681b15286f10ab9972147f599d91df4ea881f61fb58ad39349423d84",
    ),
}
CORE = ("pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
PARTS = ("epsilon", "curve", "compare", "honest")
UNUSED = ("/tests/", "/f2py/", "/_simd", "/_core/include/", ".pyi", "/testing/", "/distutils/")
SYMBOL = "var resolveGlobalSymbol=(symName,direct=false)=>{var sym;if("
NOTICE = """# What this site is made of

- shuffledp, Apache-2.0.
- Pyodide, MPL-2.0: https://github.com/pyodide/pyodide. CPython inside it: PSF licence.
- NumPy and click, BSD-3-Clause.
"""


def build(target: Path, engine: Path | None = None) -> None:
    """The whole site in ``target``, which is made anew."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT / "src" / "shuffledp" / "web" / "page", target)
    (target / "engine").mkdir()
    names = _from_npm(target / "engine") if engine is None else _from_release(target / "engine", engine)
    names.append(_own_package(target / "engine"))
    (target / "engine" / "packages.json").write_text(json.dumps(names))
    first = {part: answer({**DEFAULT, "ask": part}) for part in PARTS}
    html = page(first).replace('data-engine="server"', 'data-engine="pyodide"')
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    html = html.replace('<meta charset="utf-8">', f'<meta charset="utf-8">\n{policy}', 1)
    (target / "index.html").write_text(
        html.replace("on your machine", "in your browser", 1), encoding="utf-8"
    )
    (target / "THIRD-PARTY.md").write_text(NOTICE)
    (target / ".nojekyll").touch()


def _from_npm(target: Path) -> list[str]:
    """The pair that can be tested without the network of Pyodide's makers."""
    _core(target)
    numpy = _packed(NUMPY)
    script = (target / "pyodide.asm.js").read_text(encoding="utf-8")
    assert script.count(SYMBOL) == 1
    patched = SYMBOL.removesuffix("if(") + 'if(symName==="backtrace"){sym=()=>0}else if('
    (target / "pyodide.asm.js").write_text(script.replace(SYMBOL, patched), encoding="utf-8")
    with tarfile.open(numpy) as archive:
        inner = next(name for name in archive.getnames() if name.endswith(".tar.gz"))
        with tarfile.open(fileobj=io.BytesIO(_member(archive, inner))) as package:
            _zip_numpy(package, target / "numpy.zip")
    import click

    with zipfile.ZipFile(target / "click.zip", "w", zipfile.ZIP_DEFLATED) as out:
        for file in sorted(Path(click.__file__).parent.rglob("*.py")):
            out.write(file, f"click/{file.relative_to(Path(click.__file__).parent)}")
    return ["numpy.zip", "click.zip"]


def _packed(name: str) -> Path:
    """A package of npm, fetched once and checked."""
    folder, (file, digest) = ROOT / "build" / "npm", NPM[name]
    if not (folder / file).exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "pack", "--silent", name], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    _check(folder / file, digest)
    return folder / file


def _check(file: Path, digest: str) -> None:
    if hashlib.sha256(file.read_bytes()).hexdigest() != digest:
        raise SystemExit(f"{file} is not what was expected: its SHA-256 is not {digest}")


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None
    return file.read()


def _zip_numpy(package: tarfile.TarFile, target: Path) -> None:
    """What the calculator needs of it."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
        for member in package.getmembers():
            _, found, inside = member.name.partition("site-packages/")
            if (
                found
                and member.isfile()
                and inside.startswith("numpy/")
                and not any(x in inside for x in UNUSED)
            ):
                out.writestr(inside, _member(package, member.name))


def _core(target: Path) -> None:
    """Pyodide itself."""
    with tarfile.open(_packed(PYODIDE)) as archive:
        for name in CORE:
            (target / name).write_bytes(_member(archive, f"package/{name}"))


def _from_release(target: Path, source: Path) -> list[str]:
    """The wheels that the pinned Pyodide names in its lock file, unchanged."""
    _core(target)
    packages = json.loads((target / "pyodide-lock.json").read_text(encoding="utf-8"))["packages"]
    names = []
    for name in ("numpy", "click"):
        file, digest = packages[name]["file_name"], packages[name]["sha256"]
        if not (source / file).exists():
            raise SystemExit(f"{source} has no {file}: it must be the release of {PYODIDE}")
        _check(source / file, digest)
        shutil.copy(source / file, target / file)
        names.append(file)
    return names


def _own_package(target: Path) -> str:
    """shuffledp, without what the page never asks."""
    source = ROOT / "src"
    left_out = ("papers", "learning", "plotting", "service", "client", "shuffling")
    with zipfile.ZipFile(target / "shuffledp.zip", "w", zipfile.ZIP_DEFLATED) as out:
        for file in sorted((source / "shuffledp").rglob("*.py*")):
            room = file.relative_to(source / "shuffledp").parts[0]
            if "__pycache__" not in file.parts and room not in left_out:
                out.write(file, file.relative_to(source))
    return "shuffledp.zip"


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the public calculator.")
    parser.add_argument("target", type=Path)
    parser.add_argument("--engine", type=Path, help="the folder of the official wheels of NumPy and click")
    arguments = parser.parse_args()
    build(arguments.target, arguments.engine)
    size = sum(file.stat().st_size for file in arguments.target.rglob("*") if file.is_file())
    print(f"{arguments.target}: {size / 1e6:.1f} MB; try: python -m http.server -d {arguments.target}")


if __name__ == "__main__":
    main()
