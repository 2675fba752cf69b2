import { cpus, tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { FolderLock } from "../../src/storage/folder-lock.ts";

const POLL_MS = 200;

/** For slow files: one more than the cores, since tests spend much of their time waiting. */
export const LONG_SLOTS = cpus().length + 1;
/** One more than that for short files, which wait more. */
export const MACHINE_SLOTS = LONG_SLOTS + 1;

/**
 * The number of test processes that this machine can run at once, shared by all runs of the tests on it. A run beside
 * others takes longer, and its servers get the CPU as soon as in a run alone: with nine of them at a time on two cores,
 * answers come after seconds, and time limits become meaningless. The kernel holds each slot for its process, so that
 * no run can leave one behind.
 */
export async function withMachineSlot<T>(work: () => Promise<T>): Promise<T> {
  const slot = await freeSlot();
  try {
    return await work();
  } finally {
    slot.release();
  }
}

/** The longest waiter is next: a process that gives a slot back queues again like the others. */
async function freeSlot(): Promise<FolderLock> {
  const folder = join(tmpdir(), `waybill-test-slots-${userInfo().uid}`);
  const turn = await acquireAny([join(folder, "turn")]);
  try {
    return await acquireAny(Array.from({ length: MACHINE_SLOTS }, (_, number) => join(folder, String(number + 1))));
  } finally {
    turn.release();
  }
}

async function acquireAny(folders: readonly string[]): Promise<FolderLock> {
  for (;;) {
    for (const folder of folders) {
      const lock = FolderLock.tryAcquire(folder);
      if (lock !== null) return lock;
    }
    await Bun.sleep(POLL_MS);
  }
}
