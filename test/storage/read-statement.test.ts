import { expect, test } from "bun:test";
import { readStatement } from "../../src/storage/analysts/read-statement.ts";
import { EngineError } from "../../src/storage/clickhouse/engine-error.ts";

const read = (text: string) => readStatement(text, new Set());

test.each<[text: string, sql: string, format: string | null, settings: Readonly<Record<string, string>>]>([
  ["SELECT 1", "SELECT 1", null, {}],
  ["SELECT 1 ; ;", "SELECT 1", null, {}],
  ["SELECT 1 FORMAT JSON", "SELECT 1", "JSON", {}],
  ["SELECT 1 FORMAT `CSV`;", "SELECT 1", "CSV", {}],
  ["SELECT 1 FORMAT JSON SETTINGS max_threads = 1", "SELECT 1", "JSON", { max_threads: "1" }],
  ["SELECT 1 SETTINGS extremes, max_threads = 2 FORMAT JSON", "SELECT 1", "JSON", { extremes: "1", max_threads: "2" }],
  ["SELECT 1 SETTINGS max_threads = -1, extremes = true", "SELECT 1", null, { max_threads: "-1", extremes: "true" }],
  ["SELECT 1 SETTINGS max_threads = +1.5, extremes", "SELECT 1", null, { max_threads: "+1.5", extremes: "1" }],
  ["SELECT 1 SETTINGS max_threads = '4' FORMAT CSV", "SELECT 1", "CSV", { max_threads: "'4'" }],
  ["SELECT 1. SETTINGS extremes", "SELECT 1.", null, { extremes: "1" }],
  ["SELECT name FROM system.settings", "SELECT name FROM system.settings", null, {}],
  ["SHOW CHANGED SETTINGS FORMAT CSV", "SHOW CHANGED SETTINGS", "CSV", {}],
])("%s", (text, sql, format, settings) => {
  const statement = read(text);
  expect({ ...statement, settings: Object.fromEntries(statement.settings) }).toMatchObject({ sql, format, settings });
  expect(statement.settings.size).toBe(Object.keys(settings).length);
});

test.each([
  "",
  ";",
  "SELECT 1; SELECT 2",
  "SELECT 1 SETTINGS extremes SETTINGS max_threads = 1",
  "SELECT 1 SETTINGS max_threads =",
  "SELECT 1 SETTINGS max_threads = -",
  "SELECT 1 SETTINGS max_threads = 1 + 1",
  "SELECT 1 SETTINGS profile = 'default'",
  "SELECT * FROM (SELECT 1 SETTINGS extremes)",
  "SELECT * FROM (EXPLAIN SELECT 1)",
  "SELECT * FROM (SHOW TABLES)",
  "EXPLAIN INSERT INTO t SELECT 1",
  "EXPLAIN CREATE TABLE t (a Int8) ENGINE = Memory",
  "EXPLAIN PLAN TABLES",
  "SHOW GRANTS",
  "SHOW CREATE USER default",
  "SHOW CREATE TABLE t, u",
])("refused: %s", (text) => expect(() => read(text)).toThrow(EngineError));
