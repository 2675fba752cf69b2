import { afterAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PGlite } from "@electric-sql/pglite";
import { onPanic, PrivateNodeFs } from "../../src/storage/postgres/pglite.ts";
import { copyMadePostgres } from "../support/made-home.ts";

const parent = await mkdtemp(join(tmpdir(), "waybill-panic-"));
afterAll(() => rm(parent, { recursive: true, force: true }));

/** The number in WASI. */
const ENOSPC = 51;

interface NodeFiles {
  readonly stream_ops: { write: (...what: readonly unknown[]) => number };
}

/** A disk that can be full. */
class FullDisk extends PrivateNodeFs {
  isFull = false;

  override async init(...args: Parameters<PrivateNodeFs["init"]>): ReturnType<PrivateNodeFs["init"]> {
    const { emscriptenOpts } = await super.init(...args);
    const refuse = ({ NODEFS }: { readonly NODEFS: object }) => {
      const { stream_ops } = NODEFS as NodeFiles;
      const { write } = stream_ops;
      stream_ops.write = (...what) => {
        if (this.isFull) throw Object.assign(new Error("full"), { name: "ErrnoError", errno: ENOSPC });
        return write(...what);
      };
    };
    return { emscriptenOpts: { ...emscriptenOpts, preRun: [...(emscriptenOpts.preRun ?? []), refuse] } };
  }
}

test("a disk that is full at a checkpoint is told at once, before any other statement could hang", async () => {
  const folder = join(parent, "postgres");
  await copyMadePostgres(folder);
  const disk = new FullDisk(folder);
  const client = await PGlite.create({ fs: disk });
  const panics: string[] = [];
  onPanic(client, ({ message }) => panics.push(message));
  await client.exec("create table lines (line text)");
  // An error of the statement itself is not the server's.
  await expect(client.query("select 1 / 0")).rejects.toThrow("division by zero");
  expect(panics).toEqual([]);
  disk.isFull = true;
  await expect(client.exec("checkpoint")).rejects.toThrow();
  expect(panics).toEqual([expect.stringContaining("No space left on device")]);
}, 300_000);
