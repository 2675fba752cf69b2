import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from "@clickhouse/client";
import { type ClickHouseHttp, serveClickHouseHttp } from "../../src/storage/clickhouse/clickhouse-http.ts";
import { eventually } from "../support/eventually.ts";
import { openClickHouse, type PrivateClickHouse } from "../support/private-clickhouse.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";

const password = "a password of analysts";
const auth = { "X-ClickHouse-Key": password };
let folder: string;
let chdb: PrivateClickHouse;
let face: ClickHouseHttp;
let client: ClickHouseClient;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-analysts-"));
  chdb = await openClickHouse(join(folder, "clickhouse"), "waybill");
  await write("CREATE DATABASE waybill");
  await write("CREATE TABLE waybill.t (a UInt64, s String) ENGINE = MergeTree ORDER BY a");
  await write("CREATE TABLE default.secret (a UInt64) ENGINE = Memory");
  await write("INSERT INTO waybill.t SELECT number, toString(number) FROM numbers(1000000)");
  const { address, analysts } = chdb;
  const server = analysts ?? address;
  face = await serveClickHouseHttp({ server, database: "waybill", port: 0, password, telemetry: new QuietTelemetry() });
  client = createClient({ url: face.url, password, log: { level: ClickHouseLogLevel.OFF } });
}, 90_000);

afterAll(async () => {
  await client.close();
  await face.stop();
  await chdb.close();
  await rm(folder, { recursive: true, force: true });
});

const write = (query: string) => chdb.writer.command({ query });

/** The status and text of a request. */
async function ask(sql: string, members: Record<string, string> = {}, init: RequestInit = {}) {
  const answer = await fetch(`${face.url}/?${new URLSearchParams(members).toString()}`, {
    method: "POST",
    body: sql,
    ...init,
    headers: { ...auth, ...init.headers },
  });
  return { status: answer.status, text: await answer.text(), headers: answer.headers };
}

const queryValue = async (sql: string, members: Record<string, string> = {}) =>
  (await ask(sql, members)).text.trimEnd();

// On a full disk it publishes empty parts (`clickhouse-config.ts`), so it must stop before the disk is full.
test("the engine writes nothing that would leave too little of its disk", async () => {
  const result = await chdb.reader.query({ query: "SELECT * FROM system.disks", format: "JSONEachRow" });
  const [disk] = await result.json<{ readonly total_space: string; readonly keep_free_space: string }>();
  const kept = Math.min(256 * 1024 * 1024, Number(disk?.total_space) / 20);
  expect(Number(disk?.keep_free_space)).toBe(Math.floor(kept));
});

test("a tool that probes for a server finds one", async () => {
  expect(await client.ping()).toEqual({ success: true });
  expect(await client.ping({ select: true })).toEqual({ success: true });
  for (const [method, path] of [
    ["GET", "/"],
    ["HEAD", "/"],
    ["GET", "/ping"],
  ] as const) {
    expect((await fetch(`${face.url}${path}`, { method })).status).toBe(200);
  }
  expect((await fetch(`${face.url}/play`)).status).toBe(404);
  expect((await fetch(face.url, { method: "DELETE" })).status).toBe(405);
});

test("a statement comes in the address or the body; it, the address or a header names the format", async () => {
  const inUrl = await fetch(`${face.url}/?query=${encodeURIComponent("SELECT a FROM t ORDER BY a LIMIT 2")}`, {
    headers: auth,
  });
  expect(await inUrl.text()).toBe("0\n1\n");
  const sql = "SELECT count() AS n FROM t;";
  const line = '{"n":1000000}\n';
  expect(await ask(sql.replace(";", " FORMAT JSONEachRow -- the end;"))).toMatchObject({ text: line });
  expect(await ask(sql, { default_format: "JSONEachRow" })).toMatchObject({ text: line });
  const named = await ask(sql, {}, { headers: { "X-ClickHouse-Format": "JSONEachRow" } });
  expect(named.text).toBe(line);
  expect(named.headers.get("x-clickhouse-format")).toBe("JSONEachRow");
  expect(named.headers.get("content-type")).toStartWith("application/x-ndjson");
  expect(named.headers.get("x-clickhouse-query-id")).toMatch(/^[0-9a-f-]{36}$/);
  expect(await queryValue("SELECT currentDatabase()")).toBe("waybill");
  expect(await queryValue("SELECT currentDatabase()", { database: "waybill" })).toBe("waybill");
  expect(await ask("SELECT 1", { database: "system" })).toMatchObject({ status: 404 });
});

test("the official client reads rows, documents and streams", async () => {
  const query = "SELECT a, s FROM t ORDER BY a LIMIT 3";
  const rows = [0, 1, 2].map((n) => ({ a: n, s: String(n) }));
  for (const format of ["JSONEachRow", "JSON", "JSONCompact", "CSVWithNames"] as const) {
    const result = await client.query({ query, format });
    if (format === "CSVWithNames") expect(await result.text()).toBe('"a","s"\n0,"0"\n1,"1"\n2,"2"\n');
    else if (format === "JSONEachRow") expect(await result.json<unknown>()).toEqual(rows);
    else expect(await result.json<unknown>()).toMatchObject({ rows: 3 });
  }
  const stream = await client.query({ query: "SELECT a, s FROM t LIMIT 200000", format: "JSONEachRow" });
  let seen = 0;
  for await (const chunk of stream.stream()) seen += chunk.length;
  expect(seen).toBe(200_000);
}, 90_000);

test("a parameter arrives unchanged, whatever is in it", async () => {
  const hostile = ["it's", "back\\slash", "tab\tnew\nline", "''; DROP TABLE t; --", "\\'", "ünï 😀", "", "\\N"];
  for (const text of hostile) {
    const result = await client.query({
      query: "SELECT {text:String} AS v",
      query_params: { text },
      format: "JSONEachRow",
    });
    expect(await result.json<unknown>()).toEqual([{ v: text }]);
  }
  const result = await client.query({
    query: "SELECT {list:Array(String)} AS list, {none:Nullable(String)} AS none, {n:UInt8} AS n",
    query_params: { list: hostile, none: null, n: 7 },
    format: "JSONEachRow",
  });
  expect(await result.json<unknown>()).toEqual([{ list: hostile, none: null, n: 7 }]);
});

test("errors have ClickHouse's codes, names and status", async () => {
  const cases = [
    ["SELECT nope", 404, 47],
    ["SELECT * FROM nowhere", 404, 60],
    ["SELECT 1 FROM", 400, 62],
    ["SELECT 'open", 400, 62],
    ["", 400, 62],
    ["SELECT {x:UInt8}", 400, 456],
    ["SELECT 1 FORMAT Nope", 404, 73],
    ["SELECT throwIf(1)", 500, 395],
  ] as const;
  for (const [sql, status, code] of cases) {
    const answer = await ask(sql);
    expect([sql, answer.status, answer.headers.get("x-clickhouse-exception-code")]).toEqual([
      sql,
      status,
      String(code),
    ]);
    expect(answer.text).toMatch(new RegExp(`^Code: ${code}\\. DB::Exception: .+ \\([A-Z_]+\\)\n$`, "s"));
    expect(answer.text).not.toContain("(version");
  }
  const failing = client.query({ query: "SELECT nope" });
  await expect(failing).rejects.toMatchObject({ code: "47", type: "UNKNOWN_IDENTIFIER" });
});

test("an error after rows that are sent already follows them", async () => {
  const result = await client.query({ query: "SELECT a, throwIf(a = 900000) FROM t", format: "JSONEachRow" });
  const reading = (async () => {
    for await (const _ of result.stream());
  })();
  await expect(reading).rejects.toMatchObject({ code: "395" });
});

test("a whole table is streamed, and memory does not grow with it", async () => {
  const before = process.memoryUsage.rss();
  let most = 0;
  const answer = await fetch(face.url, {
    method: "POST",
    body: "SELECT number, toString(number) FROM numbers(10000000)",
    headers: auth,
  });
  let bytes = 0;
  for await (const chunk of answer.body ?? []) {
    bytes += chunk.length;
    most = Math.max(most, process.memoryUsage.rss());
  }
  expect(bytes).toBe(157_777_780);
  expect(most - before).toBeLessThan(120 * 1024 * 1024);
}, 90_000);

test("a document of millions of rows is streamed, too", async () => {
  const answer = await ask("SELECT number, number + 1 FROM numbers(2000000) FORMAT JSONCompact");
  expect(JSON.parse(answer.text)).toMatchObject({ rows: 2_000_000 });
}, 90_000);

test("gzip works both ways", async () => {
  const body = gzipSync("SELECT count() FROM t");
  expect(await ask("", {}, { body, headers: { "Content-Encoding": "gzip" } })).toMatchObject({ text: "1000000\n" });
  const zipped = await ask(
    "SELECT a FROM t",
    { enable_http_compression: "1" },
    { headers: { "Accept-Encoding": "gzip" } },
  );
  expect(zipped.headers.get("content-encoding")).toBe("gzip");
  expect(zipped.text.length).toBe(6_888_890);
  const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, " "));
  expect(await ask("", {}, { body: bomb, headers: { "Content-Encoding": "gzip" } })).toMatchObject({ status: 413 });
  const broken = await ask("", {}, { body: "no gzip", headers: { "Content-Encoding": "gzip" } });
  expect(broken.text).toContain("Content-Encoding");
  const zipping = createClient({ url: face.url, password, compression: { request: true, response: true } });
  const result = await zipping.query({ query: "SELECT count() AS n FROM t", format: "JSONEachRow" });
  expect(await result.json<unknown>()).toEqual([{ n: 1_000_000 }]);
  await zipping.close();
});

test("settings and parameters of one request never reach another", async () => {
  const setting = "SELECT getSetting('max_block_size')";
  const usual = await queryValue(setting);
  const values = await Promise.all(
    Array.from({ length: 64 }, async (_, n) => {
      const mine = await queryValue(`${setting}, {x:String}`, { max_block_size: String(1000 + n), param_x: `v${n}` });
      return mine === `${1000 + n}\tv${n}` && (await queryValue(setting)) === usual;
    }),
  );
  expect(values.filter((isRight) => !isRight)).toEqual([]);
  expect(await queryValue("SELECT {x:String}")).toContain("(UNKNOWN_QUERY_PARAMETER)");
}, 90_000);

const ESCAPES = [
  "INSERT INTO t VALUES (1, 'x')",
  "WITH 1 AS a INSERT INTO t SELECT a, 'x'",
  "CREATE TABLE waybill.mine (a UInt8) ENGINE = Memory",
  "CREATE TEMPORARY TABLE mine (a UInt8)",
  "CREATE FUNCTION f AS x -> x",
  "DROP TABLE t",
  "TRUNCATE TABLE t",
  "ALTER TABLE t DELETE WHERE 1",
  "DELETE FROM t WHERE 1",
  "OPTIMIZE TABLE t FINAL",
  "ATTACH TABLE x",
  "BACKUP TABLE t TO Disk('default', 'x')",
  "GRANT ALL ON *.* TO default",
  "KILL QUERY WHERE 1",
  "SYSTEM SHUTDOWN",
  "USE default",
  "SET readonly = 0",
  "SET ROLE everything",
  "/* SELECT */ SET ROLE everything",
  "SELECT 1; SET ROLE everything",
  "SELECT 1; SELECT 2",
  "SELECT 1 PARALLEL WITH KILL QUERY WHERE 1",
  "SELECT file('/etc/hostname')",
  "SELECT FILE ('/etc/hostname')",
  "SELECT \"file\"('/etc/hostname')",
  "SELECT `file`/**/('/etc/hostname')",
  "SELECT `\\x66ile`('/etc/hostname')",
  "SELECT * APPLY(file) FROM (SELECT '/etc/hostname')",
  "SELECT '\\'', file('/etc/hostname') --'",
  "SELECT x'', file('/etc/hostname') --'",
  "SELECT $a$'$a$, file('/etc/hostname') --'",
  "SELECT 1 -- \n, file('/etc/hostname')",
  "SELECT ‘a’, file(‘/etc/hostname’)",
  "EXPLAIN SELECT file('/etc/hostname')",
  "SELECT {f:Identifier}('/etc/hostname')",
  "SELECT * FROM file('/etc/hostname', 'LineAsString')",
  "SELECT * FROM '/etc/hostname'",
  "DESCRIBE url('http://127.0.0.1:1/')",
  "SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString', 'x String')",
  "SELECT * FROM remote('127.0.0.1', 'default.secret')",
  "SELECT * FROM mysql('127.0.0.1:1', 'a', 'b', 'c', 'd')",
  "SELECT * FROM sqlite('/tmp/x.db', 't')",
  "SELECT * FROM executable('sh', 'TSV', 'x String', (SELECT 1))",
  "SELECT * FROM default.secret",
  "SELECT * FROM merge('default', 'secret')",
  "SELECT * FROM loop(default.secret) LIMIT 1",
  "SELECT 1 INTO OUTFILE 'OUTFILE'",
  "(SELECT 1) into/**/outfile 'OUTFILE'",
  "SHOW TABLES INTO OUTFILE 'OUTFILE'",
  "SELECT 1 FORMAT Template SETTINGS format_template_row = '/etc/hostname'",
  "SELECT 1 SETTINGS max_threads = 1, readonly = 0",
  "SELECT 1 SETTINGS profile = 'default'",
  "SELECT 1 SETTINGS `profile` = 'default'",
  "SELECT * FROM (SELECT 1 SETTINGS allow_introspection_functions = 1)",
  "SELECT 1 SETTINGS max_execution_time = 0",
  "SELECT 1 SETTINGS max_memory_usage = 0",
  "SELECT 1 SETTINGS max_memory_usage = 100000000000",
  "SELECT 1 SETTINGS send_logs_level = 'trace'",
  "SELECT 1 SETTINGS log_comment = 'mine'",
  "SHOW CREATE USER default",
  "SELECT * FROM system.users",
];

test("no statement writes, reaches out of the event store or lifts a bound", async () => {
  const target = join(folder, "outfile");
  const asked = await Promise.all(
    ESCAPES.map(async (sql) => ({ sql, ...(await ask(sql.replace("OUTFILE'", `${target}'`), { param_f: "file" })) })),
  );
  expect(asked.filter(({ status }) => status === 200).map(({ sql }) => sql)).toEqual([]);
  expect(asked.filter(({ text }) => !/^Code: \d+\. DB::Exception/.test(text))).toEqual([]);
  expect(existsSync(target)).toBe(false);
  for (const unbound of ["max_execution_time", "max_memory_usage"])
    expect([unbound, (await ask("SELECT 1", { [unbound]: "0" })).text]).toEqual([
      unbound,
      expect.stringContaining("(SETTING_CONSTRAINT_VIOLATION)"),
    ]);
  for (const members of [
    { readonly: "0" },
    { profile: "default" },
    { extremes: "1", format_template_resultset: "/etc/x" },
    { output_format_schema: "/tmp/x" },
    { allow_experimental_eval_table_function: "1" },
    { format_schema: "/etc/x" },
    { role: "everything" },
  ]) {
    expect((await ask("SELECT 1", members)).status).toBe(403);
  }
  expect(await queryValue("SELECT count() FROM t")).toBe("1000000");
}, 90_000);

test("words in quotes and comments are no reason to refuse, and the usual schema queries work", async () => {
  const fine = [
    "SELECT 'file(); DROP TABLE t' AS `outfile into` -- SET x",
    "SELECT 1 /* INTO OUTFILE 'x'; */",
    "SELECT 'it''s \\'file\\'' SETTINGS max_threads = 1, output_format_json_quote_64bit_integers = 1",
    "SHOW TABLES",
    "SHOW CREATE TABLE t",
    "DESCRIBE TABLE t",
    "EXISTS TABLE t",
    "EXPLAIN SELECT * FROM t WHERE a = 5",
    "WITH (SELECT max(a) FROM t) AS most SELECT most",
    "(SELECT 1)",
    "SELECT name FROM system.settings LIMIT 1",
    "SELECT * FROM system.columns WHERE database = 'waybill'",
    "SELECT table_name FROM information_schema.tables",
    "SELECT version(), currentDatabase(), timezone(), currentUser() AS user, hostName(), getSetting('readonly')",
    "SELECT name, value, readonly AS readonly FROM system.settings LIMIT 10000",
    "SELECT name, engine, total_rows FROM system.tables WHERE database NOT IN ('system', 'information_schema')",
    "SELECT name FROM system.databases /* grafana dbs query */",
    'SELECT count(*) AS `Bounce rate / day` FROM "waybill"."t" AS "source" GROUP BY `source`.`s` LIMIT 3',
    "SHOW DATABASES",
    "SHOW FULL TABLES FROM waybill",
    "SHOW SETTINGS LIKE 'max_threads'",
    "EXPLAIN PLAN header = 1, indexes = 1 SELECT * FROM t WHERE a = 5",
    "SELECT countIf(a > 1), quantilesTDigestIf(0.5, 0.9)(a, a > 1), uniqExact(s), CAST(max(a) AS Nullable(UInt32)) FROM t",
    "SELECT CASE WHEN a IN (1, 2) THEN 'x' ELSE (s) END FROM t ORDER BY (a, s) LIMIT 2 BY (a) LIMIT 3",
    "SELECT a, row_number() OVER (PARTITION BY (a % 3) ORDER BY a) AS n FROM t QUALIFY (n = 1)",
    "WITH few AS (SELECT a FROM t LIMIT 5), more AS (SELECT a FROM few) SELECT * FROM more UNION ALL (SELECT 1)",
    "SELECT DATE '2026-11-22' + INTERVAL 1 DAY, EXTRACT(YEAR FROM now()), x'41', {p:Array(String)}, [1, 2][1], (1, 2).2",
    "SELECT * EXCEPT (s) REPLACE (a + 1 AS a) FROM t LIMIT 1",
    "SELECT arrayMap((x, y) -> x + y, [1], [2]), a::String FROM t LIMIT 1 FORMAT JSONCompact SETTINGS extremes, max_threads = 1",
    "SELECT arrayMap(lower, ['A']), arrayReduce('sum', [1, 2])",
    "SELECT sum(number) FROM numbers(10)",
    "SELECT format('{} {}', 'a', 'b')",
    `SELECT '${"\\'".repeat(60_000)}'`,
  ];
  for (const sql of fine) {
    const { status, text } = await ask(sql, { param_p: "['x']" });
    expect({ sql, status, text: status === 200 ? "" : text }).toEqual({ sql, status: 200, text: "" });
  }
});

test("an unsupported protocol option is refused with an explanation", async () => {
  expect(await queryValue("SELECT 1", { compress: "1" })).toContain("set compress=0");
  expect(await queryValue("SELECT 1", { compress: "0" })).toBe("1");
  const form = new FormData();
  form.set("query", "SELECT 1");
  expect((await fetch(face.url, { method: "POST", body: form, headers: auth })).status).toBe(501);
  expect((await ask("SELECT 1", { session_id: "mine" })).text).toBe("1\n");
  expect((await ask(`SELECT '${"x".repeat(256 * 1024)}'`)).status).toBe(413);
});

test("no web page reads the event store, under any host name", async () => {
  const { port } = new URL(face.url);
  const statusFor = (headers: Record<string, string>, path = "/?query=SELECT+1") =>
    new Promise<number | undefined>((resolve, reject) => {
      request({ host: "127.0.0.1", port, path, headers: { ...auth, ...headers } }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      })
        .on("error", reject)
        .end();
    });
  for (const headers of [
    { Host: "ledger.example.com" },
    { Host: `ledger.example.com:${port}` },
    { Host: `127.0.0.1.example.com:${port}` },
    { Host: `127.0.0.1:${port}@example.com` },
    { Host: "127.0.0.1" },
    { Host: "localhost:1" },
    { Origin: "https://example.com" },
    { Origin: "null" },
    { Origin: `http://127.0.0.1:${port}` },
    { "Sec-Fetch-Site": "cross-site" },
    { "Sec-Fetch-Site": "same-site" },
    { "Sec-Fetch-Site": "Cross-Site" },
  ]) {
    expect([headers, await statusFor(headers)]).toEqual([headers, 403]);
    expect([headers, await statusFor(headers, "/ping")]).toEqual([headers, 403]);
  }
  for (const host of ["localhost", "LOCALHOST", "127.0.0.1", "[::1]"])
    expect(await statusFor({ Host: `${host}:${port}` })).toBe(200);
  for (const site of ["none", "same-origin"]) expect(await statusFor({ "Sec-Fetch-Site": site })).toBe(200);
});

test("a statement ends with the client that asked for it, and then the next has its turn", async () => {
  const endless = [
    "SELECT max(cityHash64(number)) FROM numbers(1000000000000)",
    "SELECT number FROM numbers(1000000000000)",
  ];
  for (const sql of [...endless, "SELECT (SELECT max(cityHash64(number)) FROM numbers(1000000000000))", ...endless]) {
    const gone = new AbortController();
    const asking = fetch(face.url, { method: "POST", body: sql, headers: auth, signal: gone.signal });
    asking.catch(() => undefined);
    await eventually("it runs", async () => (await running()) > 0);
    gone.abort();
    await eventually("it is over", async () => (await running()) === 0);
  }
  expect(await queryValue("SELECT 1")).toBe("1");
}, 90_000);

/** Analysts' statements that the engine runs, as the API's connection sees them. */
async function running() {
  const result = await chdb.reader.query({
    query: "SELECT count() AS rows FROM system.processes WHERE user = 'analyst'",
    format: "JSONEachRow",
  });
  const [row] = await result.json<{ rows: number }>();
  return Number(row?.rows);
}

test("the recorder writes and the API reads while analysts keep every turn busy", async () => {
  const gone = new AbortController();
  const body = "SELECT max(cityHash64(number)) FROM numbers(1000000000000)";
  const busy = Array.from({ length: 8 }, () =>
    fetch(face.url, { method: "POST", body, headers: auth, signal: gone.signal }).catch(() => null),
  );
  await eventually("one runs", async () => (await running()) > 0);
  for (let n = 0; n < 5; n += 1) await write(`INSERT INTO waybill.t VALUES (${2_000_000 + n}, 'late')`);
  const result = await chdb.reader.query({
    query: "SELECT count() AS n FROM waybill.t WHERE a >= 2000000",
    format: "JSONEachRow",
  });
  expect(await result.json<unknown>()).toEqual([{ n: 5 }]);
  gone.abort();
  await Promise.all(busy);
}, 90_000);

test("a stop ends running statements, and is safe to repeat", async () => {
  const body = "SELECT max(cityHash64(number)) FROM numbers(1000000000000)";
  const asked = Array.from({ length: 4 }, () =>
    fetch(face.url, { method: "POST", body, headers: auth }).then(
      ({ status }) => status,
      () => "cut off",
    ),
  );
  await eventually("one runs", async () => (await running()) > 0);
  await Promise.all([face.stop(), face.stop()]);
  await eventually("all are over", async () => (await running()) === 0);
  expect((await Promise.all(asked)).filter((one) => one === 200)).toEqual([]);
}, 90_000);
