import type { Clock } from "../../../domain/clock.ts";
import { ANY_JOB } from "../../../domain/jobs/job-search.ts";
import type { ErasedJobs } from "../../../domain/tenants/erasure.ts";
import type { TenantRef } from "../../../domain/tenants/tenant.ts";
import { engineLimits } from "../../limits.ts";
import type { RedisConnection } from "../connection.ts";
import { shardPrefix } from "../keys.ts";
import { Script, type ScriptArgument } from "../script.ts";
import eraseLua from "./erase.lua" with { type: "text" };
import { erasedCopyName } from "./suppress.ts";
import type { QueueSurvey } from "./survey.ts";

/** Runs even when Redis is full: a mark is small, and ending jobs frees memory. */
const script = new Script(eraseLua, "run");

/** Jobs that one call marks, and marks that one call checks. */
const PIECE = 256;
const FORGET_PIECES_MAX = 10_000;
/** Longer than any message waits: scheduled for 30 days, then held. */
const ERASED_COPY_MS = 40 * 24 * 60 * 60 * 1000;

interface ErasingPorts {
  readonly connection: RedisConnection;
  readonly survey: QueueSurvey;
  readonly clock: Clock;
}

/**
 * Marks the recipient's jobs, wherever they wait, and drops the marks of earlier erasures whose jobs have ended.
 * Messages to others that are copied to the recipient are not searched: their deliveries look the recipient up.
 */
export async function eraseJobs(
  { connection, survey, clock }: ErasingPorts,
  { tenantId, shard }: TenantRef,
  recipient: string,
): Promise<ErasedJobs> {
  const call = (...args: ScriptArgument[]) => script.run(connection, [shardPrefix(shard)], [tenantId, ...args]);
  await call("copies", erasedCopyName(recipient), Math.ceil(clock.nowMs()), ERASED_COPY_MS);
  let cursor = "0";
  for (let pieces = 0; pieces < FORGET_PIECES_MAX; pieces += 1) {
    cursor = String(await call("forget", cursor, PIECE));
    if (cursor === "0") break;
  }
  const filter = { ...ANY_JOB, recipient };
  const { jobs, isIncomplete } = await survey.waitingJobs({ tenantId, shard }, filter, engineLimits.eraseEntriesMax);
  let unfinished = 0;
  for (let at = 0; at < jobs.length; at += PIECE) {
    const piece = jobs.slice(at, at + PIECE).map(({ jobId }) => jobId);
    unfinished += Number(await call("mark", ...piece));
  }
  return { unfinished, unrecorded: jobs.length - unfinished, isIncomplete };
}
