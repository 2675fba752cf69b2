import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { ConfigurationError } from "../domain/errors.ts";
import { hasCode } from "../domain/has-code.ts";

/**
 * The same, parsed. A text for which `parse` returns null or throws is refused.
 *
 * @throws ConfigurationError that names the file.
 */
export function generatedAs<T>(file: string, generate: () => string, parse: (text: string) => T | null): T {
  const text = generatedSecret(file, generate);
  let parsed: T | null = null;
  try {
    parsed = parse(text);
  } catch {
    // A library refused the text.
  }
  if (parsed !== null) return parsed;
  throw new ConfigurationError(`${file} is damaged: remove it, and it is made anew`);
}

/**
 * Returns the secret in `file`. If there is none yet, it is generated and written to disk with mode 0600. Processes that start
 * at the same time get the same secret: the file appears complete or not at all, and the first process wins.
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
