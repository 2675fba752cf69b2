import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { ConfigurationError } from "../domain/errors.ts";
import { hasCode } from "../domain/has-code.ts";

/**
 * The same, parsed. What `parse` answers null for, and what it throws at, is refused.
 *
 * @throws ConfigurationError that names the file.
 */
export function generatedAs<T>(file: string, generate: () => string, parse: (text: string) => T | null): T {
  const text = generatedSecret(file, generate);
  let parsed: T | null = null;
  try {
    parsed = parse(text);
  } catch {
    // A library refuses it.
  }
  if (parsed !== null) return parsed;
  throw new ConfigurationError(`${file} is damaged: remove it, and it is made anew`);
}

/**
 * The secret kept in `file`. If there is none yet, `generate` makes it, and it is written to disk with mode 0600. Processes
 * that start at the same time get the same secret: the file appears complete or not at all, and the first process wins.
 */
export function generatedSecret(file: string, generate: () => string): string {
  const kept = read(file);
  if (kept !== null) return kept;
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${process.pid}.${crypto.randomUUID()}`;
  try {
    write(draft, `${generate()}\n`);
    // Unlike a rename, a link never replaces a file that another process has created meanwhile.
    linkSync(draft, file);
  } catch (error) {
    if (!hasCode(error, "EEXIST")) throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  return readFileSync(file, "utf8").trim();
}

function read(file: string): string | null {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    if (hasCode(error, "ENOENT")) return null;
    throw error;
  }
}

function write(file: string, text: string): void {
  const descriptor = openSync(file, "wx", 0o600);
  try {
    writeSync(descriptor, text);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
