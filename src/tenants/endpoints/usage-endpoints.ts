import { Type } from "@sinclair/typebox";
import type { EventSums } from "../../domain/jobs/event-store.ts";
import type { ChannelName } from "../../domain/jobs/job.ts";
import type { JsonObject } from "../../domain/texts/json.ts";
import { ApiError } from "../../http/api-error.ts";
import { type Endpoint, operatorEndpoint, reply } from "../../http/endpoint.ts";
import type { Exchange } from "../../http/exchange.ts";
import { OPERATOR_NOT_FOUND } from "../../http/failures.ts";
import { paging, queryChoice, tenantIdParameter } from "../../http/parameters.ts";
import { NextCursor } from "../../http/schemas.ts";
import { requireResult } from "../../http/store-results.ts";
import { monthParameter, monthsBetween, toMonth } from "../month.ts";
import type { TenantRegistry } from "../registry.ts";
import { type UsageRecord, usageCsv, usageRecords } from "../usage.ts";
import type { UsageQuery } from "../usage-repository.ts";

const MONTHS_MAX = 36;

export interface UsagePorts {
  readonly registry: Pick<TenantRegistry, "tenant" | "tenants" | "usageCounts" | "tokenUsage">;
  readonly eventStore: EventSums;
}

const DESCRIPTION =
  "By UTC month. `sent`, `delivered`, `bounced`, `failed` and `suppressed` count events in the month of their own time, " +
  "exactly; tokens are the ledger's: `tokens_billed` is what passes were charged less what was given back, " +
  "`tokens_topped_up` and `tokens_taken` are operators' own movements. `api_calls` and `accepted` count the tenant's authenticated calls and those " +
  "answered with a new job (messages of a batch one by one, updates of passes included); they are up to 5 seconds behind, " +
  "and a process that is killed loses those of its last 5 seconds. As CSV with `format=csv` or `Accept: text/csv`.";

const COMMON = { name: "operator", tag: "Tenants", method: "GET", description: DESCRIPTION } as const;

const format = queryChoice("format", ["json", "csv"], {
  description: "By default as `Accept` requests.",
  absent: null,
});
const CSV = "text/csv; charset=utf-8; header=present";
const AS_FILE = { otherTypes: ["text/csv"], headers: { "Content-Disposition": "A name for the file." } } as const;

/** `/dash/api/usage` and `/dash/api/tenants/{id}/usage`: tenants' billable usage. */
export function usageEndpoints(ports: UsagePorts, channels: readonly ChannelName[]): readonly Endpoint[] {
  const schema = usageSchema(channels);
  return [tenantUsageEndpoint(ports, channels, schema), usageListEndpoint(ports, channels, schema)];
}

type UsageSchema = ReturnType<typeof usageSchema>;

function tenantUsageEndpoint(
  ports: UsagePorts,
  channels: readonly ChannelName[],
  { Usage, example }: UsageSchema,
): Endpoint {
  return operatorEndpoint({
    ...COMMON,
    path: "/dash/api/tenants/:id/usage",
    operation: "getTenantUsage",
    summary: "A tenant's usage by month",
    params: { id: tenantIdParameter },
    query: {
      from: monthParameter("from", "First month; by default `to`, or else this one."),
      to: monthParameter("to", `Last month; by default this one. At most ${MONTHS_MAX} months in all.`),
      format,
    },
    answers: {
      200: {
        description: "A record a month, oldest first, also for months without use.",
        schema: Type.Object({ usage: Type.Array(Usage) }, { $id: "TenantUsage" }),
        examples: [{ usage: [example] }],
        ...AS_FILE,
      },
    },
    fails: { 404: OPERATOR_NOT_FOUND },
    async handle({ door, exchange, params: { id }, query }) {
      const now = toMonth(door.ports.clock.nowMs());
      const range = { from: query.from ?? query.to ?? now, to: query.to ?? now };
      requireRange(range);
      const { name } = requireResult(await ports.registry.tenant(id, "ever"));
      const usage = await read(ports, channels, { tenantIds: [id], ...range }, new Map([[id, name]]));
      const file = `usage-${id}`;
      if (!wantsCsv(exchange, query.format)) return reply(200, { usage }, jsonHeaders(file));
      return exchange.body(200, usageCsv(usage, channels), csvHeaders(file));
    },
  });
}

function usageListEndpoint(
  ports: UsagePorts,
  channels: readonly ChannelName[],
  { Usage, example }: UsageSchema,
): Endpoint {
  return operatorEndpoint({
    ...COMMON,
    path: "/dash/api/usage",
    operation: "listUsage",
    summary: "All tenants' usage in a month",
    query: { month: monthParameter("month", "By default this one."), format, ...paging },
    answers: {
      200: {
        description: "A record a tenant, ordered by id; CSV has its `next_cursor` in the header.",
        schema: Type.Object({ usage: Type.Array(Usage), next_cursor: NextCursor }, { $id: "UsageList" }),
        examples: [{ usage: [example], next_cursor: null }],
        ...AS_FILE,
        headers: { ...AS_FILE.headers, "Next-Cursor": "Pass it as `cursor`; empty on the last page." },
      },
    },
    async handle({ door, exchange, query: { month, format: asked, cursor, limit } }) {
      const { items, nextCursor } = requireResult(await ports.registry.tenants(cursor, limit, "ever"));
      const names = new Map(items.map(({ id, name }) => [id, name]));
      const of = month ?? toMonth(door.ports.clock.nowMs());
      const usage = await read(ports, channels, { tenantIds: [...names.keys()], from: of, to: of }, names);
      const next = { "next-cursor": nextCursor ?? "" };
      const file = `usage-${of}`;
      if (!wantsCsv(exchange, asked)) {
        return reply(200, { usage, next_cursor: nextCursor }, { ...jsonHeaders(file), ...next });
      }
      return exchange.body(200, usageCsv(usage, channels), { ...csvHeaders(file), ...next });
    },
  });
}

async function read(
  { registry, eventStore }: UsagePorts,
  channels: readonly ChannelName[],
  query: UsageQuery,
  names: ReadonlyMap<string, string>,
): Promise<readonly UsageRecord[]> {
  if (query.tenantIds.length === 0) return [];
  const [counts, tokens, events] = await Promise.all([
    registry.usageCounts(query),
    registry.tokenUsage(query),
    eventStore.months(query),
  ]);
  return usageRecords(query, { names, channels, counts, tokens, events });
}

/** Throws an `ApiError` 400. */
function requireRange({ from, to }: { readonly from: string; readonly to: string }): void {
  const months = monthsBetween(from, to).length;
  if (months === 0) throw new ApiError(400, "to must not be before from");
  if (months > MONTHS_MAX) throw new ApiError(400, `at most ${MONTHS_MAX} months can be asked for at one time`);
}

function wantsCsv({ request }: Exchange, asked: "json" | "csv" | null): boolean {
  return asked === null ? /^\s*text\/csv\b/i.test(request.headers.get("accept") ?? "") : asked === "csv";
}

/** Browsers display the file, or save it under this name. */
function jsonHeaders(file: string) {
  return { "content-disposition": `inline; filename="${file}.json"` };
}

function csvHeaders(file: string) {
  return {
    "content-type": CSV,
    "content-disposition": `attachment; filename="${file}.csv"`,
    "cache-control": "no-store",
  };
}

function usageSchema(channels: readonly ChannelName[]) {
  const count = Type.Integer({ minimum: 0 });
  const Usage = Type.Unsafe<UsageRecord>(
    Type.Object(
      {
        tenant_id: Type.String(),
        tenant_name: Type.String(),
        month: Type.String({ description: "UTC, YYYY-MM." }),
        api_calls: count,
        accepted: count,
        sent: Type.Object(Object.fromEntries(channels.map((channel) => [channel, count]))),
        delivered: count,
        bounced: count,
        failed: count,
        suppressed: count,
        tokens_charged: count,
        tokens_given_back: count,
        tokens_topped_up: count,
        tokens_taken: count,
        tokens_billed: Type.Integer({
          description:
            "`tokens_charged` less `tokens_given_back`; below 0 where a month gives back more than it charged.",
        }),
      },
      { $id: "Usage" },
    ),
  );
  const example: JsonObject = {
    tenant_id: "acme",
    tenant_name: "Acme",
    month: "2026-11",
    api_calls: 1310,
    accepted: 1042,
    sent: Object.fromEntries(channels.map((channel, at) => [channel, at === 0 ? 1029 : 0])),
    delivered: 1017,
    bounced: 12,
    failed: 3,
    suppressed: 10,
    tokens_charged: 120,
    tokens_given_back: 3,
    tokens_topped_up: 500,
    tokens_taken: 0,
    tokens_billed: 117,
  };
  return { Usage, example };
}
