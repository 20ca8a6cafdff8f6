"""Whether names are read at once or only when they matter, they are the same."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from flakestorm.tape.fingerprint import Asked, Requests
from flakestorm.tape.names import Names
from flakestorm.tape.tokens import Tokens
from replay_support import SPANS, chat, request

IDS = [f"toolu_01AbCdEfGh{letter}" for letter in "ABCD"]
steps = st.lists(
    st.tuples(
        st.sampled_from(["asked", "asked so", "heard", "of"]),
        st.lists(st.sampled_from(IDS), min_size=1, max_size=3),
        st.lists(st.sampled_from(IDS), min_size=3, max_size=3),
    ),
    max_size=8,
)


def asked(requests: Requests, ids: Sequence[str]) -> Asked:
    return requests.read(request(chat(*ids)))


@given(steps)
def test_later_is_as_good_as_now(todo: list[tuple[str, list[str], list[str]]]) -> None:
    def run(*, later: bool) -> list[object]:
        names, requests, found = Names(), Requests(Tokens(SPANS)), list[object]()
        for kind, old, new in todo:
            if kind == "asked":
                said = asked(requests, old)
                if not (later and names.asked_later(said)):
                    pairs = names.fit(said, said)
                    found.append(pairs is not None)
                    names.learn(pairs or {})
                else:
                    found.append(True)
            elif kind == "asked so":
                pairs = names.fit(asked(requests, old), asked(requests, new[: len(old)]))
                found.append(pairs and {one: two for one, two in pairs.items() if one != two})
                names.learn(pairs or {})
            elif kind == "heard":
                text = json.dumps(old)
                found.append([] if later and names.heard_later([text[:9].encode(), text[9:].encode()]) else
                             names.heard(text))  # fmt: skip
            else:
                found.append(names.of(old[0]))
        return found

    assert run(later=True) == run(later=False)


def test_what_was_heard_before_is_known_when_it_matters() -> None:
    names, requests = Names(), Requests(Tokens(SPANS))
    one, other = asked(requests, IDS[:1]), asked(requests, IDS[1:2])
    assert names.heard_later([IDS[0].encode()])
    assert names.fit(one, other) is None  # it stands for itself: it was replied
    assert names.fit(one, one) == {}


def test_once_a_token_stands_for_another_nothing_waits() -> None:
    names, requests = Names(), Requests(Tokens(SPANS))
    one, other = asked(requests, IDS[:1]), asked(requests, IDS[1:2])
    names.learn(names.fit(one, other) or {})
    assert not names.heard_later([b""])
    assert not names.asked_later(one)
    assert names.heard(f'"{IDS[0]}"') == [(1, 1 + len(IDS[0]), IDS[1])]
    assert names.of(IDS[0]) == IDS[1]
