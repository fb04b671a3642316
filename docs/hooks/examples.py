"""Run the scripts of ``examples/`` when the site is built, and show code and output on their page.

``<!-- example: name -->`` stands for ``examples/name.py``. A script that fails, or that says
something on stderr, fails the build.
"""

import logging
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

MARK = re.compile(r"^<!-- example: (?P<name>\w+) -->$", re.MULTILINE)
ROOT = Path(__file__).parent.parent.parent
LOG = logging.getLogger("mkdocs.hooks.examples")


def output_of(path: Path) -> str:
    """What a script prints, run in an empty directory with the sources of this repository."""
    search = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(
            [sys.executable, str(path)],
            cwd=empty,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": search.rstrip(os.pathsep)},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode or done.stderr:
        raise PluginError(f"{path.name} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def shown(path: Path, output: str | None) -> str:
    """Code and output as Markdown; the code folded, because the output is the shorter reading."""
    code = path.read_text(encoding="utf-8").strip()
    folded = f'??? example "examples/{path.name}"\n\n    ```python\n'
    folded += "".join(f"    {line}".rstrip() + "\n" for line in code.splitlines()) + "    ```\n"
    if output is None:
        return folded
    return f"```text\n{output.rstrip()}\n```\n\n{folded}"


def on_page_markdown(markdown: str, /, **_: Any) -> str:
    """Put every example that a page names in its place."""
    paths = [ROOT / "examples" / f"{name}.py" for name in MARK.findall(markdown)]
    if not paths:
        return markdown
    outputs: list[str | None] = [None] * len(paths)
    if find_spec("torch") is None:
        LOG.info("examples are shown without their output: there is no torch to run them with")
    else:
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            outputs = list(pool.map(output_of, paths))
    parts = iter([shown(path, output) for path, output in zip(paths, outputs, strict=True)])
    return MARK.sub(lambda _: next(parts), markdown)
