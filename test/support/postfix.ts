import { existsSync } from "node:fs";
import { chmod, chown, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "./eventually.ts";
import { freePort } from "./free-port.ts";

/** A Postfix for one test, with the configuration that operators get, on loopback only. */
export interface Postfix {
  /** For SMTP_URL. */
  readonly url: string;
  /** For MAIL_LOG. */
  readonly log: string;
  /** Rotates the log, as operators do. */
  rotateLog(): Promise<void>;
  /** Retries everything in its queue now. */
  flush(): Promise<void>;
  /** Stops it and removes its folder. */
  remove(): Promise<void>;
}

export interface PostfixOptions {
  /** Loopback port that receives all mail to other domains. */
  readonly sinkPort: number;
  /** Replaces settings in main.cf. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Lines that replace the content of slow-domains. */
  readonly slowDomains?: readonly string[];
  /** File that it reads instead of /etc/resolv.conf. */
  readonly resolvConf?: string;
  /** Domain whose mail is piped to `reportMail`, and that program's environment. */
  readonly bounces?: { readonly domain: string; readonly reportsUrl: string; readonly operatorToken: string };
}

const INFRA = join(import.meta.dir, "../../infra/mail");

const WITH_RESOLV_CONF = 'mount --bind "$0" /etc/resolv.conf && exec postfix -c "$1" start';

/** Returns why no Postfix with its own name servers can run here, or null. */
export function ownNameServersMissing(): string | null {
  const missing = postfixMissing();
  if (missing !== null) return missing;
  const { success } = Bun.spawnSync(["unshare", "-m", "mount", "--bind", "/etc/hosts", "/etc/resolv.conf"]);
  return success ? null : "mount namespaces cannot be made here";
}

/** Returns why no Postfix can run here, or null. */
export function postfixMissing(): string | null {
  if (!existsSync("/usr/lib/postfix/sbin/master"))
    return "Postfix is not installed: sh infra/install-debian.sh postfix";
  return process.getuid?.() === 0 ? null : "Postfix can only be started by root";
}

export async function startPostfix(options: PostfixOptions): Promise<Postfix> {
  const root = await mkdtemp(join(tmpdir(), "waybill-postfix-"));
  const [etc, queue, data, logs] = ["etc", "queue", "data", "log"].map((name) => join(root, name));
  if (etc === undefined || queue === undefined || data === undefined || logs === undefined)
    throw new Error("no folder");
  // Its programs run as other users.
  await chmod(root, 0o755);
  for (const folder of [etc, queue, data, logs]) await mkdir(folder, { mode: 0o755 });
  await chown(data, Number(await run(["id", "-u", "postfix"])), 0);
  const port = await freePort();
  const log = join(logs, "maillog");
  await configure({ etc, queue, data, log, port }, options);
  const postfix = (command: string) => run(["postfix", "-c", etc, command]);
  const { resolvConf } = options;
  const start = () =>
    resolvConf === undefined ? postfix("start") : run(["unshare", "-m", "sh", "-c", WITH_RESOLV_CONF, resolvConf, etc]);
  const remove = async () => {
    await postfix("abort").catch(() => undefined);
    await rm(root, { recursive: true, force: true });
  };
  try {
    await start();
    await eventually("Postfix takes connections", () => takesConnections(port), 20_000);
  } catch (error) {
    const said = await readFile(log, "utf8").catch(() => "");
    await remove();
    throw new Error(`Postfix did not start: ${String(error)}\n${said}`);
  }
  return {
    url: `smtp://127.0.0.1:${port}`,
    log,
    rotateLog: async () => {
      await run([join(INFRA, "rotate-log"), etc]);
    },
    flush: async () => {
      await run(["postqueue", "-c", etc, "-f"]);
    },
    remove,
  };
}

interface Places {
  readonly etc: string;
  readonly queue: string;
  readonly data: string;
  readonly log: string;
  readonly port: number;
}

async function configure({ etc, queue, data, log, port }: Places, options: PostfixOptions): Promise<void> {
  const { sinkPort, settings, bounces, slowDomains } = options;
  const main = await readFile(join(INFRA, "main.cf"), "utf8");
  const overrides = {
    myhostname: "mail.waybill.test",
    queue_directory: queue,
    data_directory: data,
    maillog_file: log,
    maillog_file_prefixes: join(log, ".."),
    inet_interfaces: "127.0.0.1",
    inet_protocols: "ipv4",
    smtp_bind_address: "127.0.0.1",
    // No mail leaves the machine, and no name is looked up.
    relayhost: "",
    transport_maps: `regexp:${etc}/slow-domains texthash:${etc}/transport`,
    default_transport: "error:5.4.4 no route in a test",
    smtp_dns_support_level: "disabled",
    smtp_host_lookup: "native",
    smtp_tls_security_level: "none",
    smtp_tls_session_cache_database: "",
    queue_run_delay: "1s",
    minimal_backoff_time: "1s",
    maximal_backoff_time: "2s",
    ...settings,
  };
  await writeFile(join(etc, "main.cf"), withSettings(main, overrides));
  await writeFile(
    join(etc, "transport"),
    `${bounces === undefined ? "" : `${bounces.domain} mail-report:\n`}* smtp:[127.0.0.1]:${sinkPort}\n`,
  );
  for (const table of ["bounce-domains", "machine-recipients", "private-answers"]) {
    await writeFile(join(etc, table), await readFile(join(INFRA, table), "utf8"));
  }
  const slow = slowDomains?.join("\n") ?? (await readFile(join(INFRA, "slow-domains"), "utf8"));
  await writeFile(join(etc, "slow-domains"), `${slow}\n`);
  const master = await readFile(join(INFRA, "master.cf"), "utf8");
  await writeFile(join(etc, "master.cf"), await localServices(master, { etc, port, bounces }));
  // Lists the map types that are loaded from separate files.
  const maps = "/usr/share/postfix/dynamicmaps.cf";
  if (existsSync(maps)) await writeFile(join(etc, "dynamicmaps.cf"), await readFile(maps, "utf8"));
}

function withSettings(main: string, settings: Readonly<Record<string, string>>): string {
  const names = new Set(Object.keys(settings));
  const kept = main.split("\n").filter((line) => !names.has(/^(\S+) =/.exec(line)?.[1] ?? ""));
  return [...kept, ...Object.entries(settings).map(([name, value]) => `${name} = ${value}`), ""].join("\n");
}

async function localServices(
  master: string,
  { etc, port, bounces }: { readonly etc: string; readonly port: number; readonly bounces: PostfixOptions["bounces"] },
): Promise<string> {
  const local = master
    .replace("127.0.0.1:2525 inet", `127.0.0.1:${port} inet`)
    .replace(/^smtp +inet/m, `127.0.0.1:${await freePort()} inet`);
  if (bounces === undefined) return local.replace(/^mail-report [^]*$/m, "");
  const script = join(etc, "report-mail");
  const curl = join(etc, "mail-reports.curl");
  await writeFile(curl, `url = "${bounces.reportsUrl}"\nheader = "Authorization: Bearer ${bounces.operatorToken}"\n`, {
    mode: 0o644,
  });
  const original = await readFile(join(INFRA, "report-mail"), "utf8");
  await writeFile(script, original.replaceAll("/etc/waybill/mail-reports.curl", curl), { mode: 0o755 });
  return local.replace("user=waybill-mail argv=/usr/local/lib/waybill/report-mail", `user=nobody argv=${script}`);
}

function takesConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port }, () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}

async function run(command: string[]): Promise<string> {
  // The servers that it starts keep inherited descriptors open, so a pipe would never end.
  const child = Bun.spawn(command, { cwd: "/", stdin: "ignore", stdout: "pipe", stderr: "ignore" });
  const code = await child.exited;
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}`);
  return command[0] === "id" ? await child.stdout.text() : "";
}
