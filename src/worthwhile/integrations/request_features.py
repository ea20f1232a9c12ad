"""What a request to a language model shows of itself: its length, its tools, its language. None of its text is kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from worthwhile.policies.features import Feature

LOOKED_AT = 2000  # characters, for the language
ENOUGH = 3  # words that tell a language
SCRIPTS = {
    "ja": r"[\u3040-\u30ff]",  # before Chinese, whose signs it also uses
    "zh": r"[\u4e00-\u9fff]",
    "ko": r"[\uac00-\ud7af]",
    "cyrillic": r"[\u0400-\u04ff]",
    "greek": r"[\u0370-\u03ff]",
    "arabic": r"[\u0600-\u06ff]",
    "hebrew": r"[\u0590-\u05ff]",
    "devanagari": r"[\u0900-\u097f]",
    "thai": r"[\u0e00-\u0e7f]",
}
WORDS = {
    "en": "the and is are of to in that this with for what how you it write please",
    "de": "der die das und ist nicht ein eine mit für wie was ich sie zu von bitte",
    "fr": "le la les et est une des du que pour dans qui comment vous pas avec",
    "es": "el los las y es una del que para en por como qué con cómo se",
    "it": "il gli è che una di per con non come sono della questo cosa",
    "pt": "o os é uma do da que para em não com como você são",
    "nl": "de het een en is niet van voor met hoe wat dat ik je op",
}
TELLING = {language: frozenset(words.split()) for language, words in WORDS.items()}


def request_features(messages: Any, values: Mapping[str, Any]) -> dict[str, Feature]:
    """Numbers and a language; of what is no chat, like a text to embed, as far as it goes."""
    content = [messages] if isinstance(messages, str) else messages or []
    parts = list(parts_of(content if messages else as_list(values.get("input"))))
    text = "\n".join(part for part in parts if isinstance(part, str))
    return {
        "characters": len(text),
        "messages": len(content),
        "images": sum(not isinstance(part, str) for part in parts),
        "tools": len(values.get("tools") or ()),
        "language": language_of(text[-LOOKED_AT:]),
    }


def as_list(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]


def parts_of(messages: Iterable[Any]) -> Iterator[Any]:
    """Every text as a text, and whatever else a message has in it as it is."""
    for message in messages:
        content = message.get("content") if isinstance(message, Mapping) else message
        for part in as_list(content):
            if isinstance(part, Mapping):
                yield part["text"] if isinstance(part.get("text"), str) else part
            elif isinstance(part, str):
                yield part


def language_of(text: str) -> str | None:
    """A guess: by its script or, among some that are written in Latin letters, by the words that it uses most."""
    for language, letters in SCRIPTS.items():
        if len(re.findall(letters, text)) * 5 > len(text):
            return language
    words = re.findall(r"\w+", text.lower())
    found = {language: sum(word in telling for word in words) for language, telling in TELLING.items()}
    best = max(found, key=found.__getitem__)
    return best if found[best] >= ENOUGH else None
