"""CPU seconds that presidio takes for each of some documents, with its pattern recognisers and no language model.

Runs in presidio's own environment: standard input is `{"warm": [...], "unseen": [...], "entities": [...]}`, standard
output the seconds for each unseen document. Words are told apart by spaCy's blank English tokeniser, which needs no
model; presidio looks for context words in them.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterator
from typing import Any

import spacy
from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
from presidio_analyzer.nlp_engine import NlpArtifacts, NlpEngine


class Blank(NlpEngine):  # type: ignore[misc]
    """Words and nothing else."""

    def __init__(self) -> None:
        self._words = spacy.blank("en")
        self._words.max_length = 10_000_000

    def load(self) -> None: ...

    def is_loaded(self) -> bool:
        return True

    def get_supported_entities(self) -> list[str]:
        return []

    def get_supported_languages(self) -> list[str]:
        return ["en"]

    def process_text(self, text: str, language: str) -> Any:
        words = self._words(text)
        return NlpArtifacts([], words, [w.idx for w in words], [w.lower_ for w in words], self, language, [])

    def process_batch(self, texts: Any, language: str, **_: Any) -> Iterator[tuple[str, Any]]:
        for text in texts:
            yield text, self.process_text(text, language)

    def is_stopword(self, word: str, language: str) -> bool:
        return False

    def is_punct(self, word: str, language: str) -> bool:
        return False


def main() -> None:
    logging.disable(logging.CRITICAL)
    asked = json.load(sys.stdin)
    engine = Blank()
    registry = RecognizerRegistry(supported_languages=["en"])
    registry.load_predefined_recognizers(languages=["en"], nlp_engine=engine)
    for recognizer in list(registry.recognizers):
        if recognizer.name == "SpacyRecognizer":
            registry.remove_recognizer(recognizer.name)
    known = set(registry.get_supported_entities(["en"]))
    entities = sorted(known & set(asked["entities"]))
    analyzer = AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=["en"])
    for text in asked["warm"]:
        analyzer.analyze(text, "en", entities=entities)
    seconds = []
    for text in asked["unseen"]:
        before = time.process_time()
        analyzer.analyze(text, "en", entities=entities)
        seconds.append(time.process_time() - before)
    json.dump({"seconds": seconds, "entities": entities}, sys.stdout)


if __name__ == "__main__":
    main()
