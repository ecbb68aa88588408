// The AI SDK with its provider for servers that speak OpenAI's API.

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, Output, streamText, tool } from "ai";
import { City, messages, serve } from "./orders.mjs";

function asked({ url, key, model, temperature, max_retries, ...order }, more = {}) {
  const provider = createOpenAICompatible({
    name: "qdesk", baseURL: url, apiKey: key, includeUsage: true, supportsStructuredOutputs: true,
  });
  return { model: provider(model), temperature, maxRetries: max_retries, messages: messages(order), ...more };
}

await serve({
  async ask(order) {
    const answer = await generateText(asked(order));
    return { pieces: [answer.text], tokens: answer.usage.totalTokens };
  },
  async stream(order) {
    const pieces = [];
    let tokens = null;
    const answer = streamText(asked(order, { onError: () => {} }));
    for await (const part of answer.fullStream) {
      if (part.type === "error") throw part.error;
      if (part.type === "text-delta") pieces.push(part.text);
      if (part.type === "finish") tokens = part.totalUsage.totalTokens;
    }
    return { pieces, tokens };
  },
  async leave(order) {
    const leaving = new AbortController();
    for await (const piece of streamText(asked(order, { abortSignal: leaving.signal })).textStream) {
      leaving.abort();
      return { pieces: [piece] };
    }
  },
  async tools(order) {
    await generateText(asked(order, { tools: { look: tool({ inputSchema: City }) } }));
  },
  async schema(order) {
    return (await generateText(asked(order, { output: Output.object({ schema: City }) }))).output;
  },
});
