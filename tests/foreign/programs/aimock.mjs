// @copilotkit/aimock on a free port: answers "hello", and for anything else asks for `search` once, then answers. Prints its URL; ends when stdin does.
import { LLMock } from "@copilotkit/aimock";

const mock = new LLMock({ port: 0, logLevel: "silent" });
mock.onMessage("hello", { content: process.env.ANSWER });
mock.on({ hasToolResult: true }, { content: process.env.ANSWER });
mock.on({ hasToolResult: false }, { toolCalls: [{ name: "search", arguments: { to: "Oslo" } }] });
await mock.start();
console.log(mock.url);
process.stdin.on("end", () => process.exit(0)).resume();
