import type { Config } from "./config.ts";
import { hostName } from "./values.ts";

/** The domain of `MAIL_FROM`. */
export function senderDomainOf({ mailFrom: { address } }: Pick<Config, "mailFrom">): string {
  const domain = address.slice(address.lastIndexOf("@") + 1);
  return (URL.parse(`http://${domain}`)?.hostname ?? domain).toLowerCase();
}

/** `MAIL_HOST`; if unset, the host of the public URL, provided it is a name. */
export function mailHostOf(config: Pick<Config, "mailHost" | "publicUrl" | "mailFrom">): string {
  const { mailHost, publicUrl } = config;
  const publicHost = publicUrl === null ? undefined : hostName(new URL(publicUrl).hostname);
  return mailHost ?? publicHost ?? senderDomainOf(config);
}
