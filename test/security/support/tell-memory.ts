import { heapSize } from "bun:jsc";
import { join } from "node:path";

export const MEMORY_SOCKET = "memory.sock";

/**
 * Loaded before the program (`bun --preload`): whoever asks at the socket in the data folder learns how many bytes the process
 * refers to. Garbage does not count, so the figure is the same on a busy machine as on a quiet one.
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
