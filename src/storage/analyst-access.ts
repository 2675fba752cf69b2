import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { analystLimits } from "./limits.ts";

/**
 * Prepares the engine for sessions that can only read.
 *
 * Every session of the in-process engine belongs to the same user, which may do anything. But a session can take on a role
 * (`SET ROLE`); roles must be defined in a file that the engine reads as it opens. The engine itself refuses what a role
 * forbids: writing, DDL, tables of files and of other hosts. `read-statement.ts` refuses what roles do not cover. Answers the
 * path of that file.
 */
export function writeAnalystAccess(folder: string, database: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const usersFile = join(folder, "users.xml");
  writeFileSync(usersFile, users(database), { mode: 0o600 });
  return usersFile;
}

/** How a statement's result is returned: in one piece, which must fit into memory, or as a stream. */
export type Delivery = "whole" | "stream";

/**
 * The statements that turn a fresh session into an analyst's. `settings` (assignments) come last, just before the lock, because
 * a profile sets bounds rather than values. After the lock (`readonly = 1`) the engine refuses every setting, wherever a
 * statement names it: none can read a schema or a template from a file, enable a disabled feature, or lift a bound.
 */
export function becomeAnalyst(delivery: Delivery, settings: readonly string[]): string {
  const values = Object.entries(BOUNDS[delivery]).map(([name, max]) => `${name} = ${max}`);
  return [
    `SET profile = 'analyst_${delivery}'`,
    "SET ROLE analyst",
    // First and separately: a setting is not checked against its bounds if it is set to the value it already has.
    `SET ${values.join(", ")}`,
    `SET ${[...settings, "readonly = 1"].join(", ")}`,
  ].join("; ");
}

const ALWAYS = {
  max_execution_time: analystLimits.analystQueryMs / 1000,
  max_memory_usage: analystLimits.analystMemoryBytesMax,
  max_threads: analystLimits.analystThreadsMax,
};

const BOUNDS: Readonly<Record<Delivery, Readonly<Record<string, number>>>> = {
  whole: {
    ...ALWAYS,
    max_result_bytes: analystLimits.analystResultBytesMax,
    max_result_rows: analystLimits.analystResultRowsMax,
  },
  stream: ALWAYS,
};

function profile(delivery: Delivery): string {
  // `min` as well, because 0 means "no bound".
  const bounds = Object.entries(BOUNDS[delivery]).map(
    ([name, max]) => `<${name}><min>1</min><max>${max}</max></${name}>`,
  );
  return `<analyst_${delivery}><constraints>${bounds.join("")}</constraints></analyst_${delivery}>`;
}

function users(database: string): string {
  return `<clickhouse>
  <profiles>
    <default></default>
    ${profile("whole")}
    ${profile("stream")}
  </profiles>
  <quotas><default></default></quotas>
  <roles>
    <everything><grants><query>GRANT ALL ON *.* WITH GRANT OPTION</query></grants></everything>
    <analyst><grants>
      <query>GRANT SELECT ON ${database}.*</query>
      <query>GRANT SELECT ON system.*</query>
      <query>GRANT SELECT ON information_schema.*</query>
    </grants></analyst>
  </roles>
  <users><default>
    <password></password>
    <networks><ip>::/0</ip></networks>
    <profile>default</profile>
    <quota>default</quota>
    <grants><query>GRANT everything, analyst</query></grants>
  </default></users>
</clickhouse>
`;
}
