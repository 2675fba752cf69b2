import { dlopen, ptr } from "bun:ffi";
import { closeSync, existsSync, openSync, statSync } from "node:fs";

export interface Confinement {
  /** Folders with all rights. */
  readonly writable: readonly string[];
  /** Files and folders that may be read and executed; missing ones are skipped. */
  readonly readable: readonly string[];
  /** The only TCP port to listen on. No outgoing connections. Linux supports this from 6.7 on. */
  readonly port: number;
}

/** Version 2, of Linux 5.19, is the first that allows renames between folders. */
const VERSION_MIN = 2;
/** The versions that added these rights. */
const VERSION_OF = { truncate: 3, net: 4, ioctl: 5, scope: 6 } as const;
/** System calls, with the same numbers on every architecture. */
const [CREATE_RULESET, ADD_RULE, RESTRICT_SELF] = [444, 445, 446] as const;
const JUST_VERSION = 1;
const [RULE_PATH, RULE_PORT] = [1, 2] as const;
const PR_SET_NO_NEW_PRIVS = 38;

const RIGHT = { execute: 1n << 0n, writeFile: 1n << 1n, readFile: 1n << 2n, readDir: 1n << 3n } as const;
/** All rights of version 2, from executing a file to moving it to another folder. */
const ALL_RIGHTS = (1n << 14n) - 1n;
const [TRUNCATE, IOCTL] = [1n << 14n, 1n << 15n] as const;
const [BIND, CONNECT] = [1n, 2n] as const;
/** Other processes' abstract sockets, and signals to them. */
const ALL_SCOPES = 3n;

/**
 * Gives up all other rights to files, ports and processes, for the calling thread and the threads that it starts from
 * then on, through Linux's Landlock (https://docs.kernel.org/userspace-api/landlock.html). Returns false, without any
 * change, if the kernel does not support it. Throws if it fails midway.
 */
export function confine({ writable, readable, port }: Confinement): boolean {
  if (process.platform !== "linux") return false;
  const { symbols, close } = dlopen("libc.so.6", {
    syscall: { args: ["i64", "u64", "u64", "u64", "u64"], returns: "i64" },
    prctl: { args: ["i32", "u64", "u64", "u64", "u64"], returns: "i32" },
  });
  const call = (number: number, ...args: readonly [bigint, bigint, bigint, bigint]) => {
    const answer = Number(symbols.syscall(BigInt(number), ...args));
    if (answer < 0) throw new Error(`the system call ${number} of Landlock failed`);
    return BigInt(answer);
  };
  try {
    const version = Number(symbols.syscall(BigInt(CREATE_RULESET), 0n, 0n, BigInt(JUST_VERSION), 0n));
    if (version < VERSION_MIN) return false;
    const has = (what: keyof typeof VERSION_OF) => version >= VERSION_OF[what];
    const handled = ALL_RIGHTS | (has("truncate") ? TRUNCATE : 0n) | (has("ioctl") ? IOCTL : 0n);
    const parts = [handled, ...(has("net") ? [BIND | CONNECT] : []), ...(has("scope") ? [ALL_SCOPES] : [])];
    const attributes = new BigUint64Array(parts);
    const rules = call(CREATE_RULESET, address(attributes), BigInt(attributes.byteLength), 0n, 0n);
    const allow = (path: string, rights: bigint) => {
      const file = openSync(path, "r");
      // A struct without padding: the rights in eight bytes, the file in four.
      const rule = new DataView(new ArrayBuffer(12));
      rule.setBigUint64(0, rights, true);
      rule.setInt32(8, file, true);
      call(ADD_RULE, rules, BigInt(RULE_PATH), address(rule), 0n);
      closeSync(file);
    };
    for (const path of writable) allow(path, handled);
    for (const path of readable.filter((one) => existsSync(one)))
      allow(path, RIGHT.execute | RIGHT.readFile | (statSync(path).isDirectory() ? RIGHT.readDir : 0n));
    if (has("net")) call(ADD_RULE, rules, BigInt(RULE_PORT), address(new BigUint64Array([BIND, BigInt(port)])), 0n);
    // Required for processes without root rights.
    symbols.prctl(PR_SET_NO_NEW_PRIVS, 1n, 0n, 0n, 0n);
    call(RESTRICT_SELF, rules, 0n, 0n, 0n);
    return true;
  } finally {
    close();
  }
}

const address = (bytes: NodeJS.ArrayBufferView) => BigInt(ptr(bytes));
