import type { ContentSeal } from "../domain/content-seal.ts";
import { isOutage } from "../domain/errors.ts";
import type { StoredEventRow } from "../domain/jobs/event-store.ts";
import { AWAITED, type Fallback } from "../domain/jobs/fallback.ts";
import type { KeptContent } from "../domain/jobs/job.ts";
import type { PayloadStore } from "../domain/jobs/payload-store.ts";
import type { Tag } from "../domain/jobs/tags.ts";
import { limits } from "../domain/limits.ts";
import { NO_RECIPIENT, type RecipientIndex } from "../domain/tenants/recipient-index.ts";
import { isJsonObject, type JsonObject, parseJsonObject } from "../domain/texts/json.ts";
import { type EventStoreTarget, eventTime, onCluster, type Table, table } from "./schema/table.ts";

/**
 * Returns the database that analysts must not read: they have access to the whole of the event store's own. Its content is
 * sealed besides.
 */
export function sealedTarget(target: EventStoreTarget): EventStoreTarget {
  return { ...target, database: `${target.database}_sealed` };
}

/** One row per failure; a job's newest version counts. Rows leave by the day. */
export const FAILED_PAYLOADS: Table = {
  name: "failed_payloads",
  columns: `  tenant_id LowCardinality(String) CODEC(ZSTD(1)),
  job_id UUID CODEC(ZSTD(1)),
  channel LowCardinality(String) CODEC(ZSTD(1)),
  recipient_hash UUID CODEC(ZSTD(1)),
  template LowCardinality(String) CODEC(ZSTD(1)),
  body String CODEC(ZSTD(1)),
  version UInt64 CODEC(Delta, ZSTD(1))`,
  engine: "ReplacingMergeTree",
  engineArguments: ["version"],
  partitionBy: `toYYYYMMDD(${eventTime("version")})`,
  orderBy: "(tenant_id, toUInt128(job_id))",
  ttl: `toDateTime(intDiv(version, 4096000) + 1735689600, 'UTC') + INTERVAL ${limits.failedKeptDays} DAY`,
  settings: ["index_granularity = 64"],
  isSynced: true,
};

export function failedPayloads(target: EventStoreTarget): readonly string[] {
  const sealed = sealedTarget(target);
  return [
    `CREATE DATABASE IF NOT EXISTS ${sealed.database}${onCluster(sealed.cluster)} ENGINE = Atomic`,
    ...table(sealed, FAILED_PAYLOADS),
  ];
}

export const FAILED_PAYLOAD_COLUMNS = [
  "tenant_id",
  "job_id",
  "channel",
  "recipient_hash",
  "template",
  "body",
  "version",
] as const;

export interface FailedPayloadPorts {
  readonly seal: ContentSeal;
  readonly recipients: RecipientIndex;
  /** Large payloads, which the queue does not have. */
  readonly payloads: Pick<PayloadStore, "get">;
}

/** Returns the content of these jobs as lines of an insert. A large payload that cannot be read now is left out. */
export async function failedPayloadLines(
  rows: readonly StoredEventRow[],
  ports: FailedPayloadPorts,
): Promise<readonly string[]> {
  const lines: string[] = [];
  for (const { tenantId, jobId, channel, eventId, finished } of rows) {
    if (finished?.kept === undefined) continue;
    const content = await whole(tenantId, jobId, finished.kept, ports);
    if (content === null) continue;
    const { recipient, template = "" } = content;
    const hash = recipient === "" ? NO_RECIPIENT : ports.recipients.hashRecipient(recipient);
    const body = ports.seal.seal(tenantId, jobId, JSON.stringify(content));
    lines.push(`${JSON.stringify([tenantId, jobId, channel, hash, template, body, eventId])}\n`);
  }
  return lines;
}

async function whole(
  tenantId: string,
  jobId: string,
  content: KeptContent,
  { payloads }: FailedPayloadPorts,
): Promise<KeptContent | null> {
  if (content.stored === undefined) return content;
  try {
    const bytes = await payloads.get({ tenantId, jobId });
    return bytes === null ? null : { ...content, payload: Buffer.from(bytes).toString() };
  } catch (error) {
    if (isOutage(error)) return null;
    throw error;
  }
}

/** As `failedPayloadLines` sealed it; null: it was not. */
export function readContent(text: string): KeptContent | null {
  const {
    recipient,
    payload,
    settlements,
    needsScreening,
    template,
    stored,
    traceparent,
    tags,
    topic,
    dueMs,
    fallback,
  } = parseJsonObject(text) ?? {};
  if (typeof recipient !== "string" || typeof payload !== "string" || typeof settlements !== "number") return null;
  return {
    recipient,
    payload,
    settlements,
    ...(needsScreening === true && { needsScreening }),
    ...(typeof template === "string" && { template }),
    ...(isJsonObject(stored) && { stored: { sha256: String(stored["sha256"]), bytes: Number(stored["bytes"]) } }),
    ...(typeof traceparent === "string" && { traceparent }),
    ...(Array.isArray(tags) && { tags: tags.filter(isJsonObject).map(parseTag) }),
    ...(typeof topic === "string" && { topic }),
    ...(typeof dueMs === "number" && { dueMs }),
    ...(isJsonObject(fallback) && { fallback: parseFallback(fallback) }),
  };
}

function parseFallback({ mainJobId, number, afterMs, unless }: JsonObject): Fallback {
  const words = Array.isArray(unless) ? unless : [];
  return {
    mainJobId: String(mainJobId),
    number: Number(number),
    afterMs: Number(afterMs),
    unless: AWAITED.filter((word) => words.includes(word)),
  };
}

function parseTag({ name, value }: JsonObject): Tag {
  return { name: String(name), value: String(value) };
}
