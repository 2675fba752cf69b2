#!/usr/bin/env bun
import { parseArgs } from "node:util";
import { version } from "../package.json";
import { openConfig, openConfigOfRegistry, UsageError } from "./commands/command-line.ts";
import { readHome } from "./config/config.ts";
import { ConfigurationError, isOutage } from "./domain/errors.ts";
import { saidBy } from "./domain/tenants/said-by.ts";
import { ApiError } from "./http/api-error.ts";

const EXIT_FAILURE = 1;
/** Also for a configuration that does not work. */
const EXIT_USAGE = 2;

const HELP = `Waybill sends e-mail, WhatsApp template messages and wallet passes for many tenants, and keeps an exact
history of every delivery.

  waybill [serve]                   run the roles of this process (default: all of them, with embedded stores)
  waybill check                     check the configuration, try every address in it, and see that the stores fit
  waybill migrate                   bring PostgreSQL, ClickHouse and the queue up to date
  waybill adopt                     after a move, or when a start says that a store was emptied, swapped or is older:
                                    queue, registry, event store and master key of this configuration belong
                                    together from now on (stop every process first)
  waybill backup FILE-OR-FOLDER     write the data folder to one file, also while the server runs (docs/backup.md)
  waybill restore FILE-OR-FOLDER    make the data folder anew from a backup; a folder: from the newest in it
      --queued=send|fail            what becomes of the jobs that were queued when the backup was taken
  waybill doctor [--json]           look at the running system: what needs somebody, and what to do
  waybill rotate-keys               after MASTER_KEY got a new first key: encrypt with it what older keys encrypted
  waybill erase                     take a recipient out of a tenant's queue and history; repeat it while its exit code is 1
      --tenant TENANT  --recipient ADDRESS-OR-NUMBER  --suppress (never send to them again)
  waybill demo-data                 write a month of events that never happened, for tenants "demo-…" of their own
      --seed NUMBER  --per-day MESSAGES  --until DAY  --force (beside real events)
  waybill tenant create NAME        create a tenant
      --id SLUG  --plan PLAN  --channels email,whatsapp,wallet  --allow-custom email,whatsapp,wallet
      --permissions allow_raw_html  --tokens NUMBER
  waybill key create TENANT         create an API key; it is shown once
  waybill --help | --version

"waybill" is "npx waybill" where the npm package is installed, "npm start --" in a checkout.
Configuration comes from the environment; README.md lists it.
Exit codes: 0 done, 1 failure, 2 usage or configuration.`;

/** Runs the command that the arguments name. Returns the exit code. */
async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = parse(args);
  if (values.help === true) return print(HELP);
  if (values.version === true) return print(version);
  const [name = "serve", ...operands] = positionals;
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) throw noSuchCommand(positionals);
  const call = { name, operands, values };
  refuseOptionsOfOthers(call);
  return command(call);
}

interface Call {
  readonly name: string;
  /** The arguments after the command. */
  readonly operands: readonly string[];
  readonly values: ReturnType<typeof parse>["values"];
}

/** Each loads its own module only when it has a valid configuration: loading the whole program takes half a second. */
const COMMANDS: Readonly<Record<string, (call: Call) => Promise<number>>> = {
  async serve(call) {
    const options = {
      config: loadConfig(call, { writes: true }),
      version,
      isTokenGiven: Boolean(process.env["OPERATOR_TOKEN"]?.trim()),
      isPasswordGiven: Boolean(process.env["CLICKHOUSE_HTTP_PASSWORD"]?.trim()),
    };
    return (await import("./commands/serve.ts")).serve(options);
  },
  async check(call) {
    const config = loadConfig(call);
    return (await import("./commands/check.ts")).check(config);
  },
  async migrate(call) {
    const config = loadConfig(call, { writes: true });
    return (await import("./commands/migrate.ts")).migrate(config);
  },
  async adopt(call) {
    const config = loadConfig(call);
    return (await import("./commands/adopt.ts")).adopt(config);
  },
  async backup(call) {
    const target = onlyOperand(call, "the file or folder to write to");
    return (await import("./commands/backup.ts")).backup(config, { home: readHome(process.env), target, version });
  },
  async restore(call) {
    const source = onlyOperand(call, "the backup, or a folder with backups");
    const { queued } = call.values;
    return (await import("./commands/restore.ts")).restore({ source, home: readHome(process.env), queued });
  },
  async "demo-data"(call) {
    refuseOperands(call);
    return (await import("./commands/demo-data.ts")).demoData(config, call.values);
  },
  async doctor(call) {
    const config = loadConfig(call);
    return (await import("./commands/doctor.ts")).doctor(config, { asJson: call.values.json === true });
  },
  async erase(call) {
    refuseOperands(call);
    return (await import("./commands/erase.ts")).erase(config, call.values);
  },
  async "rotate-keys"(call) {
    const config = loadConfig(call);
    return (await import("./commands/rotate-keys.ts")).rotateAllKeys(config);
  },
  async child() {
    return (await import("./commands/child.ts")).child();
  },
  async tenant({ name, operands: [action, ...words], values }) {
    if (action !== "create") throw noSuchCommand([name, action, ...words]);
    const { createTenant } = await import("./commands/operator.ts");
    return createTenant(() => openConfigOfRegistry(process.env, { mayBegin: true }), words, values);
  },
  async key({ name, operands: [action, ...words] }) {
    if (action !== "create") throw noSuchCommand([name, action, ...words]);
    const { createKey } = await import("./commands/operator.ts");
    return createKey(() => openConfigOfRegistry(process.env, { mayBegin: false }), words);
  },
};

/** The options of each command; commands left out have none. */
const OPTIONS: Readonly<Record<string, readonly string[]>> = {
  restore: ["queued"],
  doctor: ["json"],
  erase: ["tenant", "recipient", "suppress"],
  "demo-data": ["seed", "per-day", "until", "force"],
  "tenant create": ["id", "plan", "channels", "allow-custom", "permissions", "tokens"],
};

function config() {
  return openConfig(process.env);
}

/** Loads the configuration for a command without further arguments. */
function loadConfig(call: Call, options?: { readonly writes: boolean }) {
  refuseOperands(call);
  return openConfig(process.env, options);
}

function noSuchCommand(words: readonly (string | undefined)[]): UsageError {
  return new UsageError(`there is no command "${words.filter((word) => word !== undefined).join(" ")}"`);
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        help: { type: "boolean", short: "h" },
        version: { type: "boolean", short: "v" },
        id: { type: "string" },
        plan: { type: "string" },
        channels: { type: "string" },
        "allow-custom": { type: "string" },
        permissions: { type: "string" },
        tokens: { type: "string" },
        queued: { type: "string" },
        json: { type: "boolean" },
        seed: { type: "string" },
        "per-day": { type: "string" },
        until: { type: "string" },
        force: { type: "boolean" },
        tenant: { type: "string" },
        recipient: { type: "string" },
        suppress: { type: "boolean" },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** Refuses options of other commands: a silently ignored option would mislead. */
function refuseOptionsOfOthers({ name, operands: [action], values }: Call): void {
  const command = action !== undefined && (name === "tenant" || name === "key") ? `${name} ${action}` : name;
  const taken = OPTIONS[command] ?? [];
  const other = Object.keys(values).find((option) => !taken.includes(option));
  if (other === undefined) return;
  const takes = taken.length === 0 ? "no options" : taken.map((option) => `--${option}`).join(", ");
  throw new UsageError(`"${command}" takes ${takes}, and was given --${other}`);
}

function refuseOperands({ name, operands }: Call): void {
  if (operands.length > 0)
    throw new UsageError(`"${name}" takes no further words, and was given "${operands.join(" ")}"`);
}

function onlyOperand({ name, operands: [operand, ...others] }: Call, what: string): string {
  if (operand === undefined || others.length > 0) throw new UsageError(`"${name}" takes one word: ${what}`);
  return operand;
}

function print(text: string): number {
  console.log(text);
  return 0;
}

function explain(error: unknown): number {
  if (error instanceof UsageError) {
    console.error(`waybill: ${error.message}\nSee waybill --help.`);
    return EXIT_USAGE;
  }
  if (error instanceof ConfigurationError) {
    for (const problem of error.problems) console.error(`waybill: ${problem}`);
    return EXIT_USAGE;
  }
  console.error(`waybill: ${error instanceof Error && isExpected(error) ? error.message : inFull(error)}`);
  return EXIT_FAILURE;
}

/** Returns whether the message alone is enough for a person. System errors (a full disk, an unknown host) have a code. */
function isExpected(error: Error): boolean {
  if (error instanceof ApiError || isOutage(error)) return true;
  return EXPECTED.has(error.name) || "code" in error;
}

const EXPECTED: ReadonlySet<string> = new Set(["BackupError", "FolderInUseError", "UnopenedStoreError"]);

function inFull(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : saidBy(error);
}

// Set before any file is written: files of this process and its children are for our own user alone.
process.umask(0o077);
process.exit(await run(process.argv.slice(2)).catch(explain));
