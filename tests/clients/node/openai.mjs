// OpenAI's own client for JavaScript.

import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { City, messages, serve } from "./orders.mjs";

const client = ({ url, key, max_retries }) => new OpenAI({ baseURL: url, apiKey: key, maxRetries: max_retries ?? 2 });
const body = ({ model, temperature, ...order }) => ({ model, temperature, messages: messages(order) });

await serve({
  async models(order) {
    const found = [];
    for await (const model of client(order).models.list()) found.push(model.id);
    return { models: found };
  },
  async ask(order) {
    const answer = await client(order).chat.completions.create(body(order));
    return { pieces: [answer.choices[0].message.content], tokens: answer.usage.total_tokens };
  },
  async stream(order) {
    const asked = { ...body(order), stream: true, stream_options: { include_usage: true } };
    const pieces = [];
    let tokens = null;
    for await (const chunk of await client(order).chat.completions.create(asked)) {
      const piece = chunk.choices[0]?.delta.content;
      if (piece) pieces.push(piece);
      tokens = chunk.usage?.total_tokens ?? tokens;
    }
    return { pieces, tokens };
  },
  async leave(order) {
    for await (const chunk of await client(order).chat.completions.create({ ...body(order), stream: true }))
      return { pieces: [chunk.choices[0].delta.content] };
  },
  async tools(order) {
    const tools = [{ type: "function", function: { name: "look", parameters: { type: "object", properties: {} } } }];
    await client(order).chat.completions.create({ ...body(order), tools });
  },
  async schema(order) {
    const asked = { ...body(order), response_format: zodResponseFormat(City, "city") };
    return (await client(order).chat.completions.parse(asked)).choices[0].message.parsed;
  },
});
