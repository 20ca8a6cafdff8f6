"""More than one language at once: `language_mixing`. All benign: the wish, its names and its numbers stay."""

from __future__ import annotations

from flakestorm.core.choices import Draw
from flakestorm.mutations.base import Operator, types
from flakestorm.mutations.spans import closed, edited, words

__all__ = ["FRAMES", "WORDS"]

FRAMES: dict[str, tuple[tuple[str, str], ...]] = {
    "es": (("Hola, por favor: ", " Muchas gracias."), ("Necesito ayuda con esto: ", ""), ("Oye, ",
                                                                                          " ¿Puedes hacerlo?")),
    "fr": (("Bonjour, s'il vous plaît : ", " Merci beaucoup."), ("J'ai besoin de ceci : ", ""), ("Salut ! ",
                                                                                                 " Merci !")),
    "de": (("Guten Tag, bitte: ", " Vielen Dank."), ("Ich brauche Folgendes: ", ""), ("Hallo! ", " Danke im Voraus.")),
    "it": (("Buongiorno, per favore: ", " Grazie mille."), ("Ho bisogno di questo: ", ""), ("Ciao, ", " Grazie!")),
    "pt": (("Olá, por favor: ", " Muito obrigado."), ("Preciso disto: ", ""), ("Oi, ", " Obrigada!")),
    "nl": (("Goedendag, alstublieft: ", " Dank u wel."), ("Ik heb dit nodig: ", ""), ("Hoi, ", " Bedankt!")),
    "pl": (("Dzień dobry, proszę: ", " Dziękuję bardzo."), ("Potrzebuję tego: ", ""), ("Cześć, ", " Dzięki!")),
    "tr": (("Merhaba, lütfen: ", " Çok teşekkürler."), ("Şuna ihtiyacım var: ", ""), ("Selam, ", " Sağ ol!")),
    "ru": (("Здравствуйте, пожалуйста: ", " Большое спасибо."), ("Мне нужно вот что: ", ""), ("Привет! ", " Спасибо!")),
    "ar": (("مرحبا، من فضلك: ", " شكرا جزيلا."), ("أحتاج إلى هذا: ", "")),
    "hi": (("नमस्ते, कृपया: ", " बहुत धन्यवाद।"), ("मुझे यह चाहिए: ", "")),
    "zh": (("你好，请帮忙：", " 非常感谢。"), ("我需要这个：", "")),
    "ja": (("こんにちは、お願いします：", " ありがとうございます。"), ("次のことをお願いします：", "")),
    "ko": (("안녕하세요, 부탁드립니다: ", " 감사합니다."), ("이것이 필요합니다: ", "")),
}  # fmt: skip
"""What is said before and after, by language."""

WORDS: dict[str, dict[str, str]] = {
    "es": {"a": "un", "and": "y", "the": "el", "with": "con", "for": "para", "please": "por favor", "flight": "vuelo",
           "hotel": "hotel", "book": "reserva", "find": "busca", "what": "qué", "is": "es", "weather": "tiempo",
           "tomorrow": "mañana", "today": "hoy", "my": "mi", "send": "envía", "to": "a", "in": "en", "how": "cómo",
           "price": "precio", "cheapest": "más barato", "write": "escribe", "show": "muestra", "order": "pedido"},
    "fr": {"a": "un", "and": "et", "the": "le", "with": "avec", "for": "pour", "please": "s'il te plaît",
           "flight": "vol", "book": "réserve", "find": "trouve", "what": "quel", "is": "est", "weather": "temps",
           "tomorrow": "demain", "today": "aujourd'hui", "my": "mon", "send": "envoie", "to": "à", "in": "à",
           "how": "comment", "price": "prix", "cheapest": "le moins cher", "write": "écris", "show": "montre",
           "order": "commande"},
    "de": {"a": "einen", "and": "und", "the": "der", "with": "mit", "for": "für", "please": "bitte", "flight": "Flug",
           "book": "buche", "find": "finde", "what": "was", "is": "ist", "weather": "Wetter", "tomorrow": "morgen",
           "today": "heute", "my": "mein", "send": "sende", "to": "nach", "in": "in", "how": "wie", "price": "Preis",
           "cheapest": "billigste", "write": "schreibe", "show": "zeige", "order": "Bestellung"},
    "it": {"a": "un", "and": "e", "the": "il", "with": "con", "for": "per", "please": "per favore", "flight": "volo",
           "book": "prenota", "find": "trova", "what": "che", "is": "è", "weather": "tempo", "tomorrow": "domani",
           "today": "oggi", "my": "mio", "send": "manda", "to": "a", "how": "come", "price": "prezzo",
           "write": "scrivi", "show": "mostra", "order": "ordine"},
    "pt": {"a": "um", "and": "e", "the": "o", "with": "com", "for": "para", "please": "por favor", "flight": "voo",
           "book": "reserve", "find": "encontre", "what": "qual", "is": "é", "weather": "tempo", "tomorrow": "amanhã",
           "today": "hoje", "my": "meu", "send": "envie", "to": "para", "how": "como", "price": "preço",
           "write": "escreva", "show": "mostre", "order": "pedido"},
    "nl": {"a": "een", "and": "en", "the": "de", "with": "met", "for": "voor", "please": "alsjeblieft",
           "flight": "vlucht", "book": "boek", "find": "vind", "what": "wat", "is": "is", "weather": "weer",
           "tomorrow": "morgen", "today": "vandaag", "my": "mijn", "send": "stuur", "to": "naar", "how": "hoe",
           "price": "prijs", "write": "schrijf", "show": "toon", "order": "bestelling"},
    "ru": {"and": "и", "with": "с", "for": "для", "please": "пожалуйста", "flight": "рейс", "book": "забронируй",
           "find": "найди", "what": "что", "weather": "погода", "tomorrow": "завтра", "today": "сегодня", "my": "мой",
           "send": "отправь", "to": "в", "how": "как", "price": "цена", "write": "напиши", "show": "покажи",
           "order": "заказ"},
    "ja": {"and": "と", "please": "お願いします", "flight": "フライト", "book": "予約", "weather": "天気",
           "tomorrow": "明日", "today": "今日", "what": "何", "send": "送って", "price": "値段", "find": "探して",
           "write": "書いて", "show": "見せて", "order": "注文"},
}  # fmt: skip
"""Common words, by language."""


def _framed(prompt: str, draw: Draw) -> str:
    before, after = draw.choice(FRAMES[draw.choice(list(FRAMES))])
    return f"{before}{closed(prompt) if after else prompt.strip()}{after}"


def _two_frames(prompt: str, draw: Draw) -> str:
    """Greeted in one language, thanked in another."""
    first, second = draw.sample(list(FRAMES), 2)
    return FRAMES[first][0][0] + closed(prompt) + FRAMES[second][0][1]


def _switched(prompt: str, draw: Draw) -> str | None:
    return _in_words(prompt, draw, [draw.choice(list(WORDS))])


def _salad(prompt: str, draw: Draw) -> str | None:
    return _in_words(prompt, draw, draw.sample(list(WORDS), 3))


def _in_words(prompt: str, draw: Draw, languages: list[str]) -> str | None:
    """Words of these languages in the place of English ones."""
    return edited(prompt, draw, draw.uniform(0.3, 1.0), lambda w: WORDS[draw.choice(languages)].get(w.lower()))


def _interjected(prompt: str, draw: Draw) -> str | None:
    fillers = (
        "bueno",
        "alors",
        "also",
        "allora",
        "então",
        "nou",
        "ну",
        "えっと",
        "那个",
        "يعني",
        "yani",
        "matlab",
        "no więc",
    )
    places = words(prompt)
    if not places:
        return None
    for place in sorted(draw.sample(places, min(len(places), draw.randint(1, 2))), key=lambda w: -w.start()):
        prompt = f"{prompt[: place.start()]}{draw.choice(fillers)}, {prompt[place.start() :]}"
    return prompt


def _instructed(prompt: str, draw: Draw) -> str:
    """The request in English, how to answer it in another language."""
    tail = draw.choice((" (responde en inglés, por favor)", " (réponds en anglais, s'il te plaît)",
                        " (bitte auf Englisch)",
                        " (rispondi in inglese)", " (英語で答えてください)", " (请用英语回答)",
                        " (ответь по-английски)",
                        " (responda em inglês)", " (영어로 대답해 주세요)", " (أجب بالإنجليزية)"))  # fmt: skip
    return prompt.strip() + tail


@types.add("language_mixing")
def language_mixing() -> tuple[Operator, ...]:
    """Fourteen languages around the prompt, eight inside it; all benign."""
    return (
        Operator("frame", "benign", _framed),
        Operator("switched_words", "benign", _switched),
        Operator("interjections", "benign", _interjected),
        Operator("two_frames", "benign", _two_frames),
        Operator("answer_in_english", "benign", _instructed),
        Operator("word_salad", "benign", _salad),
    )
