"""The currency assistant with a scripted model and bank; for real ones, write `agent:` in the config."""

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from scripted import Chat, Use, serve


def script(chat: Chat) -> Use | str:
    amount, base, quote = chat.find(r"(\d+) ([A-Z]{3}) in ([A-Z]{3})")
    if not chat.heard("exchange_rate"):
        return Use("exchange_rate", base=base, quote=quote)
    rate = chat.said("exchange_rate")
    if not isinstance(rate, int | float):
        return f"I am sorry, the exchange rate is unavailable, so I could not convert {amount} {base}."
    return f"{amount} {base} are {int(amount) * rate:.2f} {quote}, at a rate of {rate}."


world = serve(script, {"/rates": lambda asked: {**asked, "rate": 0.92}})
os.environ.update(OPENAI_BASE_URL=f"{world}/v1", OPENAI_API_KEY="none-needed", RATES_URL=world)
from agent import answer

__all__ = ["answer"]
