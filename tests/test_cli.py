"""The command as a person meets it: help, mistakes, the demo in a terminal and in a pipe."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import adaspdc
from adaspdc import cli, demo
from stopwatch import fastest, wall_seconds

COMMAND = [sys.executable, "-c", "from adaspdc.cli import main; main(prog_name='adaspdc')"]
QUICK = ["demo", "--quick", "--passes", "3"]


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli.main, arguments, prog_name="adaspdc")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_version(flag: str) -> None:
    assert invoke(flag) == (0, f"adaspdc, version {adaspdc.__version__}\n")


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_the_commands(flag: str) -> None:
    status, text = invoke(flag)
    assert status == 0
    assert "demo" in text
    assert max(map(len, text.splitlines())) <= 80


def test_demo_help_names_every_option() -> None:
    status, text = invoke("demo", "--help")
    assert status == 0
    for option in ("--out", "--lam", "--passes", "--quick"):
        assert option in text


def test_help_loads_nothing_heavy(run_isolated: Callable[..., str]) -> None:
    code = """
import sys
from adaspdc.cli import main
for arguments in (["--help"], ["demo", "--help"], ["--version"]):
    main(arguments, standalone_mode=False)
print("LOADED", *sys.modules)
"""
    loaded = run_isolated(code).split("LOADED")[1].split()
    assert "click" in loaded
    assert not {"numba", "matplotlib", "rich", "scipy.stats", "sklearn"} & set(loaded)


def test_help_is_fast(run_isolated: Callable[..., str]) -> None:
    code = "from adaspdc.cli import main; main(['--help'])"
    run_isolated(code)  # writes the byte code

    assert fastest(lambda: wall_seconds(lambda: run_isolated(code)), 1.0) < 1.0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["demo", "--lam", "0"], "0 is not between"),
        (["demo", "--lam", "nan"], "nan is not between"),
        (["demo", "--lam", "much"], "'much' is not a valid float"),
        (["demo", "--passes", "0"], "0 is not in the range"),
        (["demo", "--out", "picture.pdf"], "must end in .png"),
        (["demo", "--out", "no/such/folder/picture.png"], "create it first"),
        (["demo", "--out", "."], "is a directory"),
    ],
)
def test_mistakes_are_explained(arguments: list[str], complaint: str) -> None:
    status, text = invoke(*arguments)
    assert status == 2
    assert complaint in text
    assert "Traceback" not in text


@pytest.mark.parametrize("absent", [["rich"], ["matplotlib", "rich"]])
def test_missing_extra_is_explained(monkeypatch: pytest.MonkeyPatch, absent: list[str]) -> None:
    monkeypatch.setattr(demo, "missing_packages", lambda: absent)
    status, text = invoke("demo")
    assert status == 1
    assert text == f"Error: the demo needs {' and '.join(absent)}: pip install 'adaspdc[demo]'\n"


def test_missing_packages_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert demo.missing_packages() == []
    monkeypatch.setitem(sys.modules, "rich", None)
    assert demo.missing_packages() == ["rich"]


def test_full_disk_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(*_: object, **__: object) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(demo, "run_demo", fail)
    status, text = invoke("demo", "--out", str(tmp_path / "picture.png"))
    assert status == 1
    assert "No space left on device" in text


def test_interrupted_demo_says_so_to_the_shell(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(demo, "run_demo", lambda *_, **__: False)
    assert invoke("demo", "--out", str(tmp_path / "picture.png"))[0] == 130


def test_demo_in_a_pipe_prints_results_only(tmp_path: Path) -> None:
    out = tmp_path / "picture.png"
    done = subprocess.run(
        [*COMMAND, *QUICK, "--out", str(out)], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert "spdc-nonuniform" in done.stdout
    assert out.read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("columns", [60, 80])
def test_demo_in_a_terminal_shows_progress(tmp_path: Path, columns: int) -> None:
    status, shown = in_terminal([*QUICK, "--out", str(tmp_path / "picture.png")], columns)
    assert status == 0
    assert "compiling" in shown
    assert "100 %" in shown
    printed = [line.split("\r")[-1] for line in re.sub(r"\x1b\[[0-9;?]*\w", "", shown).split("\n")]
    assert max(len(line) for line in printed if "picture.png" not in line) <= columns


def in_terminal(arguments: list[str], columns: int) -> tuple[int, str]:
    """Run the command in a pseudo-terminal; its exit status and everything it wrote."""
    import fcntl
    import pty
    import struct
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    hidden = ("COLUMNS", "LINES", "NO_COLOR", "CI")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**environment, "TERM": "xterm-256color"},
    )
    os.close(slave)
    pieces = []
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(master)
    return process.wait(timeout=60), b"".join(pieces).decode().replace("\r\n", "\n")
