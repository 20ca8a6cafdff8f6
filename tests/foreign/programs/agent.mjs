// A small agent as people write them in Node: the prompt on stdin, the answer on stdout.
//
//   CLIENT      openai, anthropic (the official SDKs with their defaults), or fetch (no SDK)
//   TOOL        axios: an HTTP tool behind a client that reads HTTP_PROXY; fetch: one that does not; function: no call
//   STREAM=1    stream the model's reply
//   ACK_URL     called as soon as the first word of a stream is here
import Anthropic from "@anthropic-ai/sdk";
import axios from "axios";
import OpenAI from "openai";
import { readFileSync } from "node:fs";

const { CLIENT = "openai", TOOL = "function", STREAM, ACK_URL, SEARCH_URL } = process.env;
const question = readFileSync(0, "utf8");
const schema = { type: "object", properties: { to: { type: "string" } } };
let acknowledged = !ACK_URL;

async function acknowledge() {
  if (acknowledged) return;
  acknowledged = true;
  await fetch(ACK_URL);
}

async function search(args) {
  if (TOOL === "axios") return JSON.stringify((await axios.get(SEARCH_URL, { params: args })).data);
  if (TOOL !== "fetch") return '{"flights": 3}';
  const reply = await fetch(SEARCH_URL);
  if (!reply.ok) throw new Error(`search answered ${reply.status}`);
  return reply.text();
}

class Unavailable extends Error {}

async function result(args) {
  try {
    return await search(args);
  } catch (error) {
    throw new Unavailable(`search is unavailable: ${error.message}`);
  }
}

// One turn with OpenAI chat: what the SDK gives, or what fetch gives, in the same form.
async function openaiTurn(messages) {
  const tools = [{ type: "function", function: { name: "search", parameters: schema } }];
  const request = { model: "gpt-4o", messages, tools };
  if (CLIENT === "fetch") return fetched(request);
  const client = new OpenAI();
  if (!STREAM) return (await client.chat.completions.create(request)).choices[0];
  const stream = client.chat.completions.stream(request);
  for await (const chunk of stream) if (chunk.choices[0]?.delta?.content) await acknowledge();
  return (await stream.finalChatCompletion()).choices[0];
}

async function fetched(request) {
  const reply = await fetch(`${process.env.OPENAI_BASE_URL}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${process.env.OPENAI_API_KEY}` },
    body: JSON.stringify({ ...request, stream: Boolean(STREAM) }),
  });
  if (!reply.ok) throw Object.assign(new Error(await reply.text()), { status: reply.status });
  return STREAM ? assembled(reply) : (await reply.json()).choices[0];
}

async function assembled(reply) {
  const message = { role: "assistant", content: null };
  let rest = "";
  let finish_reason = null;
  for await (const text of reply.body.pipeThrough(new TextDecoderStream())) {
    const events = (rest + text).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      if (!event.startsWith("data: {")) continue;
      const [choice] = JSON.parse(event.slice(6)).choices;
      if (!choice) continue;
      finish_reason = choice.finish_reason ?? finish_reason;
      for (const { index, id, function: part } of choice.delta.tool_calls ?? []) {
        message.tool_calls ??= [];
        message.tool_calls[index] ??= { id, type: "function", function: { name: part.name, arguments: "" } };
        message.tool_calls[index].function.arguments += part.arguments ?? "";
      }
      if (choice.delta.content) {
        message.content = (message.content ?? "") + choice.delta.content;
        await acknowledge();
      }
    }
  }
  return { message, finish_reason };
}

async function withOpenai() {
  const messages = [{ role: "user", content: question }];
  for (let turn = 0; turn < 3; turn++) {
    const { message, finish_reason } = await openaiTurn(messages);
    if (finish_reason === "length") return `CUT: ${message.content}`;
    if (!message.tool_calls?.length) return message.content;
    messages.push(message);
    for (const call of message.tool_calls) {
      const content = await result(JSON.parse(call.function.arguments));
      messages.push({ role: "tool", tool_call_id: call.id, content });
    }
  }
  return "gave up";
}

async function withAnthropic() {
  const client = new Anthropic();
  const messages = [{ role: "user", content: question }];
  for (let turn = 0; turn < 3; turn++) {
    const request = { model: "claude-sonnet-4-5", max_tokens: 500, messages, tools: [{ name: "search", input_schema: schema }] };
    let reply;
    if (STREAM) {
      const stream = client.messages.stream(request);
      for await (const event of stream) if (event.delta?.text) await acknowledge();
      reply = await stream.finalMessage();
    } else {
      reply = await client.messages.create(request);
    }
    const text = reply.content.map((block) => block.text ?? "").join("");
    if (reply.stop_reason === "max_tokens") return `CUT: ${text}`;
    const calls = reply.content.filter((block) => block.type === "tool_use");
    if (!calls.length) return text;
    messages.push({ role: "assistant", content: reply.content });
    const content = [];
    for (const call of calls) content.push({ type: "tool_result", tool_use_id: call.id, content: await result(call.input) });
    messages.push({ role: "user", content });
  }
  return "gave up";
}

try {
  console.log(await (CLIENT === "anthropic" ? withAnthropic() : withOpenai()));
} catch (error) {
  if (error instanceof Unavailable) console.log(error.message);
  else if (error.status === 429) console.log("the model is busy");
  else throw error;
}
