import { existsSync } from "node:fs";
import { constants, copyFile, link, mkdir, readdir, rename } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { hasCode } from "../../domain/has-code.ts";
import { ASIDE, lookAtStored } from "../set-aside.ts";
import { nameDraft } from "../whole-file.ts";
import { forEachName } from "./each-of.ts";
import { unlessMissing } from "./missing.ts";
import { isLeftOut, STAGING } from "./parts.ts";

const PAYLOADS = "payloads";
/**
 * A folder in the staging folder: payloads stored since the links were begun. Stores, also of other processes, link
 * into it while it exists.
 */
const STORED_SINCE = "payloads.since";
const STORED_BEFORE_CUT = "payloads.before-cut";

/**
 * Links to all payloads, for a backup. There may be millions, so they are made before the stores are held.
 *
 * Invariants:
 * P1. A job that was queued by `cut` has its payload in the copy, as it was last stored: payloads from before the links
 *     were begun are linked, and later ones are recorded by their store before the job is queued.
 * P2. While the stores are held, one folder is renamed, however many payloads there are.
 * P3. A payload that was removed while the links were made may be in the copy too. It belongs to a job that has ended
 *     or was never queued: after a restore the sweep removes it, like payloads that a crash has left.
 */
export class PayloadLinks {
  private constructor(private readonly folder: string) {}

  /** Links the payloads of `home` into the staging folder `folder`. */
  static async begin(home: string, folder: string): Promise<PayloadLinks> {
    const [from, to] = [join(home, PAYLOADS), join(folder, PAYLOADS)];
    await mkdir(to, { mode: 0o700 });
    // Before the list is read, so that every payload is in one of the two.
    await mkdir(join(folder, STORED_SINCE), { mode: 0o700 });
    const names = (await namesIn(from)).filter((name) => !isLeftOut(name));
    await forEachName(names, async (found) => {
      const name = found.endsWith(ASIDE) ? found.slice(0, -ASIDE.length) : found;
      await lookAtStored(join(from, name), (path) => linkOrCopy(path, join(to, name)));
    });
    return new PayloadLinks(folder);
  }

  /** Ends recording: payloads stored from now on do not belong to the backup. */
  cut(): Promise<void> {
    return rename(join(this.folder, STORED_SINCE), join(this.folder, STORED_BEFORE_CUT));
  }

  /** After `cut`: moves the recorded payloads to their locations. */
  async finish(): Promise<void> {
    const noted = join(this.folder, STORED_BEFORE_CUT);
    const names = (await namesIn(noted)).filter((name) => !isLeftOut(name));
    await forEachName(names, (name) => rename(join(noted, name), join(this.folder, PAYLOADS, name)));
  }
}

/**
 * Records for a backup in preparation that the payload `path` was stored; has no effect without one. Call it when the
 * file has its name, and before a job that needs it is queued.
 */
export async function noteStored(path: string): Promise<void> {
  const notes = join(dirname(dirname(path)), STAGING, STORED_SINCE);
  if (!existsSync(notes)) return;
  const note = join(notes, basename(path));
  // An earlier record is replaced atomically, so that there is always one. If it is already the same file, the draft
  // stays, and is left out.
  const draft = nameDraft(note);
  const isNoted = await lookAtStored(path, (name) => linkOrCopy(name, draft).then(() => true));
  if (isNoted) await rename(draft, note).catch(unlessMissing);
}

/**
 * Stops stores from recording payloads in the staging folder `folder`: a folder that is still written to cannot be
 * removed.
 */
export async function endNotes(folder: string): Promise<void> {
  await rename(join(folder, STORED_SINCE), join(folder, `${STORED_SINCE}.${crypto.randomUUID()}`)).catch(unlessMissing);
}

/**
 * Links a file, or copies it. File systems allow some ten thousand names per file, and jobs may share one. Payloads
 * never change, so a copy is as good.
 */
async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    // It was set aside, and then found under its own name too.
    if (hasCode(error, "EEXIST")) return;
    if (!hasCode(error, "EMLINK")) throw error;
    await copyFile(from, to, constants.COPYFILE_FICLONE);
  }
}

async function namesIn(folder: string): Promise<readonly string[]> {
  return (await readdir(folder).catch(unlessMissing)) ?? [];
}
