import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FolderInUseError, FolderLock } from "../../src/storage/folder-lock.ts";

const folders: string[] = [];

function freshFolder(): string {
  const parent = mkdtempSync(join(tmpdir(), "waybill-lock-"));
  folders.push(parent);
  return join(parent, "home");
}

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** Another process that holds the lock until it is killed. */
async function startHolder(folder: string) {
  const holder = Bun.spawn([process.execPath, join(import.meta.dir, "hold-folder-lock.ts"), folder], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const { value } = await holder.stdout.getReader().read();
  expect(new TextDecoder().decode(value)).toBe("held\n");
  return holder;
}

test("a folder that another process holds is refused, with that process's number", async () => {
  const folder = freshFolder();
  const holder = await startHolder(folder);
  try {
    expect(() => FolderLock.acquire(folder)).toThrow(FolderInUseError);
    expect(() => FolderLock.acquire(folder)).toThrow(
      `${folder} is in use by process ${holder.pid}; stop it or set WAYBILL_HOME to another folder`,
    );
  } finally {
    holder.kill("SIGKILL");
    await holder.exited;
  }
});

test("kill -9 of the holder frees the folder", async () => {
  const folder = freshFolder();
  const holder = await startHolder(folder);
  holder.kill("SIGKILL");
  await holder.exited;
  FolderLock.acquire(folder).release();
});

test("the same process cannot take a folder twice, and can take it again once it is released", () => {
  const folder = freshFolder();
  const lock = FolderLock.acquire(folder);
  expect(() => FolderLock.acquire(folder)).toThrow(`in use by process ${process.pid}`);
  expect(() => FolderLock.acquire(folder)).toThrow(FolderInUseError);
  lock.release();
  lock.release();
  FolderLock.acquire(folder).release();
});

test("a refusal inside the holder's own process does not lose its lock to others", async () => {
  const folder = freshFolder();
  const lock = FolderLock.acquire(folder);
  expect(() => FolderLock.acquire(folder)).toThrow(FolderInUseError);
  const other = Bun.spawn([process.execPath, join(import.meta.dir, "hold-folder-lock.ts"), folder], { stderr: "pipe" });
  expect(await new Response(other.stderr).text()).toContain(`in use by process ${process.pid}`);
  expect(await other.exited).toBe(1);
  lock.release();
});

test("a lock file that no process holds blocks nobody, even if it names a living process", () => {
  const folder = freshFolder();
  FolderLock.acquire(folder).release();
  writeFileSync(join(folder, "lock.pid"), "1\n");
  FolderLock.acquire(folder).release();
});

test("the folder is created for its owner alone", () => {
  const folder = freshFolder();
  const lock = FolderLock.acquire(folder);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  lock.release();
});
