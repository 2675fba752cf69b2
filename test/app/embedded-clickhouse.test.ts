import { expect, test } from "bun:test";
import { runBun } from "../support/command.ts";
import { temporaryHome } from "../support/waybill.ts";

test("only who opens the embedded ClickHouse loads its library of half a gigabyte", async () => {
  const mapped = 'console.log(await Bun.file("/proc/self/maps").text())';
  const child = await runBun(["-e", `await import("./src/commands/child.ts"); ${mapped}; process.exit(0)`], {});
  expect(child.output).toContain("bun");
  expect(child.output).not.toContain("chdb");
  const engine = await runBun(["-e", `await import("./src/storage/chdb.ts"); ${mapped}; process.exit(0)`], {});
  expect(engine.output).toContain("chdb");
}, 300_000);

test("where it does not run, a start says what to do instead", async () => {
  const home = await temporaryHome();
  try {
    const { code, errors } = await runBun(["--preload", "./test/app/without-chdb.ts", "src/main.ts"], {
      WAYBILL_HOME: home.path,
      PORT: "0",
      PROCESSES: "1",
    });
    expect(errors).toContain("waybill: the embedded ClickHouse does not run here: set CLICKHOUSE_URL (");
    expect(code).toBe(2);
  } finally {
    await home.remove();
  }
}, 300_000);
