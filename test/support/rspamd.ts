import { existsSync } from "node:fs";
import { chmod, chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "./eventually.ts";
import { freePort } from "./free-port.ts";

const BINARY = "/usr/bin/rspamd";
const RULES = "/usr/share/rspamd/rules/rspamd.lua";

/** An rspamd worker for one test: its default rules, without modules that use the network. */
export interface RspamdServer {
  readonly url: string;
  /** Its log so far. */
  log(): Promise<string>;
  /** Stops it and removes its folder. */
  remove(): Promise<void>;
}

/** Returns why no rspamd can run here, or null. */
export function rspamdMissing(): string | null {
  return existsSync(BINARY) && existsSync(RULES) ? null : `rspamd is not installed (${BINARY})`;
}

export async function createRspamd(): Promise<RspamdServer> {
  const folder = await mkdtemp(join(tmpdir(), "waybill-rspamd-"));
  const isRoot = process.getuid?.() === 0;
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const logFile = join(folder, "rspamd.log");
  await Bun.write(join(folder, "rspamd.conf"), config(folder, port));
  // The default list takes ten seconds to compile.
  await Bun.write(join(folder, "tld.dat"), "com\nnet\norg\ntest\n");
  if (isRoot) await chown(folder, await readId("-u"), await readId("-g"));
  await chmod(folder, 0o755);
  const user = isRoot ? ["-u", "_rspamd", "-g", "_rspamd"] : [];
  const child = Bun.spawn([BINARY, "-f", "-c", join(folder, "rspamd.conf"), ...user], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
  });
  const server: RspamdServer = {
    url,
    log: () => Bun.file(logFile).text(),
    remove: async () => {
      child.kill("SIGTERM");
      const killer = setTimeout(() => child.kill("SIGKILL"), 5_000);
      await child.exited;
      clearTimeout(killer);
      await rm(folder, { recursive: true, force: true });
    },
  };
  try {
    await eventually("rspamd answers a ping", () => isUp(url), 60_000);
  } catch (error) {
    await server.remove();
    throw error;
  }
  return server;
}

async function isUp(url: string): Promise<boolean> {
  const response = await fetch(`${url}/ping`, { signal: AbortSignal.timeout(1_000) }).catch(() => null);
  return response?.ok ?? false;
}

async function readId(flag: "-u" | "-g"): Promise<number> {
  return Number(await Bun.$`id ${flag} _rspamd`.text());
}

function config(folder: string, port: number): string {
  return `
options {
  filters = [];
  dns { nameserver = ["127.0.0.1:1"]; timeout = 0.2s; retransmits = 1; }
  pidfile = "${folder}/rspamd.pid";
  control_socket = "${folder}/rspamd.sock mode=0600";
  tempdir = "${folder}";
  hs_cache_dir = "${folder}";
  url_tld = "${folder}/tld.dat";
  disable_hyperscan = true;
  gtube_patterns = "all";
}
logging { type = "file"; filename = "${folder}/rspamd.log"; level = "notice"; }
worker "normal" { bind_socket = "127.0.0.1:${port}"; count = 1; }
actions { reject = 15; add_header = 6; greylist = 4; }
lua = "${RULES}";
regexp {}
`;
}
