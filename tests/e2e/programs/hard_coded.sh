#!/bin/sh
# An agent in shell: one tool, one model, both at an address it was never told to change.
code=$(curl -sS -o "$TMPDIR/found" -w '%{http_code}' "$API/search?to=Oslo") || { echo "search failed"; exit 0; }
[ "$code" = 200 ] || { echo "search is unavailable: $code $(cat "$TMPDIR/found")"; exit 0; }
curl -sS "$API/v1/chat/completions" -H 'content-type: application/json' -d "{\"model\": \"gpt-4o\", \"messages\": [
    {\"role\": \"user\", \"content\": \"a flight\"}, {\"role\": \"tool\", \"tool_call_id\": \"c\", \"content\": \"$(wc -c < "$TMPDIR/found")\"}]}" |
    sed -n 's/.*"content": "\([^"]*\)".*/\1/p'
