"""Put a built documentation beside those of other versions: the switch in the sidebar finds them all.

    python tools/publish_docs.py SITE        build/docs/html becomes SITE/<version>

SITE/index.html leads to the newest, SITE/versions.json lists all, the newest first.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIRST = """<!doctype html><html lang="en"><meta charset="utf-8"><title>shuffledp</title>
<meta http-equiv="refresh" content="0; url={version}/">
<p><a href="{version}/">shuffledp {version}</a></p></html>
"""


def publish(site: Path, built: Path, version: str) -> list[str]:
    """All versions that the site now has, the newest first."""
    shutil.rmtree(site / version, ignore_errors=True)
    shutil.copytree(built, site / version)
    found = sorted((path.parent.name for path in site.glob("*/objects.inv")), key=_order, reverse=True)
    (site / "versions.json").write_text(json.dumps(found))
    (site / "index.html").write_text(FIRST.format(version=found[0]))
    (site / ".nojekyll").touch()
    return found


def _order(version: str) -> tuple[list[int], bool]:
    """By the numbers; a release comes after what led to it."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[:3]]
    return numbers, re.fullmatch(r"[\d.]+", version) is not None


def main() -> None:
    from shuffledp import __version__

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("--built", type=Path, default=ROOT / "build" / "docs" / "html")
    asked = parser.parse_args()
    print(f"{asked.site}: {', '.join(publish(asked.site, asked.built, __version__))}")


if __name__ == "__main__":
    main()
