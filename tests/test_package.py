"""The package itself: what it exports, and that importing it is cheap."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import shuffledp as sdp

ROOT = Path(sdp.__file__).parent
DOCS = Path(__file__).resolve().parent.parent / "docs"
pytestmark = pytest.mark.quick


def test_every_public_name_can_be_had_and_is_listed() -> None:
    for name in sdp.__all__:
        assert getattr(sdp, name) is not None
        assert name in dir(sdp)


def test_an_unknown_name_is_an_attribute_error() -> None:
    name = "no_such_thing"
    with pytest.raises(AttributeError, match=name):
        getattr(sdp, name)


def test_importing_the_package_loads_neither_numpy_nor_scipy() -> None:
    code = "import sys, shuffledp; sys.exit(bool({'numpy', 'scipy'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_answer_needs_numpy_alone() -> None:
    code = (
        "import sys, shuffledp as sdp;"
        "sdp.Shuffled(sdp.LocalRandomizer(1.0), n=1000).epsilon(delta=1e-6);"
        "sys.exit(bool('scipy' in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_accountant_loads_no_sampler() -> None:
    code = (
        "import sys, shuffledp as sdp;"
        "sdp.Shuffled(sdp.Facts(epsilon0=1.0), n=1000).epsilon(delta=1e-6);"
        "rooms = ('shuffledp.randomizers', 'shuffledp._randomness');"
        "sys.exit(any(name.startswith(rooms) for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_accountant_never_asks_what_a_randomizer_is() -> None:
    rooms = [ROOT / "accounting", ROOT / "_certified", ROOT / "facts.py", ROOT / "bound.py"]
    for path in (path for room in rooms for path in (room.rglob("*.py") if room.is_dir() else [room])):
        text = path.read_text(encoding="utf-8")
        assert "shuffledp.randomizers" not in text, path
        assert "getattr(randomizer" not in text, path


def test_a_module_without_an_underscore_is_the_home_of_a_public_or_documented_name() -> None:
    """Programs (the command line and the papers) are no library: nothing in them is for import."""
    lists = [*ROOT.rglob("*.pyi"), *ROOT.rglob("__init__.py"), *DOCS.rglob("*.md")]
    known = "\n".join(page.read_text(encoding="utf-8") for page in lists)
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        private = any(part.startswith("_") for part in parts)
        if not private and parts[0] not in ("cli", "papers"):
            assert ".".join(("shuffledp", *parts)) in known, path


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path, *, lazy: bool) -> set[str]:
    """The rooms of the package that a file imports, at the top or inside functions."""
    tree = parsed(path)
    nodes = ast.walk(tree) if lazy else iter(tree.body)
    named = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.split(".")[1] for name in named if name.startswith("shuffledp.")}


ROOMS = (
    ("errors",),
    ("_lazy", "_json", "_files", "_progress", "_digits", "_html", "_validate"),
    ("verifying",),
    ("bound", "_log"),
    ("_certified",),
    ("_spans",),
    ("facts", "_randomness"),
    ("noise",),
    ("accounting", "randomizers", "shuffling"),
    ("interop", "literature", "collecting", "auditing"),
    ("learning",),
    ("plotting", "flower"),
    ("papers", "service", "web"),
    ("client",),
    ("cli",),
)
CONVENIENT = {"plotting", "interop"}  # .plot() and .to_dp_accounting() load them when they are called


def test_arrows_point_down_only() -> None:
    level = {room: i for i, rooms in enumerate(ROOMS) for room in rooms}
    for path in sorted(ROOT.rglob("*.py")):
        room = path.relative_to(ROOT).with_suffix("").parts[0]
        if room in ("__init__", "__main__"):
            continue
        above = {other for other in imports(path, lazy=True) if level[other] >= level[room]} - {room}
        assert not above - CONVENIENT, f"{path.relative_to(ROOT)} imports {above}"
        assert not above & imports(path, lazy=False), f"{path.relative_to(ROOT)} imports {above}"


def test_every_room_stands_in_the_picture_of_the_house_or_beside_it() -> None:
    drawn = (DOCS / "_static" / "rooms.svg").read_text(encoding="utf-8")
    told = (DOCS / "architecture.md").read_text(encoding="utf-8")
    words = set(re.findall(r"[>, ](\w+)(?=[,<])", drawn)) | set(re.findall(r"`(\w+)[/`]", told))
    small = {
        "_lazy",
        "_json",
        "_files",
        "_progress",
        "_digits",
        "_html",
        "_validate",
        "_log",
    }  # "small tools"
    assert {room for rooms in ROOMS for room in rooms} - words == small
    rooms = {path.name for path in (ROOT / "accounting").iterdir() if path.is_dir() and path.name[1] != "_"}
    assert rooms <= words
