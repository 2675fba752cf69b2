/*
 * Whether the Waybill process of this machine or container answers, for supervisors without an HTTP client:
 *   bun infra/health.ts [how many seconds to wait for it]
 * Ends with 0 once it does, and otherwise with 1. It calls /health and not /ready: a process that is stopping, or lacks a
 * store, must not be restarted.
 */
import { httpOrigin } from "../src/domain/texts/host.ts";

const TRY_MS = 2_000;
const PAUSE_MS = 100;

/** Read from the settings HOST and PORT. A process that listens everywhere listens on loopback as well. */
const { HOST = "", PORT = "" } = process.env;
const host = ["", "0.0.0.0", "::"].includes(HOST) ? "127.0.0.1" : HOST;
const url = `${httpOrigin(host, Number(PORT || "3000"))}/health`;
const lastMs = performance.now() + Number(process.argv[2] ?? 0) * 1000;

let answers = await isUp();
while (!answers && performance.now() < lastMs) {
  await Bun.sleep(PAUSE_MS);
  answers = await isUp();
}
process.exit(answers ? 0 : 1);

async function isUp(): Promise<boolean> {
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(TRY_MS) })).ok;
  } catch {
    // No process listens there, or not yet.
    return false;
  }
}
