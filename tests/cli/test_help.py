"""Help is quick and has examples; a wrong name is answered with the nearest one."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings

import pytest

from gstarx import datasets, explainers, models, registry
from gstarx.cli import main, options
from tests.cli.commands import environment, found, gstarx, refused

COMMANDS = [
    ("demo",),
    ("explain",),
    ("compare",),
    ("evaluate",),
    ("report",),
    ("summarize",),
    ("serve",),
    ("train",),
    ("version",),
    ("datasets",),
    ("datasets", "list"),
    ("datasets", "info"),
    ("datasets", "fetch"),
    ("runs",),
    ("runs", "list"),
    ("runs", "show"),
    ("runs", "resume"),
    ("runs", "export"),
]


def test_every_command_has_help_with_examples_that_it_understands() -> None:
    for command in COMMANDS:
        text = gstarx(*command, "--help").stdout
        shown = text.partition("Examples")[2]
        assert f"gstarx {' '.join(command)}" in shown
        lines = " ".join(shown.split())
        known = set(re.findall(r"(?<!\S)(--?[a-z][a-z-]*)", text.partition("Examples")[0]))
        used = set(re.findall(r"(?<!\S)(--?[a-z][a-z-]*)", lines))
        assert command in {("runs",), ("datasets",)} or used <= known
    text = gstarx("--help").stdout
    listed = set(re.findall(r"^│ (\w+) ", text, re.MULTILINE))
    assert listed == {command[0] for command in COMMANDS}


def test_help_and_completion_load_no_torch() -> None:
    code = (
        "import sys\n"
        "from gstarx.cli import main\n"
        "from gstarx.cli.options import complete_dataset, complete_explainer\n"
        "for arguments in (['--help'], ['explain', '--help'], ['version'], ['datasets', 'list'],\n"
        "                  ['explain', 'mutga', '1'], ['explan']):\n"
        "    main(arguments)\n"
        "assert list(complete_dataset('')) and list(complete_explainer('g'))\n"
        "heavy = {'torch', 'torch_geometric', 'numba', 'rdkit', 'spacy', 'pyarrow', 'ray'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr


def test_the_registry_is_true() -> None:
    assert tuple(registry.DATASETS) == datasets.names()
    assert registry.explainer_names() == explainers.names()
    assert models.pretrained_names() == tuple(registry.NETWORKS)
    for name, spec in registry.DATASETS.items():
        assert callable(registry.resolve(spec.home))
        if spec.shipped:
            assert len(datasets.load(name)) > 0
        if spec.classes:
            assert models.pretrained(name)[0].config["out_channels"] == len(spec.classes)


def test_completion_offers_names_with_a_word_on_each() -> None:
    assert dict(options.complete_dataset("ni")) == {"nitro": registry.DATASETS["nitro"].about}
    ours = ["gstarx", "gstarx_published"]
    assert [name for name, _ in options.complete_explainer("gst")] == ours
    assert [name for name, _ in options.complete_network("sst2")] == ["sst2-gat", "sst2-gcn"]


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    assert "Did you mean 'explain'" in refused("explian", code=2)
    assert "Did you mean 'export'" in refused("runs", "exprot", code=2)

    assert "did you mean 'mutag'" in refused("explain", "mutga", "1", code=2)
    assert "did you mean 'mutag'" in refused("datasets", "info", "mutga", code=2)
    assert "did you mean 'mutag'" in refused("train", "mutga", code=2)
    assert "did you mean 'nitro-gcn'" in refused("explain", "nitro", "1", "--model", "nitr", code=2)
    for command in (["explain", "nitro", "1"], ["compare", "nitro", "1"], ["evaluate", "nitro"]):
        assert "did you mean 'gstarx'" in refused(*command, "-e", "gstrax", code=2)


def test_versions_and_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    import gstarx as package

    content = found("version")
    assert content["gstarx"] == package.__version__
    assert content["torch"]
    assert package.__version__ in gstarx("version").stdout

    assert main(["version"]) == 0
    assert main(["versoin"]) == 2
    assert main(["explain", "--file", "nowhere.pt", "--model", "nitro"]) == 1
    assert "error: there is no file nowhere.pt" in capsys.readouterr().err


def test_warnings_come_without_lines_of_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def warned(**_: object) -> None:
        print(warnings.formatwarning("mind the gap", UserWarning, "code.py", 7), end="")

    before = warnings.formatwarning
    monkeypatch.setattr("gstarx.cli.app.app", warned)
    assert main([]) == 0
    assert capsys.readouterr().out == "warning: mind the gap\n"
    assert warnings.formatwarning is before
