import { afterAll, beforeAll } from "bun:test";
import { startWaybill, temporaryHome, type Waybill } from "./waybill.ts";

const START_MS_MAX = 120_000;

/** One Waybill for all tests of a file, on a fresh data folder (`waybill.home`). `begin` gets it before the first test. */
export function useWaybill(
  begin: (waybill: Waybill) => unknown,
  environment: Readonly<Record<string, string>> = {},
): void {
  let remove = async () => {};
  let running: Waybill | null = null;
  beforeAll(async () => {
    const home = await temporaryHome();
    remove = home.remove;
    running = await startWaybill(home.path, environment);
    await begin(running);
  }, START_MS_MAX);
  afterAll(async () => {
    await running?.kill();
    await remove();
  }, START_MS_MAX);
}
