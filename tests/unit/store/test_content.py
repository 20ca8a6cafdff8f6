import hashlib

import pytest

from flakestorm.store.content import Content, digest_of


def test_a_digest_is_the_sha256_of_the_bytes(tmp_path) -> None:
    data = bytes(range(256)) * 8192  # more than is read at once
    (tmp_path / "x").write_bytes(data)
    assert digest_of(tmp_path / "x") == hashlib.sha256(data).hexdigest()


def test_what_is_kept_does_not_change_with_the_original(tmp_path) -> None:
    file, content = tmp_path / "a.tape", Content(tmp_path / "content")
    file.write_text("first")
    digest = digest_of(file)
    content.add(file, digest)
    file.write_text("other")
    content.add(file, digest)
    assert content.path(digest).read_text() == "first"
    assert [path.name for path in content.path(digest).parent.iterdir()] == [digest]


def test_removing_tells_what_was_freed(tmp_path) -> None:
    file, content = tmp_path / "a.tape", Content(tmp_path / "content")
    file.write_text("12345")
    content.add(file, digest_of(file))
    assert content.remove(digest_of(file)) == 5
    assert content.remove(digest_of(file)) == 0


def test_a_copy_that_fails_leaves_nothing_behind(tmp_path) -> None:
    content = Content(tmp_path / "content")
    with pytest.raises(OSError):
        content.add(tmp_path / "none", "ab" * 32)
    assert list((tmp_path / "content").rglob("*.*")) == []
