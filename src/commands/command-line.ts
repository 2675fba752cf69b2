import { type Config, type Environment, folderWithoutRegistry, isHomeChosen, loadConfig } from "../config/config.ts";
import { ConfigurationError } from "../domain/errors.ts";
import { ProcessTelemetry } from "../runtime/telemetry/process-telemetry.ts";
import { makePrivate, requireOwnFolder } from "../storage/private-folder.ts";
import { requireRoom } from "../storage/room-on-disk.ts";

/** Logs and metrics of this process, in a form that suits standard error. `name` tells apart the processes of one start. */
export function processTelemetry({ logLevel }: Config, name?: string): ProcessTelemetry {
  const named = name === undefined ? {} : { process: name };
  return new ProcessTelemetry({ level: logLevel, isTerminal: process.stderr.isTTY === true, ...named });
}

/** Returns the command line that runs a command here: by the npm package, or in a checkout. */
export function called(words = ""): string {
  if (import.meta.dir.includes("/node_modules/")) return `npx waybill ${words}`.trim();
  return words === "" ? "npm start" : `npm start -- ${words}`;
}

/** A command line that does not name a valid action. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/**
 * The same for a command that changes a registry, which must exist: a second one must not appear in whatever the working
 * directory is. A command that can come first (`mayBegin`) creates one in a folder that `WAYBILL_HOME` names, and reports it.
 */
export function openConfigOfRegistry(environment: Environment, { mayBegin }: { readonly mayBegin: boolean }): Config {
  const folder = folderWithoutRegistry(environment);
  if (folder === null) return openConfig(environment);
  if (mayBegin && isHomeChosen(environment)) {
    console.error(`there was no Waybill in ${folder}: its data folder is made now`);
    return openConfig(environment, { writes: true });
  }
  throw new ConfigurationError(
    `there is no Waybill in ${folder}: run this where the server was started, set WAYBILL_HOME to the data folder that its ` +
      "first screen names, or set DATABASE_URL as it has it; a new one is made by its first start",
  );
}

/**
 * Loads the configuration, with a data folder that this user owns and only they can read. `writes`: for a command that creates
 * or migrates stores, whose disk must have enough space. Throws `ConfigurationError` before any file is created.
 */
export function openConfig(environment: Environment, { writes = false } = {}): Config {
  const config = loadConfig(environment, ({ home, homeOwner, redis, databaseUrl, clickhouseUrl, roles }) => {
    if (homeOwner === "self") requireOwnFolder(home);
    if (!writes) return;
    const eventStore = clickhouseUrl === null && roles.some((role) => role !== "dispatcher");
    requireRoom(home, { queue: redis === null, registry: databaseUrl === null, eventStore });
  });
  if (makePrivate(config.home)) {
    const message = "other users of this machine had rights to the data folder, and have none any more";
    processTelemetry(config).log("warn", message, { folder: config.home });
  }
  return config;
}
