import { connect } from "node:net";
import type { Config } from "../config.ts";
import { parseSmtpUrl } from "../core/smtp-url.ts";
import { FolderInUseError, FolderLock } from "../embedded/folder-lock.ts";
import { platformApple } from "../house/apple.ts";
import { hasEmbeddedStore } from "../house/stores.ts";
import { realWhatsappUrl } from "../house/whatsapp.ts";
import { RedisJournal } from "../journal/redis-journal.ts";
import { connectClickHouse } from "../ledger/connect-clickhouse.ts";
import { connectPostgres } from "../registry/connect-postgres.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import { ProcessTelemetry } from "../telemetry/process-telemetry.ts";

const TRY_MS = 5_000;

/** Tries every address of the configuration and says what it found, a line each. */
export async function check(config: Config): Promise<number> {
  console.log("configuration: in order");
  const results = await Promise.all([
    tryOut("Redis", () => tryRedis(config)),
    tryOut("PostgreSQL", () => tryPostgres(config)),
    tryOut("ClickHouse", () => tryClickHouse(config)),
    tryOut("mail server", () => tryMailServer(config)),
    tryOut("WhatsApp", () => tryWhatsapp(config)),
    tryOut("Apple passes", () => tryApple(config)),
    tryOut("data folder", async () => tryFolder(config)),
  ]);
  return results.every((isFine) => isFine) ? 0 : 1;
}

async function tryOut(name: string, attempt: () => Promise<string>): Promise<boolean> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no answer within ${TRY_MS / 1000} s`)), TRY_MS);
  try {
    console.log(`${name}: ${await Promise.race([attempt(), late])}`);
    return true;
  } catch (error) {
    console.log(`${name}: FAILED, ${error instanceof Error ? error.message : String(error)}`);
    return false;
  } finally {
    clearTimeout(timer);
  }
}

async function tryRedis({ redis }: Config): Promise<string> {
  if (redis === null) return `embedded (${Bun.which("redis-server") ?? missing("redis-server")})`;
  const telemetry = new ProcessTelemetry({ level: "silent", isTerminal: false });
  const journal = new RedisJournal({ address: redis, clock: systemClock, random: systemRandom, telemetry });
  try {
    await journal.probe.check();
  } finally {
    await journal.stop();
  }
  return "answers";
}

async function tryPostgres({ databaseUrl }: Config): Promise<string> {
  if (databaseUrl === null) return "embedded (PGlite)";
  await (await connectPostgres(databaseUrl)).close();
  return "answers";
}

async function tryClickHouse({ clickhouseUrl, clickhouseUser, clickhousePassword }: Config): Promise<string> {
  if (clickhouseUrl === null) return "embedded (chDB)";
  const server = connectClickHouse({ url: clickhouseUrl, user: clickhouseUser, password: clickhousePassword ?? "" });
  try {
    const answer = await server.reader.query({ query: "SELECT version()", format: "JSONEachRow" });
    const [row] = await answer.json<{ "version()": string }>();
    return `answers (${row?.["version()"] ?? "unknown version"})`;
  } finally {
    await server.close();
  }
}

async function tryMailServer({ smtpUrl }: Config): Promise<string> {
  if (smtpUrl === null) return "sandbox";
  const server = parseSmtpUrl(smtpUrl);
  if (server === null) throw new Error("SMTP_URL is no address of a mail server");
  return takesConnections({ host: server.host, port: server.port });
}

/** Whether its host is there. Only a message shows whether it takes the credentials. */
async function tryWhatsapp(config: Config): Promise<string> {
  const apiUrl = realWhatsappUrl(config);
  if (apiUrl === null) return "sandbox";
  const { hostname, port, protocol } = new URL(apiUrl);
  const defaultPort = protocol === "https:" ? 443 : 80;
  // An IPv6 address stands in brackets there.
  return takesConnections({ host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || defaultPort) });
}

async function takesConnections(at: { readonly host: string; readonly port: number }): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    const socket = connect(at, () => {
      socket.destroy();
      resolve();
    });
    socket.on("error", reject);
  });
  return "takes connections";
}

/** What the certificate says of itself. Only a push shows whether Apple still takes it. */
async function tryApple(config: Config): Promise<string> {
  if (config.appleCertificate === null)
    return config.providers === "live" ? "tenants' own credentials only" : "sandbox";
  await platformApple(config);
  return "the certificate is in order";
}

function tryFolder(config: Config): string {
  if (!hasEmbeddedStore(config)) return "not used";
  try {
    FolderLock.acquire(config.home).release();
    return config.home;
  } catch (error) {
    // A server that runs is no mistake of the configuration.
    if (error instanceof FolderInUseError) return `${config.home} (in use)`;
    throw error;
  }
}

function missing(program: string): never {
  throw new Error(`${program} is not installed`);
}
