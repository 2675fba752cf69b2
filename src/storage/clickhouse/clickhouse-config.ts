import { createHash } from "node:crypto";
import { statfsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { READ_SETTINGS, SYSTEM_TABLES } from "../analysts/read-names.ts";
import { analystLimits, diskLimits } from "../limits.ts";

export interface ClickHouseConfig {
  /** The engine's folder. */
  readonly folder: string;
  readonly port: number;
  /** The password of our own user, who has all rights. */
  readonly password: string;
  readonly analyst: AnalystUser | null;
}

/** A user who can only read. */
export interface AnalystUser {
  /** The only database that this user may read, besides lists of tables and columns. */
  readonly database: string;
  readonly password: string;
}

export const OWN_USER = "waybill";
export const ANALYST = "analyst";

/**
 * Writes the configuration of the private ClickHouse server into its folder, and returns the file's path. Contains only
 * digests of the passwords.
 *
 * The engine must never meet a full disk: it would then publish a part whose files are empty in place of the parts that
 * it merges, and acknowledge an insert nevertheless (seen with ClickHouse 26.7 in chDB 3.4; an ordinary server aborts).
 * It begins no insert and no merge that does not leave this much free, so the space is there until those in progress
 * have ended.
 */
export async function writeClickHouseConfig(config: ClickHouseConfig): Promise<string> {
  const { folder, port } = config;
  const { blocks, bsize } = statfsSync(folder);
  const { freeBytesKept, freeShareKept } = diskLimits;
  const keptFree = Math.min(freeBytesKept, Math.floor(blocks * bsize * freeShareKept));
  const users = join(folder, "users.xml");
  const file = join(folder, "waybill.xml");
  await writeFile(users, usersXml(config), { mode: 0o600 });
  const text = `<clickhouse>
  <path>${escaped(folder)}</path>
  <users_config>${escaped(users)}</users_config>
  <listen_host>127.0.0.1</listen_host>
  <http_port>${port}</http_port>
  <display_name>waybill</display_name>
  <timezone>UTC</timezone>
  <storage_configuration><disks><default>
    <keep_free_space_bytes>${keptFree}</keep_free_space_bytes>
  </default></disks></storage_configuration>
  <access_control_improvements>
    <settings_constraints_replace_previous>true</settings_constraints_replace_previous>
  </access_control_improvements>
</clickhouse>
`;
  await writeFile(file, text, { mode: 0o600 });
  return file;
}

/**
 * The library runs the statement that keeps it serving as the user `default`, without a password. Other logins as that
 * user are refused by the bound on its sessions: the only permitted one lasts as long as the server.
 */
function usersXml({ password, analyst }: ClickHouseConfig): string {
  return `<clickhouse>
  <profiles>
    <default></default>
    <keeper><max_sessions_for_user>1</max_sessions_for_user></keeper>
    ${analyst === null ? "" : analystProfile()}
  </profiles>
  <quotas><default></default></quotas>
  <users>
    <default>
      <no_password></no_password>
      <networks><ip>127.0.0.1</ip></networks>
      <profile>keeper</profile>
      <quota>default</quota>
      <grants>
        <query>GRANT SYSTEM LISTEN ON *.*</query>
        <query>GRANT READ ON FILE</query>
        <query>GRANT CREATE TEMPORARY TABLE ON *.*</query>
      </grants>
    </default>
    ${userXml(OWN_USER, password, "default")}
    ${analyst === null ? "" : userXml(ANALYST, analyst.password, "analyst", buildGrants(analyst))}
  </users>
</clickhouse>
`;
}

function userXml(name: string, password: string, profile: string, grants: readonly string[] = []): string {
  const digest = createHash("sha256").update(password).digest("hex");
  const granted = grants.map((grant) => `<query>GRANT ${grant}</query>`).join("");
  return `<${name}>
      <password_sha256_hex>${digest}</password_sha256_hex>
      <networks><ip>127.0.0.1</ip></networks>
      <profile>${profile}</profile>
      <quota>default</quota>
      ${granted === "" ? "" : `<grants>${granted}</grants>`}
    </${name}>`;
}

function buildGrants({ database }: AnalystUser): readonly string[] {
  return [
    `SELECT ON ${database}.*`,
    "SELECT ON information_schema.*",
    ...[...SYSTEM_TABLES].map((table) => `SELECT ON system.${table}`),
  ];
}

/** The upper bounds of an analyst's statement, which can set lower ones. */
const BOUNDS: Readonly<Record<string, number>> = {
  max_execution_time: analystLimits.analystQueryMs / 1000,
  max_memory_usage: analystLimits.analystMemoryBytesMax,
  max_threads: analystLimits.analystThreadsMax,
};

/** Only the settings listed in `read-names.ts` can be changed. `min` as well as `max`, because 0 means "no bound". */
function analystProfile(): string {
  const values = {
    readonly: 1,
    ...BOUNDS,
    cancel_http_readonly_queries_on_client_close: 1,
    http_send_timeout: analystLimits.analystStallMs / 1000,
  };
  const constraint = (name: string) => {
    const max = BOUNDS[name];
    const range = max === undefined ? "" : `<min>1</min><max>${max}</max>`;
    return `<${name}>${range}<changeable_in_readonly/></${name}>`;
  };
  return `<analyst>
      ${Object.entries(values)
        .map(([name, value]) => `<${name}>${value}</${name}>`)
        .join("")}
      <constraints>${[...READ_SETTINGS].map(constraint).join("")}</constraints>
    </analyst>`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
