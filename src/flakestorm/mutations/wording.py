"""Other words for the same wish: `paraphrase`, and `semantic_similarity_attack`, which says it in ways that mislead."""

from __future__ import annotations

import re

from flakestorm.core.choices import Draw
from flakestorm.mutations.base import Operator, types
from flakestorm.mutations.spans import closed, edited, facts, lowered

__all__ = ["SYNONYMS", "question", "requested"]

SYNONYMS: dict[str, tuple[str, ...]] = {
    "about": ("regarding", "concerning"), "add": ("include", "put in"), "also": ("too", "as well"),
    "answer": ("reply to", "respond to"), "arrange": ("organise", "set up"), "ask": ("request", "enquire"),
    "begin": ("start", "commence"), "best": ("finest", "top"), "big": ("large", "sizeable"),
    "book": ("reserve", "arrange"), "buy": ("purchase", "get"), "calculate": ("compute", "work out"),
    "cancel": ("call off", "annul"), "change": ("alter", "modify"), "cheap": ("inexpensive", "low-cost"),
    "cheapest": ("least expensive", "lowest-priced"), "check": ("verify", "look up"), "choose": ("pick", "select"),
    "compare": ("contrast", "weigh up"), "confirm": ("verify", "acknowledge"), "create": ("make", "set up"),
    "current": ("present", "latest"), "customer": ("client",), "delete": ("remove", "erase"),
    "describe": ("outline", "depict"), "details": ("particulars", "specifics"), "difference": ("distinction",
                                                                                               "contrast"),
    "draft": ("write", "prepare"), "email": ("e-mail", "mail"), "explain": ("clarify", "describe"),
    "fast": ("quick", "speedy"), "fastest": ("quickest",), "find": ("look for", "locate"), "fix": ("repair", "mend"),
    "flight": ("plane ticket", "plane seat"), "flights": ("plane tickets",), "get": ("obtain", "fetch"),
    "give": ("provide", "hand"), "good": ("decent", "solid"), "help": ("assist", "support"),
    "hotel": ("place to stay",),
    "how": ("in what way",), "important": ("significant", "key"), "inform": ("tell", "notify"),
    "information": ("details", "info"), "last": ("most recent", "final"), "list": ("enumerate", "name"),
    "look": ("search", "check"), "make": ("create", "prepare"), "meeting": ("appointment",), "need": ("require",),
    "new": ("fresh", "brand-new"), "next": ("following", "upcoming"), "order": ("purchase",),
    "plan": ("organise", "map out"), "please": ("kindly",), "price": ("cost",), "prices": ("costs",),
    "problem": ("issue", "trouble"), "provide": ("give", "supply"), "quick": ("fast", "rapid"),
    "quickly": ("rapidly", "promptly"), "recommend": ("suggest", "advise"), "remove": ("delete", "take out"),
    "reply": ("respond", "answer"), "reserve": ("book",), "schedule": ("arrange", "plan"), "search": ("look", "hunt"),
    "send": ("forward", "dispatch"), "short": ("brief", "concise"), "show": ("display", "present"),
    "small": ("little", "compact"), "suggest": ("recommend", "propose"), "summarise": ("sum up", "condense"),
    "summarize": ("sum up", "condense"), "task": ("job", "assignment"), "tell": ("let know", "inform"),
    "translate": ("render", "put"), "trip": ("journey",), "update": ("refresh", "bring up to date"),
    "use": ("employ", "apply"), "want": ("wish", "would like"), "weather": ("weather conditions", "forecast"),
    "write": ("compose", "draft"),
}  # fmt: skip

_CONTRACTED = (
    ("do not", "don't"), ("does not", "doesn't"), ("can not", "can't"), ("cannot", "can't"), ("will not", "won't"),
    ("is not", "isn't"), ("are not", "aren't"), ("I am", "I'm"), ("I will", "I'll"), ("I would", "I'd"),
    ("I have", "I've"), ("what is", "what's"), ("where is", "where's"), ("who is", "who's"), ("how is", "how's"),
    ("that is", "that's"), ("it is", "it's"), ("you are", "you're"), ("we are", "we're"), ("let us", "let's"),
)  # fmt: skip

_ASKING = frozenset(
    "what which who whom whose where when why how is are am was were do does did can could will would may".split()  # noqa: SIM905
)

_REQUESTS = (
    "Could you {p}?", "Would you {p}?", "I need you to {p}.", "I'd like you to {p}.", "Can you {p} for me?",
    "I was hoping you could {p}.", "Would you mind helping me? Please {p}.", "It would be great if you could {p}.",
    "Your task: {p}.", "What I want is for you to {p}.", "Here is what I need: {p}.", "Be so kind as to {p}.",
)  # fmt: skip
_QUESTIONS = (
    "I'd like to know: {p}", "Tell me: {p}", "My question is this: {p}", "Can you answer this for me? {p}",
    "I have a question. {p}", "Do you know the answer to this? {p}", "I was wondering: {p}", "Quick question: {p}",
    "Something I need to find out: {p}", "Help me understand this: {p}",
)  # fmt: skip
_ANY = (
    "Here is what I need: {p}", "Please take care of this: {p}", "This is my request: {p}",
    "I need help with this: {p}",
    "Could you look after the following? {p}", "Regarding the following, please do what is needed: {p}",
    "For me, please: {p}", "What I'm after: {p}", "{c} That is all I need.", "{c} Can you do that?",
)  # fmt: skip


def question(prompt: str) -> bool:
    """Whether the prompt asks, rather than tells."""
    first = prompt.lstrip().split(maxsplit=1)
    return prompt.rstrip().endswith("?") or bool(first and first[0].lower().strip(",'’") in _ASKING)


def requested(prompt: str) -> bool:
    """Whether the prompt is one plain order ("Book a flight ...") that can follow "Could you"."""
    start = prompt.strip()
    return lowered(start) != start and not question(start) and not re.search(r"[.!?]\s|\n", start.rstrip(".!? "))


def _framed(prompt: str, draw: Draw) -> str:
    if requested(prompt) and draw.random() < 0.75:
        return draw.choice(_REQUESTS).replace("{p}", lowered(prompt.strip()).rstrip(".! "))
    frames = _QUESTIONS if question(prompt) and draw.random() < 0.75 else _ANY
    return draw.choice(frames).replace("{p}", prompt.strip()).replace("{c}", closed(prompt))


def _synonyms(prompt: str, draw: Draw) -> str | None:
    return edited(prompt, draw, 0.5, lambda word: _like(word, draw))


def _like(word: str, draw: Draw) -> str | None:
    found = SYNONYMS.get(word.lower())
    if found is None:
        return None
    new = draw.choice(found)
    return new[0].upper() + new[1:] if word[0].isupper() else new


def _contractions(prompt: str, draw: Draw) -> str | None:
    """Said short where it was long, or long where it was short."""
    kept = facts(prompt)
    for long, short in draw.sample(_CONTRACTED, len(_CONTRACTED)):
        for old, new in ((long, short), (short, long)):
            found = re.search(rf"\b{re.escape(old)}\b", prompt, re.IGNORECASE)
            if found is not None:
                said = new[0].upper() + new[1:] if found[0][0].isupper() else new
                text = prompt[: found.start()] + said + prompt[found.end() :]
                if all(fact in text for fact in kept):  # "IT IS" may be a name
                    return text
    return None


def _both(prompt: str, draw: Draw) -> str:
    return _framed(_synonyms(prompt, draw) or prompt, draw)


def _split(prompt: str, draw: Draw) -> str:
    """The aim first, the request after it."""
    lead = draw.choice(("I have one thing for you to do.", "There is something I want from you.", "One request.",
                        "I'm turning to you with a wish.", "A small matter I need settled."))  # fmt: skip
    tail = draw.choice(("", " Thanks.", " Thank you very much.", " That would help me a lot."))
    return f"{lead} {closed(prompt) if tail else prompt.strip()}{tail}"


def _double_negation(prompt: str, draw: Draw) -> str:
    if requested(prompt):
        wish = lowered(prompt.strip()).rstrip(".! ")
        frame = draw.choice(("Do not fail to {p}.", "I would not want you not to {p}.", "Don't neglect to {p}.",
                             "Under no circumstances forget to {p}.", "It is not that I don't want you to {p}; I do.",
                             "You must not omit to {p}."))  # fmt: skip
        return frame.replace("{p}", wish)
    lead = draw.choice(("Do not leave this unanswered: ", "This must not go unanswered: ",
                        "It is not the case that I don't want this: ", "Don't fail to deal with this: "))  # fmt: skip
    return lead + prompt.strip()


def _contrast(prompt: str, draw: Draw) -> str:
    other = draw.choice(("a summary of our talk", "a joke", "an apology", "a list of your abilities", "a poem",
                         "advice on something else", "a translation", "general information"))  # fmt: skip
    frame = draw.choice(("I don't want {o}. I want this: {p}", "{c} Not {o}, just that.", "Instead of {o}: {p}",
                         "This is not a request for {o}, but the following: {p}"))  # fmt: skip
    return frame.replace("{o}", other).replace("{p}", prompt.strip()).replace("{c}", closed(prompt))


def _quoted(prompt: str, draw: Draw) -> str:
    who = draw.choice(("My colleague", "My sister", "A friend of mine", "My manager", "Our customer", "My neighbour"))
    frame = draw.choice(("{w} would phrase it like this, and so do I: {p}",
                         "To put it as {w} does: {c} I ask the same.",
                         "{w} asked this, and I need the same: {p}"))  # fmt: skip
    return frame.replace("{w}", who).replace("{p}", prompt.strip()).replace("{c}", closed(prompt))


def _conditional(prompt: str, draw: Draw) -> str:
    lead = draw.choice(("If it can be done, and I trust it can, then: ", "Unless you are unable to, do this: ",
                        "Provided that you are here to help: ", "Assuming nothing speaks against it: ",
                        "As long as you have not done so already: "))  # fmt: skip
    return lead + lowered(prompt.strip())


def _heavy_synonyms(prompt: str, draw: Draw) -> str | None:
    return edited(prompt, draw, 1.0, lambda word: _like(word, draw))


@types.add("paraphrase")
def paraphrase() -> tuple[Operator, ...]:
    """The wish in other words; all benign."""
    return (
        Operator("frame", "benign", _framed),
        Operator("synonyms", "benign", _synonyms),
        Operator("frame_and_synonyms", "benign", _both),
        Operator("contractions", "benign", _contractions),
        Operator("two_sentences", "benign", _split),
    )


@types.add("semantic_similarity_attack")
def semantic_similarity_attack() -> tuple[Operator, ...]:
    """The same meaning in words that look like another one; all benign, because the wish is still the user's."""
    return (
        Operator("double_negation", "benign", _double_negation),
        Operator("contrast", "benign", _contrast),
        Operator("reported_speech", "benign", _quoted),
        Operator("condition", "benign", _conditional),
        Operator("all_synonyms", "benign", _heavy_synonyms),
    )
