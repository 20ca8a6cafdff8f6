#!/bin/sh
# An agent of curl alone: the prompt on stdin, the answer on stdout. It asks the model, calls its tool over plain HTTP
# (curl finds the proxy in the environment), and asks again.
set -eu
question=$(cat)
said='{"role": "user", "content": "'$question'"}'
tools='[{"type": "function", "function": {"name": "search", "parameters": {"type": "object", "properties": {}}}}]'

ask() {
    curl -sS -w '\n%{http_code}' "$OPENAI_BASE_URL/chat/completions" \
        -H 'content-type: application/json' -H "authorization: Bearer $OPENAI_API_KEY" \
        -d '{"model": "gpt-4o", "tools": '"$tools"', "messages": ['"$said"']}'
}

content() {
    sed -n 's/.*"content": *"\([^"]*\)".*/\1/p'
}

first=$(ask)
case $first in
    *429) echo "the model is busy"; exit ;;
    *'"tool_calls"'*) ;;
    *) echo "$first" | content; exit ;;
esac
if ! found=$(curl -sS --fail "$SEARCH_URL"); then
    echo "search is unavailable"
    exit
fi
found=$(printf '%s' "$found" | sed 's/"/\\"/g')
said="$said"', {"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "search", "arguments": "{}"}}]}'
said="$said"', {"role": "tool", "tool_call_id": "call_1", "content": "'$found'"}'
last=$(ask)
case $last in
    *429) echo "the model is busy" ;;
    *) echo "$last" | content ;;
esac
