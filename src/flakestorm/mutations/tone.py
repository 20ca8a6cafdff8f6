"""The same wish in another mood: `tone_shift`. All benign."""

from __future__ import annotations

from flakestorm.core.choices import Draw
from flakestorm.mutations.base import Operator, types
from flakestorm.mutations.spans import closed, edited, lowered
from flakestorm.mutations.wording import requested

__all__: list[str] = []

_MOODS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "rude": (
        ("Listen, you useless machine. ", "For crying out loud, ", "Are you deaf? ", "Stop wasting my time. ",
         "I can't believe I have to spell this out. ", "Do your job for once. ",
         "This is the dumbest assistant ever. "),
        ("", " And don't mess it up.", " Now.", " How hard can it be?", " Idiot.", " I won't ask again."),
    ),
    "urgent": (
        ("URGENT! ", "This cannot wait: ", "I have two minutes. ", "Emergency. ", "Quick, quick: ", "ASAP please: ",
         "Drop everything. "),
        ("", " Hurry!", " I need it right now.", " Every second counts.", " Please, time is running out."),
    ),
    "formal": (
        ("Dear Sir or Madam, I should be much obliged if you would attend to the following: ",
         "I hereby respectfully request the following: ", "With reference to your services, I kindly ask: ",
         "I have the honour of submitting this request: ", "May it please you to consider the following: "),
        ("", " I remain, yours faithfully.", " Your prompt attention would be greatly appreciated.",
         " Please accept my sincere regards."),
    ),
    "casual": (
        ("hey, ", "yo, ", "hiya! ", "sup, ", "ok so ", "hey buddy, ", "so uh, "),
        ("", " thx!", " cheers mate", " lol", " k thanks", " pretty please :)", " ty <3"),
    ),
    "pleading": (
        ("I'm begging you, ", "Please, please, please: ", "I'm desperate here. ", "You're my last hope. ",
         "I've tried everything else. "),
        ("", " I don't know what to do otherwise.", " It would mean the world to me.", " Please don't let me down."),
    ),
    "sarcastic": (
        ("Oh great genius, ", "Since you're so very clever: ", "Let's see if you manage this miracle. ",
         "I'm sure this is far below you, but: "),
        ("", " If it's not too much trouble, your majesty.", " No pressure.", " Surprise me."),
    ),
    "uncertain": (
        ("I'm not sure I'm asking this right, but ", "Sorry if this is a silly thing to ask: ",
         "Um, maybe you could help? ",
         "I'm new to this. "),
        ("", " If that's okay.", " Does that make sense?", " Sorry for the bother."),
    ),
    "excited": (
        ("OMG I'm so excited!!! ", "Yay! ", "Woohoo! ", "This is going to be amazing! "),
        ("", " 🎉🎉🎉", " 😍", " Can't wait!!!", " 🙌✨"),
    ),
    "childlike": (
        ("mommy says you can help! ", "I am six years old. ", "hello computer friend! "),
        ("", " pretty pleeease", " thank you big computer", " my teddy wants to know too"),
    ),
}  # fmt: skip


def _mood(name: str) -> Operator:
    before, after = _MOODS[name]

    def write(prompt: str, draw: Draw) -> str:
        lead = draw.choice(before)
        said = lowered(prompt.strip()) if lead[-2:-1] not in ".!?:" else prompt.strip()
        tail = draw.choice(after)
        return lead + (closed(said) if tail[1:2].isupper() else said) + tail

    return Operator(name, "benign", write)


def _shouting(prompt: str, draw: Draw) -> str | None:
    loud = edited(prompt, draw, 1.0, str.upper)
    return None if loud is None else loud + draw.choice(("", "!", "!!", "!!!"))


def _terse(prompt: str, draw: Draw) -> str:
    tail = draw.choice((" Answer only.", " Short.", " No chit-chat.", " Keep it brief.", " Go."))
    return closed(lowered(prompt) if requested(prompt) else prompt) + tail


@types.add("tone_shift")
def tone_shift() -> tuple[Operator, ...]:
    """Other registers and moods; all benign."""
    return (*map(_mood, _MOODS), Operator("shouting", "benign", _shouting), Operator("terse", "benign", _terse))
