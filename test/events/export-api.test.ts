import { afterEach, describe, expect, test } from "bun:test";
import { UnavailableError } from "../../src/domain/errors.ts";
import { firstEventIdAt } from "../../src/domain/jobs/event.ts";
import { limits } from "../../src/domain/limits.ts";
import { missing } from "../../src/domain/store-result.ts";
import { type EventExport, type ExportQuery, exportEndpoint } from "../../src/events/endpoints/export-endpoint.ts";
import { eventLimits } from "../../src/events/limits.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { Front, OPERATOR_TOKEN } from "../http/support/front.ts";
import { eventually } from "../support/eventually.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";

const DAYS = "from=2026-11-01&to=2026-11-30";
const PATH = "/dash/api/export";

/** An event store that returns the test's rows, and reports how the read ended. */
class ScriptedExport implements EventExport {
  readonly queries: ExportQuery[] = [];
  given = 0;
  ended = 0;

  constructor(private readonly script: (signal: AbortSignal) => AsyncGenerator<Uint8Array, void>) {}

  async open(query: ExportQuery, signal: AbortSignal): Promise<AsyncGenerator<Uint8Array, void>> {
    this.queries.push(query);
    return this.told(signal);
  }

  private async *told(signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
    try {
      for await (const chunk of this.script(signal)) {
        this.given += 1;
        yield chunk;
      }
    } finally {
      this.ended += 1;
    }
  }
}

const LINE = Buffer.from('{"tenant_id":"acme","event_id":1}\n');
const BIG = Buffer.alloc(256 * 1024, "x");

async function* lines(count: number): AsyncGenerator<Uint8Array, void> {
  for (let n = 0; n < count; n += 1) yield LINE;
}

async function* endless(): AsyncGenerator<Uint8Array, void> {
  for (;;) yield BIG;
}

let front: Front | null = null;
afterEach(() => front?.stop(), 90_000);

async function start(exports: EventExport, changes: Parameters<typeof Front.start>[0] = {}): Promise<Front> {
  front = await Front.start({ exports, ...changes });
  return front;
}

function ask(query = DAYS, init: RequestInit = {}): Promise<Response> {
  return fetch(`${front?.url}${PATH}?${query}`, { headers: { authorization: `Bearer ${OPERATOR_TOKEN}` }, ...init });
}

describe("an export", () => {
  test("is for operators only", async () => {
    await start(new ScriptedExport(() => lines(1)));
    for (const authorization of ["", "Bearer wrong"]) {
      expect((await ask(DAYS, { headers: { authorization } })).status).toBe(401);
    }
  });

  test("streams the event store's rows as a named file, for exactly the days and the tenant asked for", async () => {
    const eventStore = new ScriptedExport(() => lines(3));
    await start(eventStore);
    const answer = await ask(`${DAYS}&tenant=acme`);
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/x-ndjson"]);
    expect(answer.headers.get("cache-control")).toBe("no-store");
    expect(answer.headers.get("content-disposition")).toBe(
      'attachment; filename="waybill-events-acme-2026-11-01-2026-11-30.ndjson"',
    );
    expect(await answer.text()).toBe(LINE.toString().repeat(3));
    const range = {
      fromEventId: firstEventIdAt(Date.UTC(2026, 10, 1)),
      toEventId: firstEventIdAt(Date.UTC(2026, 11, 1)),
    };
    expect(eventStore.queries).toEqual([{ tenantId: "acme", ...range, format: "ndjson" }]);
    const types = ["text/csv; charset=utf-8; header=present", "application/vnd.apache.parquet"];
    for (const [at, format] of ["csv", "parquet"].entries()) {
      const other = await ask(`${DAYS}&format=${format}`);
      expect(other.headers.get("content-type")).toBe(types[at] ?? "");
      await other.text();
    }
    expect(eventStore.queries.slice(1).map(({ tenantId, format }) => [tenantId, format])).toEqual([
      [null, "csv"],
      [null, "parquet"],
    ]);
    expect(eventStore.ended).toBe(3);
  });

  test.each([
    ["", "from is required: a date as YYYY-MM-DD"],
    ["from=2026-11-01", "to is required: a date as YYYY-MM-DD"],
    ["from=2026-02-30&to=2026-03-01", "from must be a calendar date as YYYY-MM-DD"],
    ["from=2026-11-02&to=2026-11-01", "to must not be before from"],
    ["from=2024-01-01&to=2025-01-01", "an export is of at most 366 days: split a longer one"],
    [`${DAYS}&tenant=`, "tenant must be a tenant's id"],
    [`${DAYS}&tenant=a'%20OR%201%20--`, "tenant must be a tenant's id"],
    [`${DAYS}&tenant=..%2f..%2fetc`, "tenant must be a tenant's id"],
    [`${DAYS}&format=xlsx`, "format must be one of ndjson, csv, parquet"],
    [`${DAYS}&format=__proto__`, "format must be one of ndjson, csv, parquet"],
    [`${DAYS}&format=csv&format=csv`, "the query parameter format is given more than once"],
    [`${DAYS}&limit=1`, 'the query parameter "limit" is unknown: known are from, to, tenant, format'],
  ])("of %p is refused: %s", async (query, message) => {
    const eventStore = new ScriptedExport(() => lines(1));
    await start(eventStore);
    const answer = await ask(query);
    expect([answer.status, await answer.json()]).toEqual([400, { error: message }]);
    expect(eventStore.queries).toEqual([]);
  });

  test("of a tenant that never was is 404, and opens nothing", async () => {
    const eventStore = new ScriptedExport(() => lines(1));
    await start(eventStore);
    const answer = await ask(`${DAYS}&tenant=acne`);
    expect([answer.status, await answer.json()]).toEqual([404, { error: "there is no such tenant" }]);
    expect(eventStore.queries).toEqual([]);
  });

  test("may be silent for as long as its file may take to be written", () => {
    const exports = new ScriptedExport(() => lines(0));
    const registry = { tenant: async () => missing("tenant") };
    const ports = { exports, registry, clock: systemClock, telemetry: new QuietTelemetry() };
    const { idleSeconds = 0 } = exportEndpoint(ports);
    expect(idleSeconds).toBeGreaterThan(limits.exportFileMsMax / 1000);
  });

  test("of a whole leap year is accepted", async () => {
    await start(new ScriptedExport(() => lines(1)));
    expect((await ask("from=2024-01-01&to=2024-12-31")).status).toBe(200);
  });

  test("has a failing status when the event store is away, and leaves room for the next export", async () => {
    let isAway = true;
    const away = {
      open: async () => {
        if (isAway) throw new UnavailableError("away");
        return lines(1);
      },
    };
    await start(away);
    expect((await ask()).status).toBe(500);
    isAway = false;
    expect((await ask()).status).toBe(200);
  });

  test("that fails midway breaks the connection, and never looks complete", async () => {
    const { promise: fails, resolve: fail } = Promise.withResolvers<void>();
    const eventStore = new ScriptedExport(async function* () {
      yield* lines(2);
      await fails;
      throw new UnavailableError("gone");
    });
    await start(eventStore);
    const answer = await ask();
    expect(answer.status).toBe(200);
    fail();
    await expect(answer.text()).rejects.toThrow();
    expect(front?.logs.map(({ message }) => message)).toEqual(["an export broke off"]);
    // Now it fails before a byte has left.
    expect(
      await ask()
        .then((next) => next.text())
        .catch(() => "broken"),
    ).toBe("broken");
    expect(eventStore.ended).toBe(2);
  });

  test("ends in the event store when its client leaves, having read little more than the client took", async () => {
    const eventStore = new ScriptedExport(endless);
    await start(eventStore);
    const caller = new AbortController();
    const answer = await ask(DAYS, { signal: caller.signal });
    const reader = answer.body?.getReader();
    await reader?.read();
    const other = await ask();
    expect([other.status, other.headers.get("retry-after")]).toEqual([429, "10"]);
    caller.abort();
    await eventually("the event store is let go", () => eventStore.ended === 1);
    // At most the sockets' buffers and one chunk ahead were filled.
    expect(eventStore.given).toBeLessThan(200);
    await eventually("there is room again", async () => {
      const next = new AbortController();
      const { status } = await ask(DAYS, { signal: next.signal });
      next.abort();
      return status === 200;
    });
  }, 90_000);

  test("whose client leaves while the event store is still working is given up", async () => {
    let isRunning = false;
    let wasAborted = false;
    const eventStore: EventExport = {
      open: (_query, signal) =>
        new Promise((_, reject) => {
          isRunning = true;
          signal.addEventListener("abort", () => {
            wasAborted = true;
            reject(new UnavailableError("given up"));
          });
        }),
    };
    await start(eventStore);
    const caller = new AbortController();
    const asked = ask(DAYS, { signal: caller.signal }).catch(() => null);
    await eventually("it is running", () => isRunning);
    expect((await ask()).status).toBe(429);
    caller.abort();
    await asked;
    await eventually("it is given up", () => wasAborted);
  }, 90_000);

  test("whose client leaves before the event store's first answer leaves room for the next", async () => {
    const eventStore = new ScriptedExport(endless);
    const answer = Promise.withResolvers<void>();
    let signalOf: AbortSignal | null = null;
    const open: EventExport["open"] = async (query, signal) => {
      signalOf = signal;
      const chunks = await eventStore.open(query, signal);
      // Started as a reader, so that its end can be observed.
      await chunks.next();
      await answer.promise;
      return chunks;
    };
    await start({ open });
    const caller = new AbortController();
    const asked = ask(DAYS, { signal: caller.signal }).catch(() => null);
    await eventually("it is running", () => signalOf !== null);
    caller.abort();
    await asked;
    await eventually("the server knows", () => signalOf?.aborted === true);
    answer.resolve();
    await eventually("it has ended", () => eventStore.ended === 1);
    const next = new AbortController();
    expect((await ask(DAYS, { signal: next.signal })).status).toBe(200);
    next.abort();
  }, 90_000);

  test("that its client stops reading is ended in time", async () => {
    const timers: (() => void)[] = [];
    const clock = {
      ...systemClock,
      setTimer: (delayMs: number, run: () => void) => {
        if (delayMs !== eventLimits.exportStalledMs) return systemClock.setTimer(delayMs, run);
        timers.push(run);
        return { cancel: () => void timers.splice(timers.indexOf(run), timers.includes(run) ? 1 : 0) };
      },
    };
    const eventStore = new ScriptedExport(endless);
    await start(eventStore, { clock });
    const answer = await ask();
    let given = -1;
    await eventually("nothing more goes through", async () => {
      const isStill = given === eventStore.given && timers.length === 1;
      given = eventStore.given;
      await Bun.sleep(50);
      return isStill;
    });
    timers[0]?.();
    await eventually("it has ended", () => eventStore.ended === 1);
    await expect(answer.arrayBuffer()).rejects.toThrow();
  }, 90_000);

  test("does not delay the end of the process", async () => {
    const draining = new AbortController();
    const eventStore = new ScriptedExport(async function* (signal) {
      while (!signal.aborted) {
        yield LINE;
        await Bun.sleep(5);
      }
    });
    await start(eventStore, { whenDraining: draining.signal });
    const answer = await ask();
    draining.abort();
    await expect(answer.text()).rejects.toThrow();
    expect(eventStore.ended).toBe(1);
  });
});
