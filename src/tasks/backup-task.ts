import type { MainStores } from "../app/open-stores.ts";
import type { Config } from "../config/config.ts";
import { UnavailableError } from "../domain/errors.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { removeStaging, takeCut } from "../storage/backup/running-cut.ts";
import type { ControlTask } from "./control-socket.ts";

/** A copy of the data folder that the running start has prepared. */
export interface PreparedCut {
  readonly folder: string;
  readonly cutMs: number;
  readonly heldMs: number;
  readonly lengths: readonly (readonly [string, number])[];
}

export const NOT_EMBEDDED =
  "backups are taken of the embedded stores, and one of these is a server: docs/backup.md tells how servers are backed up";

/**
 * Prepares a backup for a command, which reads the copy and writes the file with its own rights: this process only writes
 * inside its data folder. The copy stays until the command ends, however it does.
 */
export function backupTask(config: Config, { embedded, redis }: Pick<MainStores, "embedded" | "redis">): ControlTask {
  let isBusy = false;
  return async (_input, say, gone) => {
    if (embedded === null || redis.kind === "cluster") throw new UnavailableError(NOT_EMBEDDED);
    if (isBusy) throw new UnavailableError("another backup is being taken; try again when it has finished");
    isBusy = true;
    try {
      const { home, clickhouseDatabase: database } = config;
      const { folder, cutMs, heldMs, lengths } = await takeCut({
        home,
        database,
        redis,
        clock: systemClock,
        ...embedded,
      });
      const prepared = { folder, cutMs, heldMs, lengths: [...lengths] };
      if (!gone.aborted) {
        say(prepared);
        await new Promise<void>((resolve) => gone.addEventListener("abort", () => resolve(), { once: true }));
      }
      return null;
    } finally {
      await removeStaging(config.home);
      isBusy = false;
    }
  };
}
