import { constants } from "node:fs";
import { access } from "node:fs/promises";
import type { Config } from "../../../config/config.ts";
import { parseSmtpUrl } from "../../../domain/channels/smtp-url.ts";
import type { AppChannel } from "../../contract.ts";
import { resolveNameServers } from "./name-servers.ts";

/** The mail server in use. */
export const emailChecks: NonNullable<AppChannel["checks"]> = (config, reach) => ({
  "mail server": async () => reach(config.smtpUrl === null ? null : describeMailServer(config.smtpUrl)),
  "spam filter": async () => {
    const { spamFilter } = config;
    return spamFilter === "off" || spamFilter === "builtin" ? spamFilter : reach(spamFilter);
  },
  "mail log": () => tryMailLog(config),
  "name servers": async () => (await resolveNameServers(config)).join(", "),
});

function describeMailServer(smtpUrl: string) {
  const server = parseSmtpUrl(smtpUrl);
  if (server === null) throw new Error("SMTP_URL is no address of a mail server");
  return server;
}

async function tryMailLog({ mailLog }: Config): Promise<string> {
  if (mailLog === null) return "not followed";
  await access(mailLog, constants.R_OK);
  return `${mailLog} can be read`;
}
