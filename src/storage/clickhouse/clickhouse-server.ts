import { dlopen, ptr } from "bun:ffi";
import { setPriority } from "node:os";
import { confine } from "./landlock.ts";

/*
 * bun clickhouse-server.ts LIBRARY CONFIG FOLDER PORT: serves the engine of chDB's library over HTTP until its standard
 * input ends, so that it ends with its parent. The library's only call returns at that point.
 */

/** Deliveries and the API come first: recording can wait. */
const NICENESS = 2;
/** Files from which the engine and the C library read about the process itself. */
const ABOUT_ITSELF = ["/proc/self/maps", "/proc/self/statm"];

const [library = "", config = "", folder = "", port = ""] = process.argv.slice(2);
try {
  setPriority(NICENESS);
} catch {
  // A filter of system calls may forbid it, as systemd's does.
}
const { symbols } = dlopen(library, { chdb_query_cmdline: { args: ["i32", "ptr"], returns: "ptr" } });
// Before the library is called, whose threads inherit it.
const isConfined = confine({ writable: [folder], readable: ABOUT_ITSELF, port: Number(port) });
if (!isConfined) process.stderr.write("this kernel has no Landlock\n");

const statements = "SYSTEM START LISTEN HTTP; SELECT count() FROM file('stdin', 'LineAsString') FORMAT Null";
const words = ["clickhouse", `--config-file=${config}`, `--query=${statements}`].map((word) =>
  Buffer.from(`${word}\0`),
);
const list = new BigUint64Array([...words.map((word) => BigInt(ptr(word))), 0n]);
// It logs the reason of a failure itself.
symbols.chdb_query_cmdline(words.length, ptr(list));
process.exit(0);
