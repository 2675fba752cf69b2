import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { limits } from "../domain/limits.ts";

/**
 * What the engine has to be opened with so that some of its sessions can read and nothing else.
 *
 * Every session of the in-process engine is the same user, which may do anything. But a session can take on a role
 * (`SET ROLE`), and roles have to stand in a file that the engine reads as it opens. What a role forbids the engine itself
 * refuses: writing, DDL, tables of files and of other hosts. What it does not know of is in `read-statement.ts`.
 */
export function writeAnalystAccess(folder: string, database: string): { readonly configFile: string } {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const usersFile = join(folder, "users.xml");
  const configFile = join(folder, "config.xml");
  writeFileSync(usersFile, users(database), { mode: 0o600 });
  writeFileSync(configFile, `<clickhouse><users_config>${escaped(usersFile)}</users_config></clickhouse>\n`, {
    mode: 0o600,
  });
  return { configFile };
}

/** How a statement's result is handed out: in one piece, which has to fit into memory, or as it comes. */
export type Delivery = "whole" | "stream";

/**
 * The statements that turn a fresh session into an analyst's. `settings` (assignments) come last but for the lock: a
 * profile brings bounds, not values. After the lock (`readonly = 1`) the engine refuses every setting, wherever a statement
 * names it: none can read a schema or a template from a file, turn on what is off, or lift a bound.
 */
export function becomeAnalyst(delivery: Delivery, settings: readonly string[]): string {
  const values = Object.entries(BOUNDS[delivery]).map(([name, max]) => `${name} = ${max}`);
  return [
    `SET profile = 'analyst_${delivery}'`,
    "SET ROLE analyst",
    // First and by themselves: bounds are not looked at where a setting is given the value that it has before the statement.
    `SET ${values.join(", ")}`,
    `SET ${[...settings, "readonly = 1"].join(", ")}`,
  ].join("; ");
}

const ALWAYS = {
  max_execution_time: limits.analystQueryMs / 1000,
  max_memory_usage: limits.analystMemoryBytesMax,
  max_threads: limits.analystThreadsMax,
};

const BOUNDS: Readonly<Record<Delivery, Readonly<Record<string, number>>>> = {
  whole: {
    ...ALWAYS,
    max_result_bytes: limits.analystResultBytesMax,
    max_result_rows: limits.analystResultRowsMax,
  },
  stream: ALWAYS,
};

function profile(delivery: Delivery): string {
  // `min` as well, because 0 stands for "no bound".
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

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
