"""Write requirements.lock: the pins of constraints.txt with the SHA-256 of their files.

The sums are those that the package index of pip lists, of wheels for the Pythons and machines that
we support, and of source releases. Nothing is downloaded but the lists. Run it by ``make lock``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote
from urllib.request import Request, urlopen

ROOT = Path(__file__).parent.parent
HEADER = """\
# Every package of constraints.txt with the SHA-256 of its files; pip installs no other file.
# Written by `make lock`, not by hand.
#
# torch is not among them: machines without a graphics card have a build of their own for the CPU,
# whose sum no index lists, and pip would prefer the gigabytes of CUDA whose sum it can check.
"""
LEFT_OUT = {"torch"}
PYTHONS = ("cp311", "cp312", "cp313", "cp314")
ABIS = ("none", "abi3", *PYTHONS)
MACHINES = re.compile(
    r"any$|(manylinux|musllinux|macosx|win).*(x86_64|amd64|aarch64|arm64|universal2)$"
)


def pip(*arguments: str) -> str:
    """What pip prints."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def index() -> str:
    """The index that pip is set to, or else its default, which its help names."""
    said = re.search(r"\.index-url='([^'\s]+)", pip("config", "list"))
    said = said or re.search(r"default\s+(https://[^\s)]+)", pip("install", "--help"))
    if said is None:
        raise SystemExit("pip does not say which index it asks: set PIP_INDEX_URL")
    return said[1].rstrip("/")


def normal(name: str) -> str:
    """The name of a package as indexes write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def fits(file: str, name: str, version: str) -> bool:
    """Whether a file is of this release, and for a Python and a machine that we support."""
    if file.endswith(".whl"):
        said, found, *_, python, abi, machine = file.removesuffix(".whl").split("-")
        release = (normal(said), found) == (name, version)
        ours = "py3" in python or python in PYTHONS or abi == "abi3"
        return release and ours and abi in ABIS and MACHINES.match(machine) is not None
    for ending in (".tar.gz", ".zip"):
        said, _, found = file.removesuffix(ending).rpartition("-")
        if file.endswith(ending) and (normal(said), found) == (name, version):
            return True
    return False


def sums(url: str, pin: str) -> list[str]:
    """The SHA-256 of every file of a release that fits."""
    name, version = pin.split("==")
    page = Request(f"{url}/{normal(name)}/", headers={"Accept": "text/html"})
    with urlopen(page, timeout=180) as answer:
        links = re.findall(r'href="[^"]*?([^/"#]+)#sha256=([0-9a-f]{64})', answer.read().decode())
    found = sorted({sha for file, sha in links if fits(unquote(file), normal(name), version)})
    if not found:
        raise SystemExit(f"the index lists no file of {pin}")
    return found


def main() -> None:
    """Write the file."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    pins = [pin for pin in pins if pin.partition("==")[0] not in LEFT_OUT]
    url = index()
    with ThreadPoolExecutor(8) as asking:
        found = list(asking.map(lambda pin: sums(url, pin), pins))
    entries = (
        " \\\n    ".join([pin, *(f"--hash=sha256:{sha}" for sha in each)])
        for pin, each in zip(pins, found, strict=True)
    )
    (ROOT / "requirements.lock").write_text(HEADER + "\n".join(entries) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
