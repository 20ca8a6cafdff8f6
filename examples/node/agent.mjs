// A stock clerk in Node: OpenAI's SDK, a tool loop, one tool that is a plain function.
//
//     echo "How many blue cups are left?" | node agent.mjs       needs OPENAI_API_KEY
import { text } from "node:stream/consumers";
import OpenAI from "openai";

const client = new OpenAI();
const STOCK = { "cup-blue": 14, "cup-red": 0 };

const tools = {
  stock({ sku }) {
    if (!(sku in STOCK)) throw new Error(`there is no article ${sku}`);
    return { sku, left: STOCK[sku] };
  },
};

const functions = [
  {
    type: "function",
    function: {
      name: "stock",
      description: "How many pieces of an article are left.",
      parameters: { type: "object", properties: { sku: { type: "string" } }, required: ["sku"] },
    },
  },
];

function use({ name, arguments: given }) {
  const parameters = JSON.parse(given);
  try {
    return tools[name](parameters);
  } catch (error) {
    return { error: error.message };
  }
}

async function answer(question) {
  const messages = [{ role: "user", content: question }];
  for (let turn = 0; turn < 6; turn++) {
    const reply = await client.chat.completions.create({ model: "gpt-4o-mini", messages, tools: functions });
    const { message } = reply.choices[0];
    if (!message.tool_calls?.length) return message.content;
    messages.push(message);
    for (const call of message.tool_calls) {
      messages.push({ role: "tool", tool_call_id: call.id, content: JSON.stringify(use(call.function)) });
    }
  }
  return "I am sorry, I could not find that out.";
}

console.log(await answer(await text(process.stdin)));
