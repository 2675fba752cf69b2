import { ConfigurationError } from "../domain/errors.ts";

/** Where a listener should be, with the names of the settings that say so. */
export interface ConfiguredAddress {
  readonly host: string;
  /** Null: the host is no setting. */
  readonly hostSetting: string | null;
  readonly port: number;
  readonly portSetting: string;
}

const OF_PORTS: ReadonlySet<unknown> = new Set(["EADDRINUSE", "EACCES"]);
/** Node's listeners have no code for a name without an address. */
const OF_HOSTS: ReadonlySet<unknown> = new Set(["EADDRNOTAVAIL", "EINVAL", "ENOTFOUND", undefined]);

/** Opens a listener. Rejects with `ConfigurationError`, which names the setting at fault, if its address cannot be had. */
export async function openListener<T>(at: ConfiguredAddress, open: () => T | Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const code = "code" in error ? error.code : undefined;
    if (OF_PORTS.has(code)) {
      throw new ConfigurationError(
        `${at.portSetting} is ${at.port}; it should be a port that is free and that this user may take (${error.message})`,
      );
    }
    if (at.hostSetting === null || !OF_HOSTS.has(code)) throw error;
    throw new ConfigurationError(
      `${at.hostSetting} is "${at.host}"; it should be an address of this machine, or a name of one (${error.message})`,
    );
  }
}
