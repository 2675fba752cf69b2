import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { ConfigurationError } from "../../domain/errors.ts";

/**
 * Returns the path of chDB's library, half a gigabyte, which is ClickHouse. Throws `ConfigurationError` if there is
 * none: it is not built for every platform.
 */
export function chdbLibrary(platform: string = process.platform, arch: string = process.arch): string {
  const name = `@chdb/lib-${platform}-${arch}${platform === "linux" ? "-gnu" : ""}`;
  try {
    // The version that the package requires, wherever the package manager has installed it.
    const { resolve } = createRequire(createRequire(import.meta.url).resolve("chdb"));
    return join(dirname(resolve(`${name}/package.json`)), "libchdb.so");
  } catch {
    throw new ConfigurationError(`the embedded ClickHouse does not run here: set CLICKHOUSE_URL (no ${name})`);
  }
}
