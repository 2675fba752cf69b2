import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serveClickHouseHttp } from "../../src/storage/clickhouse/clickhouse-http.ts";
import { openClickHouse } from "./private-clickhouse.ts";
import { QuietTelemetry } from "./quiet-telemetry.ts";

/** The content of each canary; no answer may contain it. */
export const CANARY = "canary-3f9c1d7e-must-not-be-seen";
export const PASSWORD = "a password of analysts";

export type OpenAnalysts = Awaited<ReturnType<typeof openAnalysts>>;

/** An analysts' port over a small event store, with canaries: files that an attack tries to read or overwrite. */
export async function openAnalysts() {
  const folder = mkdtempSync(join(tmpdir(), "waybill-analysts-"));
  const canaries = ["operator-token", "canary.csv", "canary.proto", "canary.parquet"].map((name) => join(folder, name));
  for (const file of canaries) writeFileSync(file, `${CANARY}\n`, { mode: 0o600 });
  // Files written by a name without a folder end up here, or in the process's working folder.
  mkdirSync(join(folder, "empty"));
  const chdb = await openClickHouse(join(folder, "clickhouse"), "waybill");
  for (const query of [
    "CREATE DATABASE waybill",
    "CREATE TABLE waybill.t (a UInt64, s String) ENGINE = MergeTree ORDER BY a",
    "INSERT INTO waybill.t SELECT number, toString(number) FROM numbers(1000)",
    `CREATE TABLE default.secret (s String) ENGINE = Memory`,
    `INSERT INTO default.secret VALUES ('${CANARY}')`,
    "CREATE DATABASE waybill_sealed",
    "CREATE TABLE waybill_sealed.failed_payloads (body String) ENGINE = MergeTree ORDER BY body",
    `INSERT INTO waybill_sealed.failed_payloads VALUES ('${CANARY}')`,
  ])
    await chdb.writer.command({ query });
  const { address, analysts } = chdb;
  const face = await serveClickHouseHttp({
    server: analysts ?? address,
    database: "waybill",
    port: 0,
    password: PASSWORD,
    telemetry: new QuietTelemetry(),
  });
  const look = () => [
    ...canaries.map((file) => ({ file, mtimeMs: statSync(file).mtimeMs, text: readFileSync(file, "utf8") })),
    { files: [...readdirSync(folder), ...readdirSync(join(folder, "empty")), ...readdirSync(".")].sort() },
  ];
  const before = look();
  return {
    folder,
    canaries,
    chdb,
    face,
    /** The canaries before and after, and the names of the files next to them. */
    canariesBefore: before,
    canariesNow: look,
    async ask(sql: string, members: Record<string, string> = {}, init: RequestInit = {}) {
      const answer = await fetch(`${face.url}/?${new URLSearchParams(members).toString()}`, {
        method: "POST",
        body: sql,
        ...init,
        headers: { "X-ClickHouse-Key": PASSWORD, ...init.headers },
      });
      return { status: answer.status, text: await answer.text(), headers: answer.headers };
    },
    async close() {
      await face.stop();
      await chdb.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
