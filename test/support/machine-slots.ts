import { cpus, tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { FolderLock } from "../../src/storage/folder-lock.ts";

const POLL_MS = 200;

/** One more than the cores: tests spend much of their time waiting. */
export const MACHINE_SLOTS = cpus().length + 1;

/**
 * What this machine can do at once, shared by all runs of the tests on it. A run beside others takes longer, and its servers come
 * to their turn as soon as in a run alone: with nine of them at a time on two cores, answers come after seconds, and time limits
 * say nothing any more. The kernel holds each slot for its process, so that no run can leave one behind.
 */
export async function withMachineSlot<T>(work: () => Promise<T>): Promise<T> {
  const slot = await freeSlot();
  try {
    return await work();
  } finally {
    slot.release();
  }
}

async function freeSlot(): Promise<FolderLock> {
  const folder = join(tmpdir(), `waybill-test-slots-${userInfo().uid}`);
  for (;;) {
    for (let number = 1; number <= MACHINE_SLOTS; number += 1) {
      const slot = FolderLock.tryAcquire(join(folder, String(number)));
      if (slot !== null) return slot;
    }
    await Bun.sleep(POLL_MS);
  }
}
