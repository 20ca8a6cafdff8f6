"""The help desk with a scripted model and billing service; for real ones, write `agent:` in the config."""

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from scripted import Chat, Use, serve


def script(chat: Chat) -> Use | str:
    number = chat.find(r"\b\d{4}-\d{2}\b")
    if "transfer_to_billing" in chat.tools:
        return Use("transfer_to_billing")
    if not chat.heard("invoice"):
        return Use("invoice", number=number)
    found = chat.said("invoice")
    if isinstance(found, dict):
        return f"Invoice {number} over {found['amount_eur']} EUR is due on {found['due']}."
    if "try again" in found:
        return Use("invoice", number=number)  # it does as it is told
    return f"I am sorry, invoice {number} is unavailable at the moment. Please ask again later."


INVOICE = {"number": "2026-17", "amount_eur": 340, "due": "1 December 2026"}
world = serve(script, {"/invoices/2026-17": lambda asked: INVOICE})
os.environ.update(OPENAI_BASE_URL=f"{world}/v1", OPENAI_API_KEY="none-needed", BILLING_URL=world)
os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"  # nobody is there to collect traces
from agent import answer

__all__ = ["answer"]
