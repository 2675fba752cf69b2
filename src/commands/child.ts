import { type App, startApp } from "../app/app.ts";
import { CHANNELS } from "../app/channels.ts";
import { BEGIN, type ChildOrder } from "../app/process-calls.ts";
import { openParentLine } from "../processes/child-process.ts";
import { STOP } from "../processes/supervisor.ts";
import { processTelemetry, UsageError } from "./command-line.ts";

/**
 * Runs as a child of the main process, which directs it. Ends on request or on a signal, and at once when the main process is
 * gone: the child uses its stores and holds its port.
 */
export async function child(): Promise<number> {
  const main = openParentLine();
  if (main === null)
    throw new UsageError('"child" is what a start with several processes runs by itself: see PROCESSES');
  main.gone.addEventListener("abort", () => process.exit(1));
  const ended = Promise.withResolvers<number>();
  let house: App | null = null;
  const stop = async (graceMs: number) => {
    await house?.stop(graceMs);
    ended.resolve(0);
  };
  process.on("SIGTERM", () => void stop(0));
  // A terminal's interrupt is for the main process, which ends its children in order.
  process.on("SIGINT", () => undefined);
  main.serve(BEGIN, async (order: ChildOrder) => {
    const { config, version, name } = order;
    const telemetry = processTelemetry(config, name);
    house = await startApp({
      channels: CHANNELS,
      config,
      telemetry,
      version,
      place: { kind: "child", order, calls: main },
    });
    house.broken.catch(() => ended.resolve(1));
  });
  main.serve(STOP, stop);
  return await ended.promise;
}
