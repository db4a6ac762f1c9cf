"""The errors and warnings: one tree, in one file, all of it public."""

import ast
import builtins
import inspect
import pickle
from pathlib import Path

import pytest

import shuffledp as sdp
from shuffledp import errors

SOURCE = Path(sdp.__file__).parent
OWN = {
    name: kind
    for name, kind in vars(errors).items()
    if inspect.isclass(kind) and issubclass(kind, BaseException)
}


def raisable(name: str) -> bool:
    """Whether a base class of this name makes an exception."""
    known = getattr(builtins, name, None)
    built_in = isinstance(known, type) and issubclass(known, BaseException)
    return built_in or name.endswith(("Error", "Exception", "Warning"))


def exceptions_defined_in(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    bases = {node.name: [ast.unparse(base) for base in node.bases] for node in classes}
    # What ends a command is click's, and never leaves the command line.
    return [
        name
        for name, above in bases.items()
        if any(raisable(base) for base in above) and "click.ClickException" not in above
    ]


def test_every_exception_of_the_package_is_in_one_file() -> None:
    elsewhere = {
        str(path.relative_to(SOURCE)): names
        for path in SOURCE.rglob("*.py")
        if path != SOURCE / "errors.py" and (names := exceptions_defined_in(path))
    }
    assert elsewhere == {}
    assert sorted(exceptions_defined_in(SOURCE / "errors.py")) == sorted(OWN)


@pytest.mark.parametrize("name", OWN)
def test_it_has_the_common_base_and_is_public(name: str) -> None:
    base = errors.ShuffledpWarning if name.endswith("Warning") else errors.ShuffledpError
    assert issubclass(OWN[name], base)
    assert name in sdp.__all__
    assert getattr(sdp, name) is OWN[name]


@pytest.mark.parametrize("name", OWN)
def test_the_drawing_shows_it_below_its_base(name: str) -> None:
    drawn: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        words = line.split()
        if words and words[0] in OWN:
            drawn.append((len(line) - len(line.lstrip()), words[0]))
    place = [known for _, known in drawn].index(name)
    above = [known for indent, known in drawn[:place] if indent < drawn[place][0]]
    if name not in ("ShuffledpError", "ShuffledpWarning"):
        assert OWN[name].__bases__[0].__name__ == above[-1]


def test_errors_that_say_more_than_their_text_survive_a_process_border() -> None:
    budget = errors.BudgetExceededError("too much", budget=(1.0, 1e-6), epsilon=1.5, population="all")
    domain = errors.DomainError(10, 1, 2, [(3, None), (5, "cow")])
    for error in (budget, domain):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_the_tree_imports_nothing_of_the_package() -> None:
    tree = ast.parse(Path(errors.__file__).read_text(encoding="utf-8"))
    imports = [ast.unparse(n) for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom))]
    assert imports
    assert not any("shuffledp" in line for line in imports)
