import gc
from pathlib import Path

import httpx
import pytest
import trio

import flakestorm
from flakestorm.api.replaying import load_tape, of_the_world, replay
from flakestorm.errors import Misuse, TapeDamaged, TapeError, TapeMismatch
from upstream import Upstream, document


def agent(up: Upstream):
    def answer(text: str = "Oslo") -> str:
        return f"{text}: {httpx.post(f'{up.url}/search', json={'to': text}).json()['flights']}"

    return answer


@pytest.fixture
def tape(up: Upstream, tmp_path: Path) -> Path:
    path = tmp_path / "a.tape"
    with flakestorm.record(path, input="Rome") as recording:
        recording.output = agent(up)("Rome")
    return path


def test_the_function_gets_the_tapes_input(up, tape) -> None:
    assert replay(tape, agent(up)) == "Rome: 3"
    assert up.count() == 1


@pytest.mark.parametrize(
    ("wrong", "told"),
    [({"mode": "strickt"}, "known: renamed, strict, scored"), ({"tools": []}, "map names to URL globs")],
)
def test_what_makes_no_sense_is_refused(tape, wrong, told) -> None:
    with pytest.raises(Misuse, match=told):
        replay(tape, str, **wrong)
    with pytest.raises(Misuse, match="cannot be called"):
        replay(tape, 3)  # type: ignore[arg-type]


def test_tasks_of_trio_are_recorded_and_replayed(up, tmp_path) -> None:
    async def ask(word: str) -> None:
        async with httpx.AsyncClient() as client:
            await client.get(f"{up.url}/{word}")

    async def both() -> str:
        for word in "ab":  # side by side, trio's tasks are not told apart, and it shuffles them on purpose
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask, word)
        return "done"

    async def recorded() -> None:
        with flakestorm.record(tmp_path / "t.tape"):
            await both()

    async def replayed() -> str:
        value: str = await replay(tmp_path / "t.tape", both)
        return value

    trio.run(recorded)
    assert trio.run(replayed) == "done"
    assert up.count() == 2


def test_without_an_input_it_is_called_with_nothing(up, tmp_path) -> None:
    with flakestorm.record(tmp_path / "b.tape"):
        agent(up)()
    assert replay(tmp_path / "b.tape", agent(up)) == "Oslo: 3"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda fn: lambda text: fn(text).upper(), "the output is another one"),
        (lambda fn: lambda text: "Rome: 3", r"http/127.0.0.1#1 was not asked for again"),
        (lambda fn: lambda text: (fn(text), fn(text))[0], "extra request"),
        (lambda fn: lambda text: fn("Oslo"), r'to: "Rome" -> "Oslo"'),
        (lambda fn: lambda text: 1 / 0 if fn("Oslo") else "", "nearest entry"),
    ],
)
def test_whatever_differs_is_raised(up, tape, change, told) -> None:
    def swallowing(text: str) -> str:
        try:
            return agent(up)(text)
        except KeyError:
            return "Rome: 3"

    with pytest.raises(TapeMismatch, match=told) as caught:
        replay(tape, change(swallowing))
    assert caught.value.problems
    assert up.count() == 1


def test_what_the_function_raises_itself_is_its_own(up, tape) -> None:
    def failing(text: str) -> str:
        agent(up)(text)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        replay(tape, failing)


def test_live_calls_must_be_asked_for(up, tape) -> None:
    with pytest.raises(TapeMismatch):
        replay(tape, lambda text: agent(up)("Oslo"), allow_live=True)
    assert up.count() == 2


def test_a_tape_without_calls_verifies_nothing(tmp_path) -> None:
    with flakestorm.record(tmp_path / "e.tape"):
        pass
    with pytest.raises(TapeError, match="nothing to verify"):
        replay(tmp_path / "e.tape", lambda: None)


def test_a_damaged_tape_is_refused(tape) -> None:
    lines = tape.read_bytes().splitlines(keepends=True)
    tape.write_bytes(b"".join(lines[:-1]))
    with pytest.raises(TapeDamaged, match="cut short"):
        load_tape(tape)
    tape.write_bytes(b"".join([lines[0], lines[1].replace(b"Rome", b"Roma"), lines[2]]))
    with pytest.raises(TapeDamaged, match="edited"):
        load_tape(tape)


def keyed(up: Upstream, key: str, told: str = "it"):
    def answer(text: str) -> str:
        said = httpx.post(f"{up.url}/search", json={"q": f"{told} of {text}"}, headers={"x-api-key": key})
        return f"{text}: {said.text}"

    return answer


def test_the_key_of_the_recording_answers_and_no_other(up, tmp_path) -> None:
    up.reply("/search", document({"echo": "planted-key-1", "note": "planted-note-2"}))
    path = tmp_path / "k.tape"
    with flakestorm.record(path, input="planted-key-1", redact=["planted-note-[0-9]"]) as recording:
        recording.output = keyed(up, "planted-key-1")("planted-key-1")
    assert b"planted-key-1" not in path.read_bytes()
    assert b"planted-note-2" not in path.read_bytes()
    given: list[str] = []

    def again(text: str) -> str:
        given.append(text)
        return keyed(up, "planted-key-1")("planted-key-1")

    said = replay(path, again)
    [stands] = given  # nothing knew the key before the first request had it
    assert stands.startswith("[secret:")
    assert "planted-key-1" in said
    assert "planted-note" not in said
    with pytest.raises(TapeMismatch, match="the credential is another one"):
        replay(path, lambda text: keyed(up, "planted-key-3")("planted-key-1"))
    with pytest.raises(TapeMismatch, match="diverged"):
        replay(path, lambda text: keyed(up, "planted-key-1")("planted-key-3"))


def test_what_the_environment_knows_is_given_back(up, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "planted-key-1")
    path = tmp_path / "k.tape"
    with flakestorm.record(path, input="planted-key-1") as recording:
        recording.output = keyed(up, "planted-key-1")("planted-key-1")
    assert replay(path, keyed(up, "planted-key-1")).startswith("planted-key-1: ")


def test_a_tape_of_the_first_form_replays_with_any_key(up, tmp_path) -> None:
    sample = Path(__file__).parent.parent / "tape" / "samples" / "form-1.tape"
    loaded = load_tape(sample)
    assert len(loaded.matcher.entries) == 3
    assert loaded.digest != loaded.footer.digest


def test_what_the_world_knows_can_be_had_instead_of_what_the_agent_saw(tmp_path) -> None:
    from flakestorm.api import Options, load
    from plugin_support import project

    folder = project(tmp_path, "")
    with Upstream() as up:
        up.reply("/search", document({"flights": 3}))
        (folder / "agent.py").write_text(
            f"import httpx\ndef answer(text):\n    for n in '12': httpx.get('{up.url}/search?n=' + n)\n    return 'x'\n"
        )
        report = load(folder / "flakestorm.yaml").inject(0, ["tool/search#1=malformed"], Options(tapes=tmp_path))
        error = load(folder / "flakestorm.yaml").inject(0, ["tool/search#1=error:503"], Options(tapes=tmp_path / "b"))
    world = load_tape(tmp_path / report.runs[0].tape, pick=of_the_world).matcher.entries
    assert [entry.reply.body for entry in world] == [b'{"flights": 3}'] * 2
    seen = load_tape(tmp_path / report.runs[0].tape).matcher.entries
    assert seen[0].reply.body != world[0].reply.body
    assert [str(entry.site) for entry in load_tape(error.runs[0].tape, pick=of_the_world).matcher.entries] == [
        "tool/search#2"
    ]


def test_garbage_is_collected_as_before_once_a_tape_was_read(tape, monkeypatch) -> None:
    for enable in (gc.disable, gc.enable):
        enable()
        load_tape(tape)
        assert gc.isenabled() is (enable is gc.enable)
        assert gc.get_freeze_count() == 0
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 7)  # somebody keeps objects frozen
    monkeypatch.setattr(gc, "unfreeze", lambda: pytest.fail("those of others thaw"))
    load_tape(tape)
    assert gc.isenabled()
