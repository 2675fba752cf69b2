import { readFileSync } from "node:fs";
import { shiftDate } from "../support/shift-date.ts";

/**
 * Loaded before the program (`bun --preload`), in each of its processes: its wall clock is ahead of the machine's by
 * the milliseconds in the file SOAK_CLOCK_FILE, by the process's name (`main`, `api-1`, …), and steps when the file
 * changes.
 */
const file = process.env["SOAK_CLOCK_FILE"];
const at = process.argv.indexOf("child");
const name = at === -1 ? "main" : (process.argv[at + 1] ?? "main");
const READ_MS = 500;
let shiftMs = 0;

function read(path: string): void {
  try {
    const shifts: unknown = JSON.parse(readFileSync(path, "utf8"));
    const mine: unknown = typeof shifts === "object" && shifts !== null ? Reflect.get(shifts, name) : 0;
    shiftMs = typeof mine === "number" ? mine : 0;
  } catch {
    // The file is being written: its former content holds.
  }
}

if (file !== undefined) {
  shiftDate(() => shiftMs);
  read(file);
  setInterval(() => read(file), READ_MS).unref();
}
