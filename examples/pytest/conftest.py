"""No test reaches a provider: what was not recorded fails. To record, set the real keys and URLs."""

import os

os.environ.setdefault("OPENAI_API_KEY", "none-needed")
os.environ.setdefault("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
os.environ.setdefault("CARRIER_URL", "http://127.0.0.1:9")
