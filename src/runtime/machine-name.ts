import { readFileSync } from "node:fs";
import { hostname } from "node:os";

/**
 * Returns the machine's full name in lower case, as `hostname -f` finds it without a name server: the kernel's name, or
 * the one that `/etc/hosts` lists first beside it. Null if neither has a dot.
 */
export function machineName(name: string = hostname(), hosts: string = hostsFile()): string | null {
  if (isFull(name)) return name.toLowerCase();
  for (const line of hosts.split("\n")) {
    const [, canonical = "", ...aliases] = line.replace(/#.*/, "").trim().split(/\s+/);
    if (aliases.includes(name) && isFull(canonical)) return canonical.toLowerCase();
  }
  return null;
}

/** Whether a name is full (RFC 1123, 2.1). `localhost.localdomain` and similar ones name every machine. */
function isFull(name: string): boolean {
  return (
    /^(?:[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?\.)+[a-z][a-z\d-]{0,62}$/i.test(name) && !/\blocaldomain\d?$/i.test(name)
  );
}

function hostsFile(): string {
  try {
    return readFileSync("/etc/hosts", "utf8");
  } catch {
    // A machine may lack the file; then its name has no completion.
    return "";
  }
}
