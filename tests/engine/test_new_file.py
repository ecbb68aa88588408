"""A file that is made anew: for one account alone, and never where a link leads."""

import os
from pathlib import Path

import pytest

from engine.new_file import new_file


def test_a_new_file_is_for_one_account_alone(tmp_path: Path) -> None:
    os.close(new_file(tmp_path / "new"))
    assert (tmp_path / "new").stat().st_mode & 0o077 == 0


def test_no_file_is_made_where_a_link_leads(tmp_path: Path) -> None:
    """It may have been planted between two calls of ours."""
    (tmp_path / "new").symlink_to(tmp_path / "theirs")
    with pytest.raises(FileExistsError):
        new_file(tmp_path / "new")
    assert not (tmp_path / "theirs").exists()
