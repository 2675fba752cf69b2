import { afterAll, expect, test } from "bun:test";
import { chmod, mkdir, mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { UnavailableError } from "../../src/domain/errors.ts";
import { PayloadFiles } from "../../src/storage/payload-files.ts";
import { payloadConformance } from "../support/payload-conformance.ts";

const folder = await mkdtemp(join(tmpdir(), "waybill-payloads-"));
afterAll(() => rm(folder, { recursive: true, force: true }));

payloadConformance("payloads as files", async () => {
  const store = await PayloadFiles.open(join(folder, "conformance"));
  return { store, close: () => store.close() };
});

const REF = { tenantId: "acme", jobId: "019a0000-0000-7000-8000-000000000001" };

test("the next start removes files that a crash left unfinished, and keeps finished ones", async () => {
  const home = join(folder, "crashed");
  const before = await PayloadFiles.open(home);
  await before.put(REF, Buffer.from("whole"));
  await before.close();
  await writeFile(join(home, "019a0000-0000-7000-8000-000000000002.acme.0a.unfinished"), "ha");
  const after = await PayloadFiles.open(home);
  expect(await readdir(home)).toEqual([`${REF.jobId}.acme`]);
  expect(Buffer.from((await after.get(REF)) ?? []).toString()).toBe("whole");
  await after.close();
});

test("what a crash left aside is read, and gets its name back at the next start, unless it was stored anew", async () => {
  const home = join(folder, "aside");
  const before = await PayloadFiles.open(home);
  const path = join(home, `${REF.jobId}.acme`);
  const text = async (store: PayloadFiles) => Buffer.from((await store.get(REF)) ?? []).toString();
  await before.put(REF, Buffer.from("former"));
  await rename(path, `${path}.aside`);
  expect(await text(before)).toBe("former");
  await (await PayloadFiles.open(home)).close();
  expect([await readdir(home), await text(before)]).toEqual([[`${REF.jobId}.acme`], "former"]);
  await rename(path, `${path}.aside`);
  await before.put(REF, Buffer.from("anew"));
  await before.close();
  const after = await PayloadFiles.open(home);
  expect([await readdir(home), await text(after)]).toEqual([[`${REF.jobId}.acme`], "anew"]);
  await after.close();
});

test("a payload gets its name only once it is fully written, and a failed write leaves nothing", async () => {
  const home = join(folder, "full");
  const store = await PayloadFiles.open(home);
  // A folder in its place cannot be overwritten.
  await mkdir(join(home, `${REF.jobId}.acme`, "x"), { recursive: true });
  await expect(store.put(REF, Buffer.from("x"))).rejects.toBeInstanceOf(UnavailableError);
  expect(await readdir(home)).toEqual([`${REF.jobId}.acme`]);
  await store.close();
});

test("who stores the same payload at the same time takes no other's draft away", async () => {
  const home = join(folder, "together");
  const stores = [await PayloadFiles.open(home), await PayloadFiles.join(home)];
  const payload = Buffer.alloc(300_000, "x");
  await Promise.all(Array.from({ length: 20 }, (_, i) => stores[i % 2]?.put(REF, payload)));
  expect(await readdir(home)).toEqual([`${REF.jobId}.acme`]);
  expect(Buffer.from((await stores[0]?.get(REF)) ?? []).equals(payload)).toBe(true);
  for (const store of stores) await store.close();
});

test("others on the machine cannot read them", async () => {
  const home = join(folder, "private");
  await mkdir(home);
  await chmod(home, 0o755);
  const store = await PayloadFiles.open(home);
  await store.put(REF, Buffer.from("x"));
  const { mode } = await Bun.file(join(home, `${REF.jobId}.acme`)).stat();
  expect((mode & 0o077).toString(8)).toBe("0");
  await store.close();
});
