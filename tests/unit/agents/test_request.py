"""Rendering requests: whatever the input holds, the request stays what its template says."""

import json
import string
from urllib.parse import parse_qs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flakestorm.agents.request import RequestTemplate, parse_structured_input
from flakestorm.config.model import Agent
from flakestorm.core.call import header
from flakestorm.errors import ConfigError

TEXTS = st.text(st.characters(exclude_categories=()))  # half surrogate pairs included


def template(text: str | None, **more: object) -> RequestTemplate:
    return RequestTemplate(Agent.of({"endpoint": "http://a/", "request_template": text, **more}))


def test_without_a_template_the_input_is_sent_as_input() -> None:
    request = template(None, query_params={"v": "2"}).render('say "hi"\n')
    assert json.loads(request.body) == {"input": 'say "hi"\n'}
    assert request.params == (("v", "2"),)
    assert request.method == "POST"
    assert header(request.headers, "content-type") == "application/json"


@settings(deadline=None)
@given(TEXTS)
def test_no_input_can_break_a_json_template(prompt: str) -> None:
    body = template('{"message": "<{prompt}>", "deep": [{"x": {prompt}}], "n": 1}').render(prompt).body
    assert json.loads(body) == {"message": f"<{prompt}>", "deep": [{"x": prompt}], "n": 1}


@settings(deadline=None)
@given(TEXTS)
def test_an_input_that_holds_placeholders_is_not_filled_again(noise: str) -> None:
    prompt = f"City: {{prompt}}\n{noise} {{city}}"
    body = template('{"m": "{prompt}", "c": "{city}"}').render(prompt).body
    assert json.loads(body)["m"] == prompt


def test_lines_of_the_input_fill_placeholders() -> None:
    render = template('{"to": "{City Name}", "to2": "{city_name}", "n": {guests}, "who": {who}, "x": {none}}').render
    body = json.loads(render('City Name: Oslo "fjord"\nguests = 2\nWho - Ada').body)
    assert body == {"to": "{City Name}", "to2": 'Oslo "fjord"', "n": 2, "who": "Ada", "x": None}


def test_lines_are_left_alone_when_told_so() -> None:
    body = template('{"m": "{prompt}", "to": "{city}"}', parse_structured_input=False).render("City: Oslo").body
    assert json.loads(body) == {"m": "City: Oslo", "to": "{city}"}


def test_a_prompt_that_stands_for_a_value_is_always_a_string() -> None:
    assert json.loads(template('{"m": {prompt}}').render("42").body) == {"m": "42"}


def test_a_placeholder_in_a_key_is_escaped_too() -> None:
    assert json.loads(template('{"{prompt}": 1}').render('a"b').body) == {'a"b': 1}


def test_a_template_that_is_not_json_is_plain_text() -> None:
    request = template("Question: {prompt}").render('say "hi"')
    assert request.body == b'Question: say "hi"'
    assert header(request.headers, "content-type") == "text/plain; charset=utf-8"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"message": "{prompt}",}', "line 1, column 24"),
        ('{ "message": {prompt}', "line 1, column 22"),
        ('{\n  "message": "{prompt}"\n  "n": {n}\n}', "line 3, column 3"),
        ('[{"role": "user", "content": {prompt}]', "line 1, column 38"),
        ("[ {prompt}, ]", "column 13"),
        ('["a", {prompt}', "column 15"),
        ("{\"a\": '{prompt}'}", "line 1, column 7"),
    ],
)
def test_a_template_that_looks_like_json_and_is_none_is_a_slip(text: str, where: str) -> None:
    with pytest.raises(ConfigError, match=r"agent\.request_template: this looks like JSON") as caught:
        template(text)
    assert where in str(caught.value)


@pytest.mark.parametrize(
    "text", ["[INST] {prompt} [/INST]", "{{prompt}}", "{prompt} {x}", "{name}: {prompt}", "[1] {x}"]
)
def test_text_in_brackets_is_text(text: str) -> None:
    assert template(text).render("hi").body == text.replace("{prompt}", "hi").encode()


def test_a_template_that_is_only_the_prompt_sends_the_input_itself() -> None:
    request = template("{prompt}").render('{"q": 1}')
    assert request.body == b'{"q": 1}'
    assert header(request.headers, "content-type") == "application/json"
    assert header(template(" {prompt} ").render("hello").headers, "content-type") == "text/plain; charset=utf-8"


def test_form_fields_are_percent_encoded() -> None:
    form = template("q={prompt}&x=1", headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert parse_qs(form.render("a&b=c d é").body.decode()) == {"q": ["a&b=c d é"], "x": ["1"]}


def test_the_configured_content_type_wins() -> None:
    request = template(None, headers={"content-type": "application/vnd.agent+json"}).render("x")
    assert request.headers == (("content-type", "application/vnd.agent+json"),)


def test_get_sends_fields_as_query_parameters() -> None:
    request = template('{"q": "{prompt}", "n": 3, "deep": {"a": [1]}}', method="get", query_params={"v": "2"}).render(
        "a&b"
    )
    assert request.params == (("v", "2"), ("q", "a&b"), ("n", "3"), ("deep", '{"a": [1]}'))
    assert request.body == b""
    assert template("find {prompt}", method="DELETE").render("x").params == (("q", "find x"),)


@settings(deadline=None)
@given(TEXTS)
def test_query_parameters_can_always_be_encoded(prompt: str) -> None:
    for _, value in template(None, method="GET").render(prompt).params:
        value.encode()


def test_structured_input_takes_the_first_separator_of_colon_equals_dash() -> None:
    text = "Brand Name: Acme\n\nSize = 3\nA - b - c\nnothing here\n?: x\nlink=https://x\nBrand name: New"
    assert parse_structured_input(text) == {"brandname": "New", "size": "3", "a": "b - c", "linkhttps": "//x"}


@settings(deadline=None)
@given(
    st.dictionaries(st.text(string.ascii_lowercase, min_size=1), st.text(string.ascii_letters + " :=-").map(str.strip))
)
def test_key_value_lines_survive(fields: dict[str, str]) -> None:
    assert parse_structured_input("\n".join(f"{key}: {value}" for key, value in fields.items())) == fields


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        ('{"q": "x"}', {}, r"holds no \{prompt\}, so no input would reach the agent; put it where the input belongs$"),
        ("", {}, "holds no"),
        ('{"q": "{promt}"}', {"parse_structured_input": False}, r"holds no .* \(is \{promt\} meant to be it\?\)"),
    ],
)
def test_a_template_without_a_place_for_the_input_is_refused(text: str, more: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        template(text, **more)
    assert caught.value.key == "agent.request_template"


def test_an_input_of_which_nothing_would_be_sent_is_told() -> None:
    lost = template('{"q": "{promt}", "city": {city}}').lost
    assert lost("City: Oslo") is None
    assert lost("hello") == (
        "agent.request_template takes {promt}, {city} and the input has no 'Key: value' lines, so nothing of it would "
        "be sent; write {prompt} where the input belongs (is {promt} meant to be it?)"
    )
    assert "has the fields name," in str(lost("Name: Ann"))
    assert template('{"q": "{prompt}"}').lost("hello") is None
    assert template(None).lost("hello") is None
