"""Files appear whole, or not at all."""

import os
import stat
from pathlib import Path

import pytest

from adaspdc._files import check_writable, written_whole


def test_a_file_is_replaced_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with written_whole(path) as stream:
        stream.write(b"new")
        stream.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


def test_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail() -> None:
        with written_whole(path) as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions and links")
def test_permissions_and_links_are_kept(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    with written_whole(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_new_files_follow_the_mask(tmp_path: Path) -> None:
    previous = os.umask(0o027)
    try:
        with written_whole(tmp_path / "file") as stream:
            stream.write(b"x")
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_device_is_an_error_and_stays_a_device() -> None:
    def write() -> None:
        with written_whole("/dev/full") as stream:
            stream.write(b"x" * 100_000)

    with pytest.raises(OSError, match="No space left"):
        write()
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_trouble_is_foreseen(tmp_path: Path) -> None:
    check_writable(tmp_path / "new")
    assert os.listdir(tmp_path) == []
    with pytest.raises(IsADirectoryError):
        check_writable(tmp_path)
    with pytest.raises(FileNotFoundError, match="no folder"):
        check_writable(tmp_path / "absent" / "file")
