import { type Config, type Environment, loadConfig } from "../config/config.ts";
import { makePrivate } from "../storage/private-folder.ts";
import { processTelemetry } from "./process-telemetry.ts";

/** The configuration, with a data folder that only this user can read. Throws `ConfigurationError`. */
export function openConfig(environment: Environment): Config {
  const config = loadConfig(environment);
  if (makePrivate(config.home)) {
    const message = "other users of this machine had rights to the data folder, and have none any more";
    processTelemetry(config).log("warn", message, { folder: config.home });
  }
  return config;
}
