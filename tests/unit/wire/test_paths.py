import re

import pytest

from flakestorm.core.call import Call
from flakestorm.wire.paths import model_in_path, path_of

PATH = re.compile(r"/model/([^/]+)/say/?$")
BODY = b'{"said": ["a"]}'


@pytest.mark.parametrize("end", ["", "/", "?key=a/b", "/?key=1"])
def test_a_path_ends_before_its_query(end: str) -> None:
    assert path_of(Call("POST", f"https://h.test/v1/embeddings{end}")) == "https://h.test/v1/embeddings"


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("POST", "/model/a%3A1/say?x=/", BODY, "a:1"),
        ("POST", "/model/a/say/", b'{"said": {}}', "a"),
        ("GET", "/model/a/say", BODY, None),
        ("POST", "/model/a/sing", BODY, None),
        ("POST", "/model/a/say", b'{"said": 1}', None),
        ("POST", "/model/a/say", b'{"sung": []}', None),
        ("POST", "/model/a/say", b"said", None),
        ("POST", "/other?next=/model/a/say", BODY, None),
    ],
)
def test_a_model_is_read_in_a_path_that_fits(method: str, path: str, body: bytes, expected: str | None) -> None:
    call = Call(method, f"https://h.test{path}", body=body)
    assert model_in_path(call, PATH, "said", list, dict) == expected
