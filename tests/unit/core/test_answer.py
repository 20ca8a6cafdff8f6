from flakestorm.core.answer import AgentError, Answer


def test_an_error_reads_as_kind_and_message() -> None:
    assert str(AgentError("http", "500 Internal Server Error")) == "http: 500 Internal Server Error"


def test_an_answer_without_error_is_the_default() -> None:
    assert Answer("hello").error is None
