import type { Elysia } from "elysia";
import type { Timer } from "../domain/clock.ts";
import { ApiError } from "../domain/errors.ts";
import { EXPORT_FORMATS, type ExportFormat, type ExportQuery } from "../domain/event-export.ts";
import { limits } from "../domain/limits.ts";
import { TENANT_ID } from "../domain/tenant.ts";
import type { ApiPorts } from "../http/api-ports.ts";
import type { Exchange } from "../http/exchange.ts";
import type { FrontDoor } from "../http/front-door.ts";
import { operatorRoute } from "../http/operator-route.ts";
import { readQuery } from "../http/request-query.ts";
import { DAY_MS, eventIdsOf, readDayRange } from "./day-range.ts";

export const EXPORT_PATH = "/dash/api/export";

/** `GET /dash/api/export`: the events of some days as a file. */
export function exportRoutes(app: Elysia, door: FrontDoor): void {
  let underWay = 0;
  const serve = async (exchange: Exchange): Promise<Response> => {
    const { query, name } = parseExport(exchange.request);
    if (underWay >= limits.exportsMax) {
      throw new ApiError(429, "an export is under way already: try again when it has ended");
    }
    underWay += 1;
    const sending = new Sending(door.ports, exchange, () => (underWay -= 1));
    const body = await sending.begin(query);
    return exchange.body(200, body, {
      "content-type": CONTENT_TYPE[query.format],
      "content-disposition": `attachment; filename="${name}.${query.format}"`,
      "cache-control": "no-store",
    });
  };
  app.get(EXPORT_PATH, ({ request }) => operatorRoute(door, request, serve));
}

const CONTENT_TYPE: Readonly<Record<ExportFormat, string>> = {
  ndjson: "application/x-ndjson",
  csv: "text/csv; charset=utf-8; header=present",
  parquet: "application/vnd.apache.parquet",
};

/** Throws an `ApiError` 400 that names the parameter. */
function parseExport(request: Request): { readonly query: ExportQuery; readonly name: string } {
  const { from, to, tenant, format = "ndjson" } = readQuery(request, ["from", "to", "tenant", "format"]);
  const days = readDayRange({ ...(from !== undefined && { from }), ...(to !== undefined && { to }) });
  if (days.toMs - days.fromMs >= limits.exportDaysMax * DAY_MS) {
    throw new ApiError(400, `an export is of at most ${limits.exportDaysMax} days: split a longer one`);
  }
  if (tenant !== undefined && !TENANT_ID.test(tenant)) throw new ApiError(400, "tenant must be a tenant's id");
  const known = EXPORT_FORMATS.find((one) => one === format);
  if (known === undefined) throw new ApiError(400, `format must be one of ${EXPORT_FORMATS.join(", ")}`);
  const query = { tenantId: tenant ?? null, ...eventIdsOf(days), format: known };
  return { query, name: ["waybill-events", ...(tenant === undefined ? [] : [tenant]), from, to].join("-") };
}

/**
 * One export on its way to its client.
 *
 * Invariants:
 * E1. It ends once, and counts as under way until then: when all is sent, the client goes or takes nothing for
 *     `limits.exportStalledMs`, the ledger fails, or the process begins to stop.
 * E2. Whatever ends it early breaks the connection off: a part never passes for the whole.
 * E3. No more is read than the client takes: a chunk ahead, at most.
 */
class Sending {
  private readonly gone = new AbortController();
  private chunks: AsyncGenerator<Uint8Array, void> | null = null;
  private stalled: Timer | null = null;
  private hasEnded = false;

  constructor(
    private readonly ports: ApiPorts,
    private readonly exchange: Exchange,
    private readonly onEnd: () => void,
  ) {}

  /** Answers when the first bytes are there: a ledger that is away is told in the status. */
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
      this.stalled = this.ports.clock.setTimer(limits.exportStalledMs, () => void this.breakOff(controller, "stalled"));
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
