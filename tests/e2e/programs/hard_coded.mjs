// An agent in Node with a client that knows its proxy: CONNECT, then TLS with Node's own trust store.
import http from "node:http";
import https from "node:https";
import tls from "node:tls";

const api = new URL(process.env.API);
const proxy = new URL(process.env.HTTPS_PROXY);
const authorization = "Basic " + Buffer.from(`${proxy.username}:${proxy.password}`).toString("base64");

const tunnel = () => new Promise((resolve, reject) => {
  http.request({ host: proxy.hostname, port: proxy.port, method: "CONNECT", path: api.host,
                 headers: { host: api.host, "proxy-authorization": authorization } })
    .on("connect", (reply, socket) => reply.statusCode === 200 ? resolve(socket) : reject(new Error(`proxy: ${reply.statusCode}`)))
    .on("error", reject).end();
});

const ask = async (path, body) => {
  const socket = await tunnel();
  return new Promise((resolve, reject) => {
    const request = https.request(new URL(path, api), {
      method: body ? "POST" : "GET", headers: { "content-type": "application/json" },
      agent: Object.assign(new https.Agent(), { createConnection: () => tls.connect({ socket, host: api.hostname }) }),
    }, (reply) => {
      let text = "";
      reply.on("data", (data) => (text += data)).on("end", () =>
        reply.statusCode === 200 ? resolve(JSON.parse(text)) : reject(new Error(`${reply.statusCode} ${text}`)));
    });
    request.on("error", reject).end(body && JSON.stringify(body));
  });
};

try {
  await ask("/search?to=Oslo");
  const messages = [{ role: "user", content: "a flight" }, { role: "tool", tool_call_id: "c", content: "3" }];
  console.log((await ask("/v1/chat/completions", { model: "gpt-4o", messages })).choices[0].message.content);
} catch (error) {
  console.log(`search is unavailable: ${error}`);
}
