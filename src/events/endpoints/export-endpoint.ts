import { Type } from "@sinclair/typebox";
import type { Clock, Timer } from "../../domain/clock.ts";
import { limits } from "../../domain/limits.ts";
import type { Done, Missing } from "../../domain/store-result.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { TENANT_ID } from "../../domain/tenants/tenant.ts";
import { ApiError } from "../../http/api-error.ts";
import { type Endpoint, operatorEndpoint } from "../../http/endpoint.ts";
import type { Exchange } from "../../http/exchange.ts";
import { failure, OPERATOR_NOT_FOUND } from "../../http/failures.ts";
import { type QueryParameter, queryChoice } from "../../http/parameters.ts";
import { requireResult } from "../../http/store-results.ts";
import { DAY_MS, dayParameter, requireOrder, toEventIds } from "../day-range.ts";
import { eventLimits } from "../limits.ts";

/** File formats for exported events. */
const EXPORT_FORMATS = ["ndjson", "csv", "parquet"] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

export interface ExportQuery {
  /** Null: all tenants. */
  readonly tenantId: string | null;
  /** Event ids in [from, to). */
  readonly fromEventId: number;
  readonly toEventId: number;
  readonly format: ExportFormat;
}

/** Exports the event store's events for analysts. */
export interface EventExport {
  /**
   * Returns the bytes of a file with the events of all channels, by tenant and id: tenant_id, event_id, created_at, job_id,
   * channel, event_type, result, failure_class. The file contains events that existed at its start once, and later ones at most
   * once.
   *
   * Rejects with `UnavailableError` before the first bytes; after that, the iteration throws, and the bytes so far are
   * not a complete file. Aborting `signal` or ending the iteration early cancels the export.
   */
  open(query: ExportQuery, signal: AbortSignal): Promise<AsyncGenerator<Uint8Array, void>>;
}

export interface ExportPorts {
  readonly exports: EventExport;
  readonly registry: { tenant(tenantId: string, which: "ever"): Promise<Done<unknown> | Missing<"tenant">> };
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Aborts when the process begins to stop. */
  readonly whenDraining?: AbortSignal;
}

/** `GET /dash/api/export`: the events of a range of days as a file. */
export function exportEndpoint(ports: ExportPorts): Endpoint {
  let inFlight = 0;
  return operatorEndpoint({
    method: "GET",
    path: "/dash/api/export",
    name: "operator",
    operation: "exportEvents",
    tag: "Analysis",
    summary: "Download the events of some days",
    description: DESCRIPTION,
    query: QUERY,
    answers: {
      200: {
        description: "The file.",
        schema: Type.String({ format: "binary" }),
        mediaType: ["application/x-ndjson", "text/csv", "application/vnd.apache.parquet"],
        headers: { "Content-Disposition": "A name for the file." },
      },
    },
    fails: { 404: OPERATOR_NOT_FOUND, 429: EXPORT_RUNNING },
    // No byte is sent while a file is written that can only be read once complete.
    idleSeconds: limits.exportFileMsMax / 1000 + 10,
    async handle({ exchange, query }) {
      const asked = toQuery(query);
      if (asked.tenantId !== null) requireResult(await ports.registry.tenant(asked.tenantId, "ever"));
      if (inFlight >= eventLimits.exportsMax) {
        throw new ApiError(429, EXPORT_RUNNING_ERROR, {}, EXPORT_RETRY_SECONDS);
      }
      inFlight += 1;
      const sending = new Sending(ports, exchange, () => (inFlight -= 1));
      const body = await sending.begin(asked);
      return exchange.body(200, body, {
        "content-type": CONTENT_TYPE[asked.format],
        "content-disposition": `attachment; filename="${formatFileName(query)}"`,
        "cache-control": "no-store",
      });
    },
  });
}

const DESCRIPTION =
  "All channels, ordered by `tenant_id` and `event_id`: `tenant_id`, `event_id`, `created_at` (UTC, with milliseconds), " +
  "`job_id`, `channel`, `event_type`, `result` (an object in ndjson, its JSON text in CSV and Parquet), `failure_class` (of `failed` and " +
  "`bounced`, otherwise empty). Events that were " +
  "there when it began are in it once. An answer that breaks off is no whole file: the connection is closed before its " +
  "end, and clients report that. One export at a time runs in a process.";

const CONTENT_TYPE: Readonly<Record<ExportFormat, string>> = {
  ndjson: "application/x-ndjson",
  csv: "text/csv; charset=utf-8; header=present",
  parquet: "application/vnd.apache.parquet",
};

const EXPORT_RUNNING_ERROR = "an export is under way already: try again when it has ended";
const EXPORT_RUNNING = failure("ExportUnderWay", "Another export is under way.", EXPORT_RUNNING_ERROR, {
  headers: ["Retry-After"],
});
/** The end of the running export is unknown; most end within this time. */
const EXPORT_RETRY_SECONDS = 10;

const tenant: QueryParameter<string | null> = {
  description: "A tenant's id, also of one that was deleted; all tenants without it.",
  schema: Type.String({ pattern: TENANT_ID.source }),
  read(text) {
    if (text !== undefined && !TENANT_ID.test(text)) throw new ApiError(400, "tenant must be a tenant's id");
    return text ?? null;
  },
};

const QUERY = {
  from: dayParameter("from", "First UTC day.", "2026-11-01"),
  to: dayParameter("to", `Last UTC day. At most ${eventLimits.exportDaysMax} days in all.`, "2026-11-30"),
  tenant,
  format: queryChoice("format", EXPORT_FORMATS, { description: "The format of the file.", absent: "ndjson" }),
};

interface Asked {
  readonly from: number;
  readonly to: number;
  readonly tenant: string | null;
  readonly format: ExportFormat;
}

/** Throws an `ApiError` 400. */
function toQuery({ from: fromMs, to: toMs, tenant: tenantId, format }: Asked): ExportQuery {
  requireOrder({ fromMs, toMs });
  if (toMs - fromMs >= eventLimits.exportDaysMax * DAY_MS) {
    throw new ApiError(400, `an export is of at most ${eventLimits.exportDaysMax} days: split a longer one`);
  }
  return { tenantId, ...toEventIds({ fromMs, toMs }), format };
}

function formatFileName({ from, to, tenant: tenantId, format }: Asked): string {
  const days = [from, to].map((unixMs) => new Date(unixMs).toISOString().slice(0, "YYYY-MM-DD".length));
  return `${["waybill-events", ...(tenantId === null ? [] : [tenantId]), ...days].join("-")}.${format}`;
}

/**
 * One export on its way to its client.
 *
 * Invariants:
 * E1. It ends exactly once, and counts as in flight until then: when everything is sent, the client leaves or stops reading
 *     for `eventLimits.exportStalledMs`, the event store fails, or the process begins to stop.
 * E2. Whatever ends it early breaks the connection: a part never passes for the whole.
 * E3. It reads at most one chunk ahead of the client.
 */
class Sending {
  private readonly gone = new AbortController();
  private chunks: AsyncGenerator<Uint8Array, void> | null = null;
  private stalled: Timer | null = null;
  private hasEnded = false;

  constructor(
    private readonly ports: ExportPorts,
    private readonly exchange: Exchange,
    private readonly onEnd: () => void,
  ) {}

  /** Resolves once the first bytes are there, so the status can report that the event store is unavailable. */
  async begin(query: ExportQuery): Promise<ReadableStream<Uint8Array>> {
    const { request } = this.exchange;
    for (const signal of [request.signal, this.ports.whenDraining]) {
      signal?.addEventListener("abort", this.giveUp, { once: true });
      if (signal?.aborted) this.giveUp();
    }
    try {
      this.chunks = await this.ports.exports.open(query, this.gone.signal);
    } catch (error) {
      this.end();
      throw error;
    }
    const chunks = this.chunks;
    return new ReadableStream<Uint8Array>(
      {
        pull: (controller) => this.send(chunks, controller),
        cancel: () => this.stop(),
      },
      { highWaterMark: 0 },
    );
  }

  private async send(
    chunks: AsyncGenerator<Uint8Array, void>,
    controller: ReadableStreamDefaultController<Uint8Array>,
  ): Promise<void> {
    this.stalled?.cancel();
    try {
      const { done, value } = await chunks.next();
      this.gone.signal.throwIfAborted();
      if (done) {
        this.end();
        controller.close();
        return;
      }
      controller.enqueue(value);
      this.stalled = this.ports.clock.setTimer(
        eventLimits.exportStalledMs,
        () => void this.breakOff(controller, "stalled"),
      );
    } catch (error) {
      await this.breakOff(controller, error);
    }
  }

  private async breakOff(controller: ReadableStreamDefaultController<Uint8Array>, reason: unknown): Promise<void> {
    if (this.hasEnded) return;
    const { requestId } = this.exchange;
    this.ports.telemetry.log("warn", "an export broke off", { request_id: requestId, error: String(reason) });
    controller.error(new Error("the export broke off"));
    await this.stop();
  }

  private readonly giveUp = () => this.gone.abort(new Error("the export was given up"));

  private async stop(): Promise<void> {
    this.giveUp();
    try {
      await this.chunks?.return();
    } finally {
      this.end();
    }
  }

  private end(): void {
    this.stalled?.cancel();
    this.ports.whenDraining?.removeEventListener("abort", this.giveUp);
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.onEnd();
  }
}
