"""What is released can be installed and used where nothing of ours is."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import pdcl

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A wheel and an sdist of this tree."""
    out = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "--directory", out], cwd=ROOT, check=True)
    return out


def test_the_version_stands_in_one_place(capsys):
    from pdcl.cli import main

    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pdcl {pdcl.__version__}\n"
    for path in (ROOT / "src").rglob("*.py"):
        assert f'"{stated}"' not in path.read_text(encoding="utf-8"), f"{path} repeats the version"


def test_citation_and_changelog_are_of_this_version():
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"\nversion: {stated}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[([\d.]+)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == stated


def test_extras_are_named_by_use_and_all_is_all_of_them():
    """But for Avalanche, which brings another torch."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    everything = set(re.findall(r"[\w-]+", re.search(r"pdcl\[(.*)\]", extras["all"][0])[1]))
    assert everything == set(extras) - {"all", "test", "lint", "docs", "integrations", "avalanche", "avalanche-tests"}
    assert {"report", "live"} <= everything


def test_a_wheel_has_types_data_and_licences_and_nothing_else(built):
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in (
        "pdcl/py.typed", "pdcl/lab/presets/digits.toml", "pdcl/lab/studies/demo.toml", "pdcl/reports/static/report.js",
        "pdcl/reports/vendor/plotly-cartesian.min.js", "pdcl/reports/vendor/plotly-cartesian.LICENSE",
    ):  # fmt: skip
        assert wanted in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert all(name.startswith("pdcl") for name in names)
    assert wheel.stat().st_size < 2_000_000


def test_an_sdist_has_what_it_takes_to_build_test_and_read(built):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for wanted in ("pyproject.toml", "Makefile", "constraints.txt", "README.md", "CITATION.cff", "mkdocs.yml",
                   "docs/index.md", "examples/months.py", "tests/test_release.py", "src/pdcl/py.typed"):  # fmt: skip
        assert wanted in names


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"])
def test_it_installs_into_an_empty_environment_and_shows_its_demo(built, tmp_path, kind):
    """Python as it is here, the newest libraries that constraints.txt allows. Older ones: see README."""
    (released,) = built.glob(kind)
    plain = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}

    def run(*words):
        call = [tmp_path / "env" / "bin" / words[0], *words[1:]]
        done = subprocess.run(call, cwd=tmp_path, env=plain, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    run("python", "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", released)
    assert run("pdcl", "--version") == f"pdcl {pdcl.__version__}\n"
    assert "What the limits cost" in run("pdcl", "demo")
    run("pdcl", "report", "runs/demo", "--out", "report.html")
    assert (tmp_path / "report.html").stat().st_size > 1_000_000
