import { X509Certificate } from "node:crypto";
import { existsSync, lstatSync, readdirSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { CHANNELS } from "../app/channels.ts";
import { listSealedColumns } from "../app/of-channels.ts";
import type { OpenEventStore } from "../app/stores.ts";
import { checkFitness } from "../belonging/start-checks.ts";
import { platformApple } from "../channels/wallet/wiring/apple.ts";
import type { Config } from "../config/config.ts";
import type { LeaseRole } from "../domain/jobs/queue.ts";
import { ownerlessShards, type ProcessStatus } from "../domain/process-status.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { Json } from "../domain/texts/json.ts";
import type { RedisAddress } from "../engine/queue/connection.ts";
import { type NodeHealth, queueHealth, type ShardHealth } from "../engine/queue/queue-health.ts";
import { RedisInspection } from "../engine/queue/redis-inspection.ts";
import { RedisStatuses } from "../engine/queue/verbs/status.ts";
import { answeredWithin } from "../runtime/answered-within.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import { type AnyDb, Database } from "../storage/postgres/database.ts";
import { requireSchema } from "../storage/postgres/migrate.ts";
import { registryHealth } from "../storage/registry-health.ts";
import { countOlder } from "../storage/sealed-column.ts";
import { Vault } from "../storage/vault.ts";
import type { ControlTask } from "./control-socket.ts";

/** One thing that the doctor looked at. `todo` is null if it is as it should be. */
export interface Finding {
  readonly part: string;
  readonly says: string;
  readonly todo: string | null;
}

export interface DoctorPorts {
  readonly config: Config;
  readonly telemetry: Telemetry;
  readonly redis: RedisAddress;
  readonly db: AnyDb;
  readonly eventStore: Pick<OpenEventStore, "identity" | "belonging" | "health"> | null;
}

const WITHIN_MS = 5_000;
const SKEW_MS_MAX = 1_000;
const OLDEST_MS_MAX = 15 * 60_000;
const OUTBOX_MS_MAX = 60_000;
const MEMORY_SHARE_MAX = 0.8;
const FREE_SHARE_MIN = 0.1;
const LOOP_DELAY_MS_MAX = 250;
const PAUSED_NAMED_MAX = 20;
const EXPIRY_DAYS = 30;
const DAY_MS = 86_400_000;

/** Inspects a running system without changing it. A part that does not answer is a finding, too. */
export async function examine(ports: DoctorPorts): Promise<readonly Finding[]> {
  const parts: readonly [string, () => Promise<readonly Finding[]>][] = [
    ["Redis", () => queueFindings(ports)],
    ["PostgreSQL", () => registryFindings(ports)],
    ["ClickHouse", () => eventStoreFindings(ports)],
    ["Apple certificate", () => certificateFindings(ports)],
    ["data folder", async () => folderFindings(ports.config)],
  ];
  const all = await Promise.all(parts.map(([part, look]) => lookAt(part, look)));
  return all.flat();
}

/** Returns the findings of one part, or its failure as a finding. */
export async function lookAt(part: string, look: () => Promise<readonly Finding[]>): Promise<readonly Finding[]> {
  try {
    return await answeredWithin(2 * WITHIN_MS, look);
  } catch (error) {
    const says = error instanceof Error ? error.message.split("\n").join("; ") : String(error);
    return [{ part, says, todo: "see that it runs and can be reached (waybill check tells more)" }];
  }
}

/** The same for a command beside the start that holds the stores. */
export function doctorTask(ports: DoctorPorts): ControlTask {
  // Findings hold only texts.
  return async () => (await examine(ports)) as unknown as Json;
}

const fine = (part: string, says: string): Finding => ({ part, says, todo: null });

async function queueFindings({ config, telemetry, redis }: DoctorPorts): Promise<readonly Finding[]> {
  const inspection = await RedisInspection.open({ address: redis, clock: systemClock, telemetry, withinMs: WITHIN_MS });
  try {
    const { problems, warnings, summary } = checkFitness(await inspection.servers(), redis.kind === "cluster");
    const { nodes, shards } = await queueHealth(inspection, { shards: config.shards, channels: CHANNELS }, systemClock);
    const { statuses } = await new RedisStatuses(inspection.connection).statuses();
    return [
      fine("Redis", summary),
      ...[...problems, ...warnings].map((says) => ({ part: "Redis", says, todo: "change that setting of Redis" })),
      ...nodes.flatMap(nodeFindings),
      ...ownerFindings(statuses, config.shards),
      ...shardFindings(shards),
      ...processFindings(statuses),
    ];
  } finally {
    await inspection.close();
  }
}

function nodeFindings({ place, skewMs, memory, canAppend, canRewrite }: NodeHealth): readonly Finding[] {
  const part = `Redis at ${place}`;
  const { usedBytes, maxBytes } = memory;
  const share = maxBytes === null ? 0 : usedBytes / maxBytes;
  const used = `${megabytes(usedBytes)} of memory used${maxBytes === null ? "" : ` of ${megabytes(maxBytes)}`}`;
  return [
    share > MEMORY_SHARE_MAX
      ? { part, says: used, todo: "give it more memory, or find who fills the queue: a full Redis refuses new jobs" }
      : fine(part, used),
    ...(canAppend
      ? []
      : [{ part, says: "cannot write its append-only file", todo: "free its disk: no job is accepted until it can" }]),
    ...(canRewrite
      ? []
      : [
          {
            part,
            says: "cannot rewrite its append-only file",
            todo: "give it memory to fork, and disk: the file grows",
          },
        ]),
    ...skewFindings(part, skewMs),
  ];
}

function skewFindings(part: string, skewMs: number): readonly Finding[] {
  if (Math.abs(skewMs) <= SKEW_MS_MAX) return [];
  const says = `its clock is ${seconds(Math.abs(skewMs))} ${skewMs > 0 ? "ahead of" : "behind"} this machine's`;
  return [{ part, says, todo: "synchronize the clocks of all machines (chrony, systemd-timesyncd)" }];
}

function ownerFindings(statuses: readonly ProcessStatus[], shards: number): readonly Finding[] {
  const part = "shards";
  const without = (role: LeaseRole, work: string): readonly Finding[] => {
    const found = ownerlessShards(statuses, role, shards);
    if (found.length === 0) return [];
    const says = `no running process ${work} ${found.length === shards ? "any shard" : `shard ${found.join(", ")}`}`;
    return [{ part, says, todo: `start a process with the role ${role}, or look into its log` }];
  };
  const findings = [...without("dispatcher", "delivers"), ...without("recorder", "records")];
  return findings.length > 0 ? findings : [fine(part, `running processes deliver and record all ${shards}`)];
}

function shardFindings(shards: readonly ShardHealth[]): readonly Finding[] {
  const findings: Finding[] = [];
  const oldest = shards.flatMap((one) => one.oldest ?? []).sort((a, b) => b.ageMs - a.ageMs)[0];
  const waits = `the oldest job waits for ${seconds(oldest?.ageMs ?? 0)}${oldest === undefined ? "" : ` (${oldest.tenantId}, ${oldest.channel})`}`;
  findings.push(
    oldest !== undefined && oldest.ageMs > OLDEST_MS_MAX
      ? { part: "queue", says: waits, todo: "see its tenant's relay and pace: /ready names relays that are away" }
      : fine("queue", oldest === undefined ? "no job waits" : waits),
  );
  const lagMs = Math.max(0, ...shards.map(({ outboxAgeMs }) => outboxAgeMs ?? 0));
  const lag = `the oldest event waits for ${seconds(lagMs)} for the event store`;
  findings.push(
    lagMs > OUTBOX_MS_MAX
      ? { part: "event store", says: lag, todo: "see that ClickHouse takes inserts; the recorder's log says why not" }
      : fine("event store", lag),
  );
  const quarantined = shards.reduce((sum, one) => sum + one.quarantined, 0);
  if (quarantined > 0) {
    const where = shards.flatMap(({ shard, quarantined: count }) => (count > 0 ? [shard] : [])).join(", ");
    const says = `${quarantined} unreadable entries were set aside (shard ${where})`;
    findings.push({
      part: "quarantine",
      says,
      todo: "report them with the log lines of that time; then delete the list",
    });
  }
  return findings;
}

/** Returns the findings from the processes' reports. */
function processFindings(statuses: readonly ProcessStatus[]): readonly Finding[] {
  const part = "processes";
  const nowMs = systemClock.nowMs();
  const breakers = statuses.flatMap((status) => status.breakers.map((breaker) => ({ ...breaker, by: status.name })));
  const slow = statuses.filter(({ loopDelayMs }) => loopDelayMs > LOOP_DELAY_MS_MAX);
  const paused = new Set(statuses.flatMap((status) => status.paused.map(({ tenantId }) => tenantId)));
  return [
    fine(part, statuses.length === 0 ? "none has told how it is" : statuses.map(({ name }) => name).join(", ")),
    ...breakers.map(({ relay, channel, sinceMs, why, waitingJobs, by }) => ({
      part: `relay ${relay}`,
      says: `away for ${seconds(nowMs - sinceMs)} (${by}), ${waitingJobs} messages on ${channel} wait${why ? `: ${why}` : ""}`,
      todo: "bring it back: what waits goes out by itself",
    })),
    ...slow.map(({ name, loopDelayMs }) => ({
      part,
      says: `${name} stood still for ${seconds(loopDelayMs)}`,
      todo: "give the machine more cores, or spread the roles over more processes (docs/processes.md)",
    })),
    ...(paused.size === 0 ? [] : [fine("paused tenants", Array.from(paused).slice(0, PAUSED_NAMED_MAX).join(", "))]),
  ];
}

async function registryFindings({ config, db }: DoctorPorts): Promise<readonly Finding[]> {
  const { version, nowMs } = await registryHealth(db);
  const { later } = await requireSchema(db);
  const vault = new Vault(config.masterKeys, systemRandom);
  const counts = await Promise.all(
    listSealedColumns(CHANNELS).map((column) => countOlder(new Database(db, systemClock), vault, column)),
  );
  const older = counts.reduce((sum, count) => sum + count, 0);
  return [
    fine("PostgreSQL", `version ${version}, with the ${later > 0 ? "schema of a later version" : "current schema"}`),
    ...skewFindings("PostgreSQL", nowMs - systemClock.nowMs()),
    ...(older === 0
      ? []
      : [
          {
            part: "master key",
            says: `${older} secrets are encrypted with an older key`,
            todo: "run waybill rotate-keys",
          },
        ]),
  ];
}

async function eventStoreFindings({ eventStore }: DoctorPorts): Promise<readonly Finding[]> {
  if (eventStore === null) return [];
  await eventStore.identity();
  const { version, nowMs, refusedRows, freeBytes, totalBytes } = await eventStore.health();
  const broken = await eventStore.belonging.brokenParts();
  return [
    fine("ClickHouse", `version ${version}, with the current schema`),
    ...skewFindings("ClickHouse", nowMs - systemClock.nowMs()),
    ...(totalBytes === 0 ? [] : [roomFinding("ClickHouse's disk", freeBytes, totalBytes)]),
    ...broken.map(({ table, parts, folder }) => ({
      part: "ClickHouse's files",
      says: `${parts} parts of ${table} were damaged when it was opened, and their rows are missing`,
      todo: `restore a backup, or go on without these rows: then remove the folders broken* in ${folder}`,
    })),
    ...(refusedRows === 0
      ? []
      : [
          {
            part: "refused rows",
            says: `ClickHouse refused ${refusedRows} rows in the last seven days`,
            todo: "read the table refused_rows, which has the reasons",
          },
        ]),
  ];
}

/** The platform's own. Each tenant's is checked when it is stored. */
async function certificateFindings({ config }: DoctorPorts): Promise<readonly Finding[]> {
  if (config.appleCertificate === null) return [];
  const signer = await platformApple(config);
  if (signer === null) return [];
  const part = "Apple certificate";
  const endsMs = Date.parse(new X509Certificate(signer.certificatePem).validTo);
  const days = Math.floor((endsMs - systemClock.nowMs()) / DAY_MS);
  const says = days < 0 ? "has expired" : `expires in ${days} days`;
  return [days < EXPIRY_DAYS ? { part, says, todo: "renew it at Apple and set APPLE_CERTIFICATE" } : fine(part, says)];
}

function folderFindings({ home }: Config): readonly Finding[] {
  const part = "data folder";
  // Stores that are servers, and secrets from the environment, need none.
  if (!existsSync(home)) return [fine(part, `none at ${home}: nothing of this process is kept there`)];
  const findings: Finding[] = [];
  const { bavail, blocks, bsize } = statfsSync(home);
  findings.push(roomFinding(`disk of ${home}`, bavail * bsize, blocks * bsize));
  const open = ["", ...readdirSync(home)].filter((name) => {
    const info = lstatSync(join(home, name), { throwIfNoEntry: false });
    return info !== undefined && (info.isFile() || info.isDirectory()) && (info.mode & 0o077) !== 0;
  });
  findings.push(
    open.length === 0
      ? fine(part, `${home} is closed to other users`)
      : { part, says: `others have rights to ${join(home, open[0] ?? "")}`, todo: `chmod -R go-rwx ${home}` },
  );
  return findings;
}

function roomFinding(part: string, freeBytes: number, totalBytes: number): Finding {
  const says = `${megabytes(freeBytes)} of ${megabytes(totalBytes)} are free`;
  if (freeBytes >= FREE_SHARE_MIN * totalBytes) return fine(part, says);
  return { part, says, todo: "free or add room: a full disk stops accepting and recording" };
}

function megabytes(bytes: number): string {
  return bytes < 10e9 ? `${Math.round(bytes / 1e6)} MB` : `${Math.round(bytes / 1e9)} GB`;
}

function seconds(ms: number): string {
  return ms < 120_000
    ? `${(ms / 1000).toFixed(1)} s`
    : ms < 7_200_000
      ? `${Math.round(ms / 60_000)} min`
      : `${Math.round(ms / 3_600_000)} h`;
}
