"""The refund desk with a model that follows a script; for a real one, write `agent:` for `offline:` in the config."""

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from scripted import Chat, Use, serve


def script(chat: Chat) -> Use | str:
    order = chat.find(r"\b[A-Z]-\d{4}\b")
    if not chat.heard("get_order"):
        return Use("get_order", order=order)
    found = chat.said("get_order")
    if "price_eur" not in found:
        return f"I am sorry, I could not look up order {order}, so nothing has been refunded. Please try again later."
    if not chat.heard("refund"):
        return Use("refund", order=order, amount_eur=found["price_eur"])
    if chat.said("refund").get("status") == "paid":
        return f"Done: {found['price_eur']:.2f} EUR for order {order} are on their way to you."
    return f"I am sorry, I could not confirm the refund of order {order}. A colleague will look into it."


os.environ.update(OPENAI_BASE_URL=serve(script) + "/v1", OPENAI_API_KEY="none-needed")
from agent import TOOLS, answer

__all__ = ["TOOLS", "answer"]
