"""A certificate from the real command, checked by tools of others."""

import json
import re
import shlex
import subprocess
import sys
from base64 import b64decode
from hashlib import sha256
from pathlib import Path

import jsonschema
import pytest
from google.protobuf.json_format import ParseDict
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as Message
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey

from e2e_support import flakestorm, write_config

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "certificate.md"
SCHEMA = PAGE.parents[1] / "reference" / "certificate.schema.json"
CONTRACT = {
    "name": "echo-contract",
    "invariants": [{"id": "echoes", "type": "contains", "value": "you said"}],
    "chaos_matrix": [{"name": "calm"}],
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "echo_agent.py").write_text("def answer(text):\n    return f'you said {text}'\n")
    write_config(
        tmp_path,
        agent={"type": "python", "endpoint": "echo_agent:answer"},
        golden_prompts=["hello", "bye"],
        contract=CONTRACT,
        certificate={"tester_name": "Ada of Testing", "pass_threshold": 80},
    )
    assert flakestorm(tmp_path, "contract", "run", report=True).code == 0
    return tmp_path


def test_others_can_check_it(folder) -> None:
    done = flakestorm(folder, "certificate", "out/report.json", "-o", "X.html")
    assert done.code == 0, done.err
    document = json.loads((folder / "X.dsse.json").read_text())
    keys = [
        SSlibKey(s["keyid"], "ed25519", "ed25519", {"public": b64decode(s["public_key"]).hex()})
        for s in document["signatures"]
    ]
    envelope = Envelope.from_dict(document)
    envelope.verify(keys, 1)
    assert envelope.payload_type == "application/vnd.in-toto+json"
    statement = json.loads(envelope.payload)
    Statement.copy_from_pb(ParseDict(statement, Message())).validate()
    jsonschema.validate(statement, json.loads(SCHEMA.read_text()))
    tapes = sorted((folder / "out" / "report.tapes").glob("*.tape"))
    assert [(s["name"], s["digest"]["sha256"]) for s in statement["subject"]] == [
        (f"out/report.tapes/{tape.name}", sha256(tape.read_bytes()).hexdigest()) for tape in tapes
    ]
    page = (folder / "X.html").read_text()
    for words in ("Ada of Testing", "echo-contract", "100.00 of 100", "met: the least that is accepted is 80"):
        assert words in page


def test_the_demo_can_be_certified(tmp_path) -> None:
    """Its config lies in the package and needs variables that only the demo sets."""
    assert flakestorm(tmp_path, "demo").code in (0, 1)
    done = flakestorm(tmp_path, "certificate", "latest", "-o", "X.html")
    assert done.code == 0, done.err
    assert flakestorm(tmp_path, "certificate", "verify", "X.html").code == 0
    assert (tmp_path / ".flakestorm" / "certificate.key").is_file()


def test_verify_judges(folder) -> None:
    assert flakestorm(folder, "certificate", "out/report.json", "-o", "X.html").code == 0
    assert flakestorm(folder, "certificate", "verify", "X.dsse.json").code == 0
    tape = folder / "out" / "report.tapes" / "r-0001.tape"
    content = tape.read_bytes()
    tape.write_bytes(content[:-3] + b"!" + content[-2:])
    done = flakestorm(folder, "certificate", "verify", "X.dsse.json")
    assert (done.code, "out/report.tapes/r-0001.tape: the tape was changed" in done.out) == (1, True)
    tape.unlink()
    done = flakestorm(folder, "certificate", "verify", "X.dsse.json")
    assert (done.code, "out/report.tapes/r-0001.tape: the tape is missing" in done.out) == (1, True)


def test_a_key_of_openssl_signs_and_is_recognised(folder) -> None:
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", "key.pem"], cwd=folder, check=True)
    public = ["openssl", "pkey", "-in", "key.pem", "-pubout", "-out", "key.pub"]
    subprocess.run(public, cwd=folder, check=True)
    key = {"FLAKESTORM_SIGNING_KEY": str(folder / "key.pem")}
    assert flakestorm(folder, "certificate", "latest", "--key", "key.pem", "-o", "X.html").code == 0
    assert flakestorm(folder, "certificate", "latest", "-o", "Y.html", env=key).code == 0
    for name in ("X", "Y"):
        assert flakestorm(folder, "certificate", "verify", f"{name}.dsse.json", "--key", "key.pub").code == 0
    assert not (folder / ".flakestorm" / "certificate.key").exists()
    assert flakestorm(folder, "certificate", "latest", "-o", "Z.html").code == 0
    done = flakestorm(folder, "certificate", "verify", "Z.html", "--key", "key.pub")
    assert (done.code, "not by the key" in done.out) == (1, True)


@pytest.mark.parametrize(
    ("missing", "words", "extra"),
    [
        ("cryptography", ["certificate", "latest"], "signing"),
        ("reportlab", ["certificate", "latest", "--format", "pdf"], "pdf"),
    ],
)
def test_without_an_extra_it_is_named(folder, missing, words, extra) -> None:
    script = f"import sys; sys.modules['{missing}'] = None\nfrom flakestorm.cli.main import main; main({words!r})"
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, f"pip install 'flakestorm[{extra}]'" in done.stderr) == (2, True), done.stderr


def test_what_the_page_shows_runs(folder) -> None:
    (script,) = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for line in re.findall(r"^\$ (.*)$", PAGE.read_text(), re.MULTILINE):
        done = flakestorm(folder, *shlex.split(line)[1:])
        assert done.code == 0, f"{line}: {done.out}{done.err}"
    words = ["bash", "-ec", script.replace("python ", f"{sys.executable} ")]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, "Signature Verified Successfully" in done.stdout) == (0, True), done.stderr
