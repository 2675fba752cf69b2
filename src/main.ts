#!/usr/bin/env bun
import { parseArgs } from "node:util";
import { version } from "../package.json";
import { adopt } from "./commands/adopt.ts";
import { backup } from "./commands/backup.ts";
import { check } from "./commands/check.ts";
import { child } from "./commands/child.ts";
import { openConfig, openConfigOfRegistry, UsageError } from "./commands/command-line.ts";
import { demoData } from "./commands/demo-data.ts";
import { doctor } from "./commands/doctor.ts";
import { erase } from "./commands/erase.ts";
import { migrate } from "./commands/migrate.ts";
import { createKey, createTenant } from "./commands/operator.ts";
import { restore } from "./commands/restore.ts";
import { rotateAllKeys } from "./commands/rotate-keys.ts";
import { serve } from "./commands/serve.ts";
import { homeOf } from "./config/config.ts";
import { ConfigurationError, isOutage } from "./domain/errors.ts";
import { ApiError } from "./http/api-error.ts";

const EXIT_FAILURE = 1;
/** Also for a configuration that does not work. */
const EXIT_USAGE = 2;

const HELP = `Waybill sends e-mail, WhatsApp template messages and wallet passes for many tenants, and keeps an exact
history of every delivery.

  waybill [serve]                   run the roles of this process (default: all of them, with embedded stores)
  waybill check                     check the configuration, try every address in it, and see that the stores fit
  waybill migrate                   bring PostgreSQL and ClickHouse to the current schema
  waybill adopt                     after a move: the queue in Redis belongs to the registry, the event store and
                                    the master key of this configuration from now on (stop every process first)
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
      --id SLUG  --plan PLAN  --channels email,whatsapp,wallet  --permissions allow_raw_html  --tokens NUMBER
  waybill key create TENANT         create an API key; it is shown once
  waybill --help | --version

"waybill" is "npx waybill" where the npm package is installed, "npm start --" in a checkout.
Configuration comes from the environment; README.md lists it.
Exit codes: 0 done, 1 failure, 2 usage or configuration.`;

/** Runs the command that the arguments name. Answers the exit code. */
async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = parse(args);
  if (values.help === true) return print(HELP);
  if (values.version === true) return print(version);
  const [command = "serve", action, ...rest] = positionals;
  const operands = action === undefined ? [] : [action, ...rest];
  const config = () => openConfig(process.env);
  switch (command) {
    case "serve":
      refuseOperands(command, operands);
      return serve({
        config: config(),
        version,
        isTokenGiven: Boolean(process.env["OPERATOR_TOKEN"]?.trim()),
        isPasswordGiven: Boolean(process.env["CLICKHOUSE_HTTP_PASSWORD"]?.trim()),
      });
    case "check":
      refuseOperands(command, operands);
      return check(config());
    case "migrate":
      refuseOperands(command, operands);
      return migrate(config());
    case "adopt":
      refuseOperands(command, operands);
      return adopt(config());
    case "backup": {
      const target = onlyOperand(command, operands, "the file or folder to write to");
      return backup(config, { home: homeOf(process.env), target, version });
    }
    case "restore": {
      const source = onlyOperand(command, operands, "the backup, or a folder with backups");
      return restore({ source, home: homeOf(process.env), queued: values.queued });
    }
    case "demo-data":
      refuseOperands(command, operands);
      return demoData(config, values);
    case "doctor":
      refuseOperands(command, operands);
      return doctor(config(), { asJson: values.json === true });
    case "erase":
      refuseOperands(command, operands);
      return erase(config, values);
    case "rotate-keys":
      refuseOperands(command, operands);
      return rotateAllKeys(config());
    case "child":
      return child();
    case "tenant":
      if (action === "create")
        return createTenant(() => openConfigOfRegistry(process.env, { mayBegin: true }), rest, values);
      break;
    case "key":
      if (action === "create") return createKey(() => openConfigOfRegistry(process.env, { mayBegin: false }), rest);
      break;
  }
  throw new UsageError(`there is no command "${positionals.join(" ")}"`);
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

function refuseOperands(command: string, operands: readonly string[]): void {
  if (operands.length > 0)
    throw new UsageError(`"${command}" takes no further words, and was given "${operands.join(" ")}"`);
}

function onlyOperand(command: string, operands: readonly string[], what: string): string {
  const [operand, ...others] = operands;
  if (operand === undefined || others.length > 0) throw new UsageError(`"${command}" takes one word: ${what}`);
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

/** Whether the message is all that a person needs. System errors (a port in use, a host that is unknown) have a code. */
function isExpected(error: Error): boolean {
  if (error instanceof ApiError || isOutage(error)) return true;
  return EXPECTED.has(error.name) || "code" in error;
}

const EXPECTED: ReadonlySet<string> = new Set(["BackupError", "FolderInUseError", "RedisChildError"]);

function inFull(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

// Before anything is written: whatever we and our children make is for our own user alone.
process.umask(0o077);
process.exit(await run(process.argv.slice(2)).catch(explain));
