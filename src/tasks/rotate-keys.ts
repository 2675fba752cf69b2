import { CHANNELS } from "../app/channels.ts";
import { listSealedColumns } from "../app/of-channels.ts";
import { masterKeyIds } from "../belonging/start-checks.ts";
import type { Config } from "../config/config.ts";
import { UnavailableError } from "../domain/errors.ts";
import type { Json } from "../domain/texts/json.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import { type AnyDb, Database } from "../storage/postgres/database.ts";
import { readIdentity } from "../storage/registry-identity.ts";
import { countOlder, resealColumn } from "../storage/sealed-column.ts";
import { Vault } from "../storage/vault.ts";
import type { ControlTask } from "./control-socket.ts";

/** The result of a rotation. */
export interface Rotation {
  readonly resealed: number;
  /** Secrets that do not open with any given key. */
  readonly unopened: number;
  /** Secrets that were sealed with an older key meanwhile. */
  readonly older: number;
  /** Ids of the keys behind the first, which are unused if `unopened` and `older` are 0. */
  readonly formerKeys: readonly string[];
}

/**
 * Seals every stored secret with the first master key that another one sealed. Safe to repeat, and beside running servers.
 * `say` gets a line whenever there is something to tell.
 */
export async function rotateKeys(config: Config, db: AnyDb, say: (line: string) => void): Promise<Rotation> {
  const [first = "", ...formerKeys] = masterKeyIds(config);
  const { masterKey: noted } = await readIdentity(db);
  if (noted !== null && noted !== first) {
    throw new UnavailableError(
      `the servers still seal with key ${noted}: put ${first} in front of MASTER_KEY in every process, restart them, and run ` +
        "this again; nothing was changed",
    );
  }
  const vault = new Vault(config.masterKeys, systemRandom);
  const database = new Database(db, systemClock);
  const columns = listSealedColumns(CHANNELS);
  let [resealed, unopened, older] = [0, 0, 0];
  for (const column of columns) {
    const of = await countOlder(database, vault, column);
    say(`${column.name}: ${of === 0 ? "all sealed" : `${of} to be sealed`} with key ${first}`);
    if (of === 0) continue;
    const result = await resealColumn(database, vault, column, (done) => say(`${column.name}: ${done} of ${of}`));
    resealed += result.resealed;
    unopened += result.unopenedCount;
    for (const reason of result.unopened) say(`NOT OPENED: ${reason}`);
  }
  for (const column of columns) older += await countOlder(database, vault, column);
  return { resealed, unopened, older: Math.max(0, older - unopened), formerKeys };
}

/** The same for a command beside the start that holds the registry. `input`: the first key that the command was given. */
export function rotateKeysTask(config: Config, db: AnyDb): ControlTask {
  return async (input, say) => {
    if (input !== masterKeyIds(config)[0]) {
      throw new UnavailableError(
        "the running server has another first key in MASTER_KEY than this command: restart it with the same MASTER_KEY",
      );
    }
    // Rotations hold only values that JSON has.
    return (await rotateKeys(config, db, say)) as unknown as Json;
  };
}
