import { Redis } from "ioredis";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { startRedisChild } from "../../src/storage/redis/redis-child.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";

/** Starts a child on the given folder, writes a key, prints the child's number, and stays until it is killed. */
const folder = process.argv[2] ?? "";
const child = await startRedisChild({ folder, clock: systemClock, telemetry: new QuietTelemetry() });
if (child.address.kind !== "socket") throw new Error("expected a socket");
await new Redis({ path: child.address.path }).set("key", "acknowledged");
process.stdout.write(`${child.pid}\n`);
