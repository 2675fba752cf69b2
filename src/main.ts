#!/usr/bin/env bun
import { parseArgs } from "node:util";
import { version } from "../package.json";
import { adopt } from "./commands/adopt.ts";
import { backup } from "./commands/backup.ts";
import { check } from "./commands/check.ts";
import { child } from "./commands/child.ts";
import { HELP } from "./commands/help.ts";
import { migrate } from "./commands/migrate.ts";
import { openConfig } from "./commands/open-config.ts";
import { createKey, createTenant } from "./commands/operator.ts";
import { restore } from "./commands/restore.ts";
import { serve } from "./commands/serve.ts";
import { UsageError } from "./commands/usage-error.ts";
import { homeOf, withoutEffect } from "./config/config.ts";
import { ApiError, ConfigurationError, isOutage } from "./domain/errors.ts";

const EXIT_FAILURE = 1;
/** Also for a configuration that does not work. */
const EXIT_USAGE = 2;

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
        withoutEffect: withoutEffect(process.env),
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
    case "child":
      return child();
    case "tenant":
      if (action === "create") return createTenant(config(), rest, values);
      break;
    case "key":
      if (action === "create") return createKey(config(), rest);
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
