import { extractDomain } from "../domain/texts/split-address.ts";
import type { Config } from "./config.ts";
import { hostName } from "./values.ts";

/** The domain of `MAIL_FROM`. */
export function readSenderDomain({ mailFrom: { address } }: Pick<Config, "mailFrom">): string {
  const domain = extractDomain(address);
  return (URL.parse(`http://${domain}`)?.hostname ?? domain).toLowerCase();
}

/** `MAIL_HOST`; if unset, the host of the public URL, provided it is a name. */
export function chooseMailHost(config: Pick<Config, "mailHost" | "publicUrl" | "mailFrom">): string {
  const { mailHost, publicUrl } = config;
  const publicHost = publicUrl === null ? undefined : hostName(new URL(publicUrl).hostname);
  return mailHost ?? publicHost ?? readSenderDomain(config);
}
