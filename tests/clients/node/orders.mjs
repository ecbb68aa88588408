// What Node's programs here have in common: as tests/clients/programs/orders.py.

import { createInterface } from "node:readline";
import { z } from "zod";

export const City = z.object({ name: z.string(), country: z.enum(["France", "Spain", "Italy"]), large: z.boolean() });

export const messages = (order) =>
  order.say.map((content, at) => ({ role: at % 2 ? "assistant" : "user", content }));

export async function serve(doers) {
  for await (const line of createInterface({ input: process.stdin })) {
    const order = JSON.parse(line);
    let answer;
    try {
      answer = (await doers[order.do](order)) ?? null;
    } catch (error) {
      const cause = error.lastError ?? error;
      answer = { error: error.constructor.name, status: cause.statusCode ?? cause.status ?? null, message: error.message };
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
  }
}
