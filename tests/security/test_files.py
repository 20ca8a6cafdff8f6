"""Files from strangers: tapes, configs, exports and stores that are made to do harm."""

from __future__ import annotations

import gzip
import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from e2e_support import clean_env, flakestorm, write_config
from faults_support import JSON, tool_call
from flakestorm.config.load import loads
from flakestorm.core.call import Reply
from flakestorm.errors import ConfigError, Misuse, TapeDamaged
from flakestorm.importers.files import import_file, read_runs
from flakestorm.tape import reader
from flakestorm.tape.lines import START, seal
from flakestorm.tape.reader import Tape
from flakestorm.viewer.shelf import Shelf
from tape_support import Run

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

HEADER = {"format": "flakestorm-tape/2", "run": "r"}


MEASURED = """
import atexit, runpy, sys
atexit.register(lambda: print(open("/proc/self/status").read(), file=sys.stderr))
runpy.run_module("flakestorm", run_name="__main__")
"""
"""The command; at its end, how much memory it held at most. What a parent counts of a child begins with its own."""


def _line_of_lists() -> bytes:
    """A tape's second line, 32 MB of text that would take two gigabytes of memory as objects."""
    head, chain = seal(HEADER, START)
    body = b'{"n":[' + b"[]," * 11_000_000 + b"0]}"
    import hashlib

    digest = hashlib.sha256(chain + body).hexdigest().encode()
    return head + body[:-1] + b',"chain":"' + digest + b'"}\n'


@pytest.mark.parametrize("name", ["a.tape", "a.tape.zst"])
def test_a_line_that_would_fill_the_memory_is_refused_before_it_is_read(tmp_path: Path, name: str) -> None:
    content = _line_of_lists()
    (tmp_path / name).write_bytes(zstd.compress(content) if name.endswith(".zst") else content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TapeDamaged, match="holds more than"):
        list(Tape.open(tmp_path / name))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 * 1024


def test_a_small_file_that_unpacks_to_one_endless_line_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MAX_LINE_BYTES", 1 << 20)
    packed = tmp_path / "a.tape.zst"
    packed.write_bytes(zstd.compress(b" " * (64 << 20)))
    assert packed.stat().st_size < 100_000
    with pytest.raises(TapeDamaged, match="longer than"):
        Tape.open(packed)


def test_replies_that_unpack_to_a_thousand_times_their_size_are_told_one_by_one(tmp_path: Path) -> None:
    packed, coding = gzip.compress(b"a" * (4 << 20)), (("content-encoding", "gzip"), *JSON)
    run = Run(tmp_path / "a.tape")
    for n in range(1, 41):
        run.ask(tool_call(n=n), lambda _: Reply(200, coding, packed))
    run.recorder.close(output="done")
    assert (tmp_path / "a.tape").stat().st_size < 1 << 20
    shown = "tapes", "show", "a.tape", "--format", "json", "-o", "a.json"
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *shown],
        cwd=tmp_path,
        env=clean_env(),
        capture_output=True,
        text=True,
        check=True,
    )
    most = re.search(r"VmHWM:\s+(\d+) kB", done.stderr)
    exchanges = json.loads((tmp_path / "a.json").read_bytes())["exchanges"]
    assert [len(each["reply"]["text"]) for each in exchanges] == [4 << 20] * 40
    assert most is not None
    assert int(most[1]) < 300 * 1024  # all of them at once are twice that, and the text of it as much again


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("headers", {"as": []}), ("headers", {"as": 0, "but": {"0": "x"}}), ("body", {"of": 7, "parts": []}),
        ("body", {"of": [], "parts": []}), ("body", {"base64": "@"}), ("like", 9), ("n", -1), ("site", "../../etc#1"),
        ("reply", None), ("t_ms", "soon"), ("faults", [1]), ("sent", True),
    ],
)  # fmt: skip
def test_a_member_of_another_type_or_to_nowhere_is_damage(tmp_path: Path, field: str, value: object) -> None:
    line = {"n": 0, "site": "tool/a#1", "method": "GET", "url": "http://x/", "headers": [], "body": "", "t_ms": 0,
            "reply": {"status": 200, "headers": [], "body": "", "at_ms": []}, "duration_ms": 0}  # fmt: skip
    head, chain = seal(HEADER, START)
    (tmp_path / "a.tape").write_bytes(head + seal({**line, field: value}, chain)[0])
    with pytest.raises(TapeDamaged, match=r"a\.tape:2"):
        list(Tape.open(tmp_path / "a.tape"))


BASE = 'version: "2.0"\nagent: {endpoint: "http://127.0.0.1:1/"}\ngolden_prompts: [x]\n'


@pytest.mark.parametrize(
    ("extra", "key"),
    [
        ({"agent": {"env": {"A": "x\0y"}}}, "agent.env.A"),
        ({"agent": {"env": {"A=B": "x"}}}, "agent.env.A=B"),
        ({"output": {"path": "x\0y"}}, "output.path"),
        ({"replays": {"sessions": [{"file": "x\0y"}]}}, "replays.sessions[0]"),
        ({"contract": {"invariants": [{"type": "json_schema", "schema": "x\0y"}]}}, "contract.invariants[0].schema"),
        ({"output": {"path": "x" * 5000}}, "no file names that long"),
        ({"agent": {"type": "command", "start": "true", "cwd": "x" * 5000}}, "no file names that long"),
    ],
)
def test_a_text_that_the_system_cannot_take_is_told_of_in_words(
    tmp_path: Path, extra: dict[str, dict[str, object]], key: str
) -> None:
    (tmp_path / "agent.py").write_text("def answer(text): return 'fine'\n")
    said: dict[str, dict[str, object]] = {
        "agent": {"type": "python", "endpoint": "agent:answer"},
        "contract": {
            "name": "c",
            "invariants": [{"id": "answers", "type": "output_not_empty"}],
            "chaos_matrix": [{"name": "plain"}],
        },
    }
    for block, keys in extra.items():
        said[block] = {**said.get(block, {}), **keys}
    write_config(tmp_path, **said)
    done = flakestorm(tmp_path, "contract", "run")
    assert done.code == 2, done.err
    assert key in done.err
    assert "defect" not in done.err


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
        "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n"
        "g: [*f,*f,*f,*f,*f,*f,*f,*f,*f]",
        "a: " + "[" * 5000, "{" * 5000, "a: &a [*a]", BASE + "advanced: {seed: " + "9" * 10_000 + "}",
        BASE + "advanced: {seed: 0x" + "f" * 10_000 + "}", BASE + "version: '1.0'",
        "!!python/object/apply:os.system [id]",
        "a: !!python/name:os.system", BASE + "x: !!binary aGk=", "a: 1\n--- \nb: 2", "a: 1:" + "59:" * 5000 + "1",
        BASE + "invariants: [{id: a, type: regex, pattern: '(?P<a'}]", "- " * 50_000, "? " * 50_000, "&a " * 1000,
    ],
)  # fmt: skip
def test_a_hostile_config_is_refused_in_words_and_at_once(text: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    with pytest.raises(ConfigError):
        loads(text, file="flakestorm.yaml")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 30  # not for ever; the bombs take years


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 200_000, b'{"interactions":' + b"[" * 100_000, gzip.compress(b" " * (65 << 20)), b"\x1f\x8b\x08garbage",
        b"interactions: !!python/object/apply:os.system [touch /tmp/never]", b"interactions: &a [*a]",
        b'{"interactions": [' + b"0," * 1_500_000 + b"0]}",
        b'{"resourceSpans": ' + b'{"a":' * 3000 + b"0" + b"}" * 3000 + b"}",
    ],
)  # fmt: skip
def test_a_hostile_export_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "export").write_bytes(content)
    with pytest.raises(Misuse) as refused:
        read_runs(tmp_path / "export")
    assert "\n" not in str(refused.value)


def test_a_cassette_cannot_run_code(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    for tag in ("object/apply:os.system", "object/new:os.system", "object/apply:subprocess.check_output", "module:os"):
        (tmp_path / "c.yaml").write_text(f"interactions: !!python/{tag} ['touch {mark}']\nversion: 1\n")
        with pytest.raises(Misuse):
            import_file(tmp_path / "c.yaml", tmp_path / "out" / "c.tape")
    assert not mark.exists()


def test_an_export_is_not_written_over_what_a_link_points_to(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    cassette = (
        '{"interactions": [{"request": {"uri": "http://x.example/", "method": "GET", "headers": {}, "body": null},'
        ' "response": {"status": {"code": 200, "message": "OK"}, "headers": {}, "body": {"string": "a"}}}]}'
    )
    (tmp_path / "c.json").write_text(cassette)
    (tmp_path / "c.tape").symlink_to(tmp_path / "precious")
    with pytest.raises(Misuse, match="is already there"):
        import_file(tmp_path / "c.json", tmp_path / "c.tape")
    assert (tmp_path / "precious").read_text() == "precious"


@pytest.mark.parametrize(
    "of", ["tape:../secret.tape", "tape:/etc/passwd", "tape:content/../../secret.tape", "../../x/r", "/"]
)
def test_no_address_of_the_viewer_leads_out_of_its_folder(tmp_path: Path, of: str) -> None:
    store = tmp_path / ".flakestorm"
    store.mkdir()
    (tmp_path / "secret.tape").write_bytes(seal(HEADER, START)[0])
    with pytest.raises(Misuse):
        Shelf(store).recording(of)


def test_a_report_cannot_name_a_file_for_the_viewer_to_read(tmp_path: Path) -> None:
    """A run's tape is found by the hash the store keeps, never by the path in the document."""
    from flakestorm.store.sqlite import Store
    from report_samples import sample
    from store_support import document

    (tmp_path / "secret.tape").write_bytes(seal(HEADER, START)[0])
    with Store(tmp_path / ".flakestorm", write=True) as store:
        made = document(sample())
        for run in made["runs"]:
            run["tape"] = "../secret.tape"
        id_ = store.save(made)
    with pytest.raises(Misuse, match="no tape was kept"):
        Shelf(tmp_path / ".flakestorm").recording(f"{id_}/{made['runs'][0]['id']}")


def test_no_word_of_a_config_is_a_template(tmp_path: Path) -> None:
    """Neither Jinja's braces nor Python's format fields mean anything where a user or an agent may write."""
    evil = "{{7*7}} {% raw %} ${X} {0.__class__} %(x)s #{1}"
    write_config(
        tmp_path,
        agent={"type": "command", "start": [sys.executable, "-c", "import sys; print(sys.stdin.read())"]},
        golden_prompts=[evil.replace("${X}", "$${X}")],
        mutations={
            "types": ["custom"],
            "count": 1,
            "custom_templates": {"mine": "say {prompt} {{7*7}} {prompt.__class__}"},
        },
        invariants=[{"id": "echo", "type": "contains", "value": "{{7*7}} {% raw %}"}],
    )
    done = flakestorm(tmp_path, "run", report=True)
    assert done.report is not None, done.err
    assert done.report["runs"][0]["output"].strip() == f"say {evil} {{{{7*7}}}} {{prompt.__class__}}"


def test_what_holds_a_secret_is_for_its_owner_alone(tmp_path: Path) -> None:
    from flakestorm.boundary.announcing import announce
    from flakestorm.reports.keys import FILE, own_key

    before = os.umask(0)
    try:
        announce(tmp_path, "http://127.0.0.1:1/r/token")
        own_key(tmp_path)
    finally:
        os.umask(before)
    for name in ("gateway", FILE):
        assert (tmp_path / name).stat().st_mode & 0o077 == 0, name
