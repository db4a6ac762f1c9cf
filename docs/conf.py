"""The documentation site: Sphinx with MyST (Markdown). ``make docs`` builds it; warnings are errors."""

import inspect
import re
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from click import Context
from docutils import nodes
from latex2mathml.converter import convert as latex_to_mathml

import shuffledp
from shuffledp.cli.main import cli
from shuffledp.randomizers.registry import reference_table

project = "shuffledp"
author = "the shuffledp authors"
project_copyright = author
version = release = shuffledp.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx_copybutton"]
copybutton_prompt_text = r"\$ |>>> "  # what is copied can be pasted
copybutton_prompt_is_regexp = True
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown"}
nitpicky = False

html_theme = "furo"
html_title = f"shuffledp {release}"
html_copy_source = False
html_favicon = "../src/shuffledp/web/page/icon.svg"
html_static_path = ["_static"]
html_show_sphinx = False
html_css_files = ["site.css"]
html_js_files = [("versions.js", {"type": "module"})]
templates_path = ["_templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_math_renderer = "mathml"

myst_heading_anchors = 3
myst_enable_extensions = ["amsmath", "dollarmath", "substitution"]


def command_help():
    """The help of every command, as it is printed."""
    context = Context(cli, info_name="shuffledp", terminal_width=88)
    pages = []
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        text = command.get_help(Context(command, context, name, terminal_width=88))
        pages.append(f"## {name}\n\n```text\n{text}\n```")
    return "\n\n".join(pages)


myst_substitutions = {"randomizers": reference_table(), "commands": command_help()}

autodoc_member_order = "bysource"
autodoc_typehints = "both"  # in signatures, with links, and in the lists of parameters
autodoc_typehints_description_target = "documented_params"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
maximum_signature_line_length = 88
autodoc_class_signature = "mixed"
autodoc_default_options = {"members": True}
# The reference of what needs a missing extra is built without it.
autodoc_mock_imports = [
    name for name in ("attr", "dp_accounting", "pyspark", "torch") if find_spec(name) is None
]


PARAMETERS = tomllib.loads(
    (Path(__file__).parent / "reference" / "parameters.toml").read_text(encoding="utf-8")
)
ATTRIBUTE = re.compile(r"    (\w[\w, ]*): (.*)")


def parameters(what, name, obj):
    """What the parameters mean, by their names, for the list below a docstring."""
    if what not in ("class", "function", "method") or ".errors" in name or "Error" in name:
        return []
    try:
        names = inspect.signature(obj).parameters
    except (TypeError, ValueError):
        return []
    return [f":param {one}: {PARAMETERS[one]}" for one in names if one in PARAMETERS]


def as_restructured_text(_app, what, name, obj, _options, lines):
    """Docstrings as Sphinx wants them: their ``Attributes:`` as a list, their bars as plain bars; parameters
    that mean the same everywhere are listed below."""
    listed = [] if "Attributes:" in lines else parameters(what, name, obj)
    shown = []
    inside = False  # a list of attributes
    for line in lines:
        inside = line == "Attributes:" or (inside and line.startswith("    "))
        if line == "Attributes:":
            shown += [line, ""]
        elif inside:
            found = ATTRIBUTE.fullmatch(line)
            shown.append(f"* ``{found[1]}``: {found[2]}" if found else line[6:])
        elif line.startswith("|"):  # a table in Markdown
            shown += [] if shown and shown[-1].startswith("    |") else ["::", ""]
            shown.append(f"    {line}")
        else:
            shown.append(line if "``" in line else line.replace("|", r"\|"))
    lines[:] = [*shown, *([""] if shown and shown[-1] and listed else []), *listed, ""]


def dress_pictures(app, document):
    """Pictures of the papers are transparent, and keep their size where they have several panels; others are
    white, but for dark pages."""
    for image in document.findall(nodes.image):
        if not image["uri"].startswith("papers/"):
            image["classes"].append("white")
        elif int.from_bytes((Path(app.srcdir) / image["uri"]).read_bytes()[16:20], "big") > 600:  # PNG: wide
            image["classes"].append("panels")


MATHML = "http://www.w3.org/1998/Math/MathML"
ElementTree.register_namespace("", MATHML)
BREAKS = set("=<>+") | set("\u2264\u2265\u2208\u2192\u223c\u2212\u22c5")  # and commas outside of parentheses
TIGHT = re.compile(r"<mo([^>]*)>(&#x0007C;|&#x0002F;)</mo>")  # bars and slashes


def mathml(translator, node, display="inline"):
    """Formulas as MathML, which browsers set by themselves: no script, nothing from another server."""
    made = latex_to_mathml(node.astext(), display=display)
    made = TIGHT.sub(r'<mo\1 lspace="0" rspace="0">\2</mo>', made)
    made = breakable(made) if display == "inline" else f'<div class="math">{made}</div>\n'
    translator.body.append(made)
    raise nodes.SkipNode


def breakable(made):
    """A formula inside a line as several, so that a narrow line may end after a relation or a sign."""
    row = ElementTree.fromstring(made)[0]
    deep = len("".join(row.itertext())) // 30  # inside of parentheses only where it is long
    parts, depth, before = [[]], 0, None
    for piece in row:
        parts[-1].append(piece)
        sign = piece.text if piece.tag.endswith("}mo") else ""
        depth += sum((c in "([") - (c in ")]") for c in "".join(piece.itertext()))
        if before not in (None, "-") and ((sign in BREAKS and depth <= deep) or (sign == "," and not depth)):
            piece.set("form", "infix")
            parts.append([])
        before = "-" if sign in BREAKS | {"(", "[", ","} else "+"
    math = []
    for part in filter(None, parts):
        math.append(ElementTree.Element(f"{{{MATHML}}}math", display="inline"))
        ElementTree.SubElement(math[-1], f"{{{MATHML}}}mrow").extend(part)
    return "<wbr>".join(ElementTree.tostring(each, encoding="unicode") for each in math)


def mathml_block(translator, node):
    """A formula of its own: a narrow screen scrolls it, not the page."""
    mathml(translator, node, display="block")


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", as_restructured_text)
    app.connect("doctree-read", dress_pictures)
    app.add_html_math_renderer("mathml", (mathml, None), (mathml_block, None))
