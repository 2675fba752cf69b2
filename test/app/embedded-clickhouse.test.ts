import { expect, test } from "bun:test";
import { ConfigurationError } from "../../src/domain/errors.ts";
import { chdbLibrary } from "../../src/storage/clickhouse/chdb-library.ts";

test("where there is no build of it, a start says what to do instead", () => {
  expect(() => chdbLibrary("linux", "riscv64")).toThrow(ConfigurationError);
  expect(() => chdbLibrary("linux", "riscv64")).toThrow(
    "the embedded ClickHouse does not run here: set CLICKHOUSE_URL (",
  );
});
