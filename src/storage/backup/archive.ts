import { createHash, type Hash } from "node:crypto";
import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createZstdCompress, createZstdDecompress } from "node:zlib";
import { extract, type Pack, pack } from "tar-stream";
import { hasCode } from "../../domain/has-code.ts";
import { allOnDisk, onDisk } from "../on-disk.ts";
import { type Entry, findPart, PARTS, type Part } from "./parts.ts";

/** The layout of backup files. A reader refuses unknown layouts. */
const BACKUP_FORMAT = 1;
const MANIFEST = "manifest.json";
/** A manifest has a few hundred bytes. */
const MANIFEST_BYTES_MAX = 64 * 1024;

/** The description of a backup within the backup itself. */
export interface Manifest extends BackupFacts {
  readonly format: typeof BACKUP_FORMAT;
  readonly parts: Readonly<Record<Part, PartSums>>;
}

export interface BackupFacts {
  /** The version of the program that took it. */
  readonly version: string;
  /** When it was begun, ISO 8601. */
  readonly takenAt: string;
  /** The point in time that it captures, in Unix milliseconds. */
  readonly cutMs: number;
  readonly wasRunning: boolean;
}

/** `sha256` covers the path, the size and the content of each of the part's entries in order. */
export interface PartSums {
  readonly files: number;
  readonly bytes: number;
  readonly sha256: string;
}

/** Callbacks while a backup is written. */
export interface BackupProgress {
  onPart(part: Part, sums: PartSums): void;
  /** The copied files are no longer needed. */
  onWritten?(): void;
}

/** The backup is damaged or incomplete, or the file is not a backup. */
export class BackupError extends Error {
  override readonly name = "BackupError";
}

/**
 * Writes a backup: a tar file, compressed with zstd, with the manifest as its last entry. It appears under its name
 * only when it is complete, on disk, read back and compared; until then it has a temporary name beside it, and a former
 * file of that name stays. Mode 0600.
 */
export async function writeBackup(
  file: string,
  entries: AsyncIterable<Entry>,
  facts: BackupFacts,
  { onPart, onWritten }: BackupProgress,
): Promise<Manifest> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const unfinished = `${file}.${crypto.randomUUID()}.unfinished`;
  try {
    const packing = pack();
    const output = createWriteStream(unfinished, { mode: 0o600, flags: "wx" });
    const writing = pipeline(Readable.from(packing), createZstdCompress(), output);
    const filling = fill(packing, entries, facts, onPart).catch((error: unknown) => {
      packing.destroy(error instanceof Error ? error : new Error(String(error)));
      throw error;
    });
    // The first of the two to fail determines the error.
    const [manifest] = await Promise.all([filling, writing]);
    await onDisk(unfinished);
    onWritten?.();
    await verifyBackup(unfinished, `what was written for ${file}`);
    await rename(unfinished, file);
    await onDisk(dirname(file));
    return manifest;
  } catch (error) {
    await rm(unfinished, { force: true });
    if (error instanceof BackupError || !(error instanceof Error && "code" in error)) throw error;
    throw new BackupError(`the backup ${file} could not be written, and nothing of it is left: ${error.message}`);
  }
}

async function fill(
  packing: Pack,
  entries: AsyncIterable<Entry>,
  facts: BackupFacts,
  onPart: (part: Part, sums: PartSums) => void,
): Promise<Manifest> {
  const counts = new Counts();
  for await (const { path, file, bytes } of entries) {
    counts.begin(path, bytes);
    if (bytes === null) {
      await added((done) => packing.entry({ name: `${path}/`, type: "directory", mode: 0o700 }, done));
      continue;
    }
    await added((done) => {
      const entry = packing.entry({ name: path, size: bytes, mode: 0o600 }, done);
      // `done` has the error; without a listener the stream would throw it beside.
      entry.on("error", () => {});
      if (bytes === 0) entry.end();
      else
        copyInto(entry, file, bytes, (chunk) => counts.add(path, chunk)).catch((error: Error) => entry.destroy(error));
    });
  }
  const parts = counts.sums();
  for (const part of PARTS) onPart(part, parts[part]);
  const manifest: Manifest = { format: BACKUP_FORMAT, ...facts, parts };
  const text = `${JSON.stringify(manifest, null, 2)}\n`;
  await added((done) => packing.entry({ name: MANIFEST, mode: 0o600 }, text, done));
  packing.finalize();
  return manifest;
}

function added(add: (done: (error?: Error | null) => void) => unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    add((error) => (error ? reject(error) : resolve()));
  });
}

async function copyInto(entry: Writable, file: string, bytes: number, onChunk: (chunk: Buffer) => void): Promise<void> {
  let copied = 0;
  // Without an encoding it yields buffers.
  const chunks: AsyncIterable<Buffer> = createReadStream(file, { end: bytes - 1, highWaterMark: 1 << 20 });
  for await (const chunk of chunks) {
    onChunk(chunk);
    copied += chunk.length;
    if (!entry.write(chunk)) await once(entry, "drain");
  }
  if (copied !== bytes) throw new BackupError(`${file} became shorter while it was read`);
  entry.end();
}

/**
 * Reads a backup to its end and compares all sums. Rejects with `BackupError`, which calls the file `shown`, if
 * anything is missing or differs.
 */
export async function verifyBackup(file: string, shown = file): Promise<Manifest> {
  const take: Take = async (_path, content) => {
    for await (const _ of content) continue;
  };
  return read(file, take, shown);
}

/** Writes the contents of a backup into the folder, which must be new. Compares all sums as well. */
export async function extractBackup(file: string, folder: string): Promise<Manifest> {
  await mkdir(folder, { mode: 0o700 });
  const written = [folder];
  const manifest = await read(file, async (path, content, isFolder) => {
    const target = join(folder, path);
    written.push(target);
    if (isFolder) await mkdir(target, { mode: 0o700 });
    else await pipeline(content, createWriteStream(target, { mode: 0o600, flags: "wx" }));
  });
  // All together at the end: most of them are on the disk by then.
  await allOnDisk(written);
  return manifest;
}

type Take = (path: string, content: AsyncIterable<Uint8Array>, isFolder: boolean) => Promise<void>;

async function read(file: string, take: Take, shown = file): Promise<Manifest> {
  const counts = new Counts();
  const untar = extract();
  const input = createReadStream(file);
  const unpacking = pipeline(input, createZstdDecompress(), untar);
  // The loop below sees the same failure.
  unpacking.catch((error: unknown) => untar.destroy(error instanceof Error ? error : new Error(String(error))));
  let manifest: Manifest | null = null;
  try {
    for await (const entry of untar) {
      const { name, type, size = 0 } = entry.header;
      if (manifest !== null) throw new BackupError("something follows its manifest");
      if (name === MANIFEST) {
        manifest = parseManifest(await readText(entry, size));
        continue;
      }
      const isFolder = type === "directory";
      const path = isFolder ? name.replace(/\/$/, "") : name;
      requireSafe(path, type);
      counts.begin(path, isFolder ? null : size);
      await take(
        path,
        counted(entry, (chunk) => counts.add(path, chunk)),
        isFolder,
      );
    }
    await unpacking;
  } catch (error) {
    if (
      error instanceof BackupError ||
      hasCode(error, "ENOENT") ||
      hasCode(error, "EACCES") ||
      hasCode(error, "ENOSPC")
    )
      throw error;
    throw new BackupError(
      `${shown} is damaged or no backup: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  if (manifest === null) throw new BackupError(`${shown} is incomplete: it ends before its manifest`);
  requireSame(counts.sums(), manifest.parts);
  return manifest;
}

async function* counted(content: AsyncIterable<Buffer>, onChunk: (chunk: Buffer) => void): AsyncGenerator<Buffer> {
  for await (const chunk of content) {
    onChunk(chunk);
    yield chunk;
  }
}

async function readText(content: AsyncIterable<Buffer>, size: number): Promise<string> {
  if (size > MANIFEST_BYTES_MAX) throw new BackupError("its manifest is too large");
  const chunks: Buffer[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

function parseManifest(text: string): Manifest {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new BackupError("its manifest is no JSON");
  }
  const format = typeof value === "object" && value !== null && "format" in value ? value.format : null;
  if (format !== BACKUP_FORMAT) {
    throw new BackupError(`its manifest has format ${String(format)}; this version of Waybill reads ${BACKUP_FORMAT}`);
  }
  // It has this format, so it was written by `fill`; its sums are compared with the content.
  return value as Manifest;
}

/** Refuses entries outside the folder: paths that leave it, and links. */
function requireSafe(path: string, type: string | null | undefined): void {
  const isKnown = type === "file" || type === "directory";
  const isInside = path !== "" && path.split("/").every((name) => name !== "" && name !== "." && name !== "..");
  if (!isKnown || !isInside || path.includes("\0") || findPart(path) === null) {
    throw new BackupError(`it holds "${path}", which is no part of a data folder`);
  }
}

function requireSame(found: Manifest["parts"], said: Partial<Manifest["parts"]> | undefined): void {
  const damaged = PARTS.filter((part) => found[part].sha256 !== said?.[part]?.sha256);
  if (damaged.length > 0) throw new BackupError(`the sums of its part ${damaged.join(", ")} differ from its manifest`);
}

/** Computes the sums of all parts while their entries pass. */
class Counts {
  private readonly parts = new Map<Part, { files: number; bytes: number; hash: Hash }>(
    PARTS.map((part) => [part, { files: 0, bytes: 0, hash: createHash("sha256") }]),
  );

  begin(path: string, bytes: number | null): void {
    const part = this.of(path);
    part.hash.update(`${path}\0${bytes ?? "folder"}\0`);
    if (bytes === null) return;
    part.files += 1;
    part.bytes += bytes;
  }

  add(path: string, chunk: Uint8Array): void {
    this.of(path).hash.update(chunk);
  }

  /** Call once. */
  sums(): Manifest["parts"] {
    const of = (part: Part): PartSums => {
      const { files, bytes, hash } = this.known(part);
      return { files, bytes, sha256: hash.digest("hex") };
    };
    return {
      secrets: of("secrets"),
      queue: of("queue"),
      registry: of("registry"),
      events: of("events"),
      payloads: of("payloads"),
    };
  }

  private of(path: string) {
    return this.known(findPart(path) ?? "secrets");
  }

  private known(part: Part) {
    const found = this.parts.get(part);
    if (found === undefined) throw new Error(`there is no part ${part}`);
    return found;
  }
}
