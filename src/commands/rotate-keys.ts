import { openDatabase } from "../app/stores.ts";
import { masterKeyIds } from "../belonging/start-checks.ts";
import type { Config } from "../config/config.ts";
import { FolderLock } from "../storage/folder-lock.ts";
import { requireSchema } from "../storage/postgres/migrate.ts";
import { runningStart } from "../tasks/control-socket.ts";
import { type Rotation, rotateKeys } from "../tasks/rotate-keys.ts";

const EXIT_FAILURE = 1;

/**
 * `waybill rotate-keys`, after MASTER_KEY got a new first key: reseals all secrets of older keys with it, and reports when
 * these can be removed. Safe to repeat, and beside running servers.
 */
export async function rotateAllKeys(config: Config): Promise<number> {
  const rotation = await rotate(config);
  const { resealed, unopened, older, formerKeys } = rotation;
  console.log(`${resealed} secrets were sealed anew.`);
  if (unopened > 0) {
    console.log(
      `${unopened} secrets could not be opened, and stay as they are: put their key behind the first one in MASTER_KEY and run ` +
        "this again, or have those credentials stored anew.",
    );
    return EXIT_FAILURE;
  }
  if (older > 0) {
    console.log(
      `${older} secrets were sealed with an older key meanwhile: a server still has it in front. Run this again.`,
    );
    return EXIT_FAILURE;
  }
  console.log(nextStep(formerKeys));
  return 0;
}

function nextStep(formerKeys: readonly string[]): string {
  if (formerKeys.length === 0) return "MASTER_KEY holds no older key. Nothing is left to do.";
  return [
    `Nothing that is stored needs the older key ${formerKeys.join(", ")} any more: it can be removed from MASTER_KEY.`,
    "Links in messages that were sent under it (unsubscribe, clicks, opens) work only as long as it is there. Readers must be",
    "able to unsubscribe for 30 days at least, so remove it 30 days after the new key came in front, or later.",
  ].join("\n");
}

async function rotate(config: Config): Promise<Rotation> {
  const lock = config.databaseUrl === null ? FolderLock.tryAcquire(config.home) : null;
  if (config.databaseUrl === null && lock === null) {
    const [first = ""] = masterKeyIds(config);
    const answer = await runningStart(config.home).ask("rotate-keys", first, (line) => console.log(String(line)));
    // Our own server answers.
    return answer as unknown as Rotation;
  }
  const database = await openDatabase(config, "leave");
  try {
    await requireSchema(database.db);
    return await rotateKeys(config, database.db, (line) => console.log(line));
  } finally {
    await database.close();
    lock?.release();
  }
}
