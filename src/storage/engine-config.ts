import { statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { diskLimits } from "./limits.ts";

/**
 * Writes the configuration of ClickHouse's engine for its folder, and answers the file's path. `usersFile`: where analysts'
 * rights are defined; null: only we read it.
 *
 * The engine must never meet a full disk: what it writes then is published as a part whose files are empty, in place of the parts
 * that it merges, and an insert is acknowledged all the same (seen with ClickHouse 26.7 in chDB 3.4; an ordinary server aborts).
 * It begins no insert and no merge that does not leave this much free, so the space is there until those under way have ended.
 */
export function writeEngineConfig(path: string, usersFile: string | null): string {
  const { blocks, bsize } = statfsSync(path);
  const { freeBytesKept, freeShareKept } = diskLimits;
  const keptFree = Math.min(freeBytesKept, Math.floor(blocks * bsize * freeShareKept));
  const users = usersFile === null ? "" : `<users_config>${escaped(usersFile)}</users_config>`;
  const disk = `<default><keep_free_space_bytes>${keptFree}</keep_free_space_bytes></default>`;
  const storage = `<storage_configuration><disks>${disk}</disks></storage_configuration>`;
  const file = join(path, "waybill.xml");
  writeFileSync(file, `<clickhouse>${users}${storage}</clickhouse>\n`, { mode: 0o600 });
  return file;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
