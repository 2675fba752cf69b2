import { round } from "../load/latency.ts";
import { type NeighbourRun, SITUATIONS } from "../load/neighbours.ts";
import type { SectionOptions } from "./section.ts";

const RATIO_MAX = 2;
const WAIT_MS_MAX = 2_000;

/** How neighbours affect a healthy tenant: the time of its messages from the request to the mail server. */
export async function neighbours({ seconds, smoke }: SectionOptions): Promise<unknown> {
  const readSize = (name: string, usual: number, small: number) => (smoke ? small : Number(process.env[name] ?? usual));
  const load = {
    perSecond: readSize("NEIGHBOURS_RATE", 50, 20),
    seconds: smoke ? 1 : Math.max(10, seconds),
    queued: readSize("NEIGHBOURS_QUEUED", 50_000, 200),
    tenants: readSize("NEIGHBOURS_TENANTS", 10_000, 100),
    hanging: readSize("NEIGHBOURS_HANGING", 1_000, 10),
  };
  // A word in the name of the only case to run.
  const only = process.env["NEIGHBOURS_ONLY"];
  console.log(
    `\nNeighbours: a healthy tenant sends ${load.perSecond} mails a second for ${load.seconds} s, open loop\n`,
  );
  const rows: Record<string, string | number>[] = [];
  const results: Record<string, unknown> = { ...load };
  for (const { name, inSmoke, measure } of SITUATIONS) {
    if (smoke ? !inSmoke : only !== undefined && !name.includes(only)) continue;
    const result = await measure(load);
    results[name] = result;
    if (!("alone" in result)) {
      console.log(`${name}: left out, ${result.missing}`);
      continue;
    }
    rows.push(buildRow(name, result));
    const late = result.missing === 0 ? "" : `; ${result.missing} not handed over at the end`;
    console.log(`${name}: ${result.note}${late}`);
  }
  console.table(rows);
  return results;
}

function buildRow(name: string, { alone, beside }: NeighbourRun): Record<string, string | number> {
  const ratio = beside.p99 / alone.p99;
  return {
    beside: name,
    "alone p50 / p99, ms": `${round(alone.p50)} / ${round(alone.p99)}`,
    "p50, ms": beside.p50,
    "p99, ms": beside.p99,
    "max, ms": beside.max,
    "p99 / alone": `${round(ratio)}x`,
    [`p99 at most ${RATIO_MAX}x`]: ratio <= RATIO_MAX ? "met" : "missed",
    [`never over ${WAIT_MS_MAX / 1000} s`]: beside.max <= WAIT_MS_MAX ? "met" : "missed",
  };
}
