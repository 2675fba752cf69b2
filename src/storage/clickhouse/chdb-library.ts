import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { ConfigurationError } from "../../domain/errors.ts";

/**
 * The file of chDB's library, half a gigabyte, which is ClickHouse. Throws `ConfigurationError` where there is none: it is not made
 * for every machine.
 */
export function chdbLibrary(platform: string = process.platform, arch: string = process.arch): string {
  const name = `@chdb/lib-${platform}-${arch}${platform === "linux" ? "-gnu" : ""}`;
  try {
    // Of the version that the package asks for, wherever the package manager has put it.
    const { resolve } = createRequire(createRequire(import.meta.url).resolve("chdb"));
    return join(dirname(resolve(`${name}/package.json`)), "libchdb.so");
  } catch {
    throw new ConfigurationError(`the embedded ClickHouse does not run here: set CLICKHOUSE_URL (no ${name})`);
  }
}
