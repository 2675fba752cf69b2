import type { SoakWorld } from "./soak-world.ts";

export const OPERATOR_TOKEN = "operator-token-of-the-soak";

/** The environment that the program is started with at this moment: keys are rotated. */
export function serviceEnvironment(
  world: Pick<
    SoakWorld,
    "options" | "keys" | "stores" | "mail" | "chat" | "wallet" | "analystsPort" | "smtpPort" | "clockFile"
  >,
  isSide = false,
): Readonly<Record<string, string>> {
  const { options, keys, stores, mail, chat, wallet, analystsPort, smtpPort, clockFile } = world;
  return {
    ...stores.environment(isSide),
    PROCESSES: isSide ? "1" : options.processes,
    MASTER_KEY: keys.masterKeys.join(","),
    WEBHOOK_SECRET: keys.webhookSecrets.join(","),
    OPERATOR_TOKEN,
    SOAK_CLOCK_FILE: clockFile,
    SMTP_URL: mail.url,
    WHATSAPP_API_URL: chat.url,
    ...wallet.environment,
    ...(isSide
      ? { ROLES: "dispatcher" }
      : {
          ROLES: "api,dispatcher,recorder,smtp",
          SMTP_PORT: String(smtpPort),
          MAIL_LOG: mail.logFile,
          CLICKHOUSE_HTTP_PORT: String(analystsPort),
        }),
  };
}
