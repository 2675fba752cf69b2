import { shiftDate } from "./shift-date.ts";

/**
 * Loaded before a program (`bun --preload`): sets its wall clock SHIFT_CLOCK_MS ahead of the machine's, or behind it.
 */
const shiftMs = Number(process.env["SHIFT_CLOCK_MS"] ?? 0);
shiftDate(() => shiftMs);
