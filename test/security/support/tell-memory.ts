import { heapSize } from "bun:jsc";
import { join } from "node:path";

export const MEMORY_SOCKET = "memory.sock";

/**
 * Loaded before the program (`bun --preload`): answers at the socket in the data folder with the number of bytes that
 * the program references. Garbage does not count, so the figure is the same on a busy machine as on a quiet one.
 */
if (process.env["WAYBILL_HOME"] !== undefined) {
  Bun.serve({
    unix: join(process.env["WAYBILL_HOME"], MEMORY_SOCKET),
    fetch() {
      Bun.gc(true);
      return new Response(String(heapSize()));
    },
  });
}
