/**
 * `npm run bench` compares Waybill with a baseline of common libraries, prints a table and writes it as JSON.
 *
 *   npm run bench -- [section ...] [--rounds N] [--seconds N] [--minutes N] [--smoke] [--json FILE]
 *
 * Without sections, it runs all except those that take minutes: `tenants`, `backlog`, `memory`, `neighbours` and
 * `pages`.
 *
 * Variants take turns within one run, each round in a fresh process on the same Redis with the same durability
 * (append-only file, `appendfsync always`); a ratio is the median of the rounds' own ratios. Server, Redis and load
 * driver share the machine's cores, so compare ratios, not absolute figures of different machines.
 */
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { accept } from "./sections/accept.ts";
import { backlog } from "./sections/backlog.ts";
import { batch } from "./sections/batch.ts";
import { chat } from "./sections/chat.ts";
import { dispatch } from "./sections/dispatch.ts";
import { mail } from "./sections/mail.ts";
import { memory } from "./sections/memory.ts";
import { micro } from "./sections/micro.ts";
import { neighbours } from "./sections/neighbours.ts";
import { pages } from "./sections/pages.ts";
import { recorder } from "./sections/recorder.ts";
import type { Section } from "./sections/section.ts";
import { sign } from "./sections/sign.ts";
import { tenants } from "./sections/tenants.ts";
import { webhook } from "./sections/webhook.ts";
import { whole } from "./sections/whole.ts";

const SECTIONS: Readonly<Record<string, Section>> = {
  micro,
  accept,
  batch,
  dispatch,
  whole,
  mail,
  chat,
  sign,
  webhook,
  recorder,
  tenants,
  backlog,
  memory,
  neighbours,
  pages,
};
const ONLY_WHEN_NAMED: readonly string[] = ["tenants", "backlog", "memory", "neighbours", "pages"];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "5" },
    jobs: { type: "string", default: "60000" },
    rate: { type: "string", default: "500" },
    minutes: { type: "string", default: "5" },
    smoke: { type: "boolean", default: false },
    json: { type: "string", default: "bench-results.json" },
  },
});
const { smoke } = values;
const rounds = smoke ? 1 : Number(values.rounds);
const seconds = smoke ? 1 : Number(values.seconds);
const jobs = smoke ? 3000 : Number(values.jobs);
const rate = smoke ? 50 : Number(values.rate);
const minutes = Number(values.minutes);

const results: Record<string, unknown> = {
  at: new Date().toISOString(),
  bun: Bun.version,
  cpus: cpus().length,
  cpu: cpus()[0]?.model ?? "unknown",
  rounds,
  seconds,
};

for (const [name, section] of Object.entries(SECTIONS)) {
  const isChosen = positionals.length === 0 ? smoke || !ONLY_WHEN_NAMED.includes(name) : positionals.includes(name);
  if (isChosen) results[name] = await section({ rounds, seconds, jobs, rate, minutes, smoke });
}
await Bun.write(values.json, `${JSON.stringify(results, null, 2)}\n`);
console.log(`\nwritten to ${values.json}`);
