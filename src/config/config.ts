import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { ConfigurationError } from "../domain/errors.ts";
import { extractHost, isLoopback } from "../domain/texts/host.ts";
import { generatedSecret } from "./generated-secret.ts";
import type { Setting } from "./setting.ts";
import { SETTINGS } from "./settings.ts";

type ValueOf<S extends Setting<unknown>> =
  | Exclude<ReturnType<S["parse"]>, undefined>
  | (S extends { default: string } | { generated: object } ? never : null)
  | (S extends { generated: { onlyWith: string } } ? null : never);

/** The whole configuration, validated and frozen. Null stands for a setting that is unset and has no default. */
export type Config = { readonly [K in keyof typeof SETTINGS]: ValueOf<(typeof SETTINGS)[K]> };

/** A token of this length cannot be guessed over a network, however long the attack lasts. */
const PUBLIC_TOKEN_CHARS_MIN = 32;

/** The values known before any secret is generated. */
export type GivenConfig = Pick<Config, "home" | "homeOwner" | "redis" | "databaseUrl" | "clickhouseUrl" | "roles">;

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the configuration from the environment. An empty variable counts as unset. Unset secrets are generated and kept in
 * WAYBILL_HOME, but only once everything else is valid and `beforeMaking` has returned.
 *
 * @throws ConfigurationError that names all problems at once.
 */
export function loadConfig(environment: Environment, beforeMaking: (config: GivenConfig) => void = () => {}): Config {
  const reader = new SettingsReader(environment);
  const values: Record<string, unknown> = {};
  const generated = Object.entries<Setting<unknown>>(SETTINGS).filter(([key, setting]) => {
    const isGenerated = setting.generated !== undefined && readText(environment, setting) === null;
    if (!isGenerated) values[key] = reader.read(setting);
    return isGenerated;
  });
  // Every key of SETTINGS that is not generated got its parsed value above; the checks read no other keys.
  reader.problems.push(...(reader.problems.length === 0 ? contradictions(values as Config) : []));
  if (reader.problems.length === 0) {
    beforeMaking(values as GivenConfig);
    for (const [key, setting] of generated) {
      const { onlyWith } = setting.generated ?? {};
      const isNeeded = onlyWith === undefined || Boolean(values[onlyWith]);
      values[key] = isNeeded ? reader.readGenerated(setting, String(values["home"])) : null;
    }
    // As above; a secret that could not be generated has been reported as a problem, and is empty here.
    reader.problems.push(...weakSecrets(values as Config));
  }
  if (reader.problems.length > 0) throw new ConfigurationError(...reader.problems);
  // By now every key of SETTINGS holds the result of its own `parse`, or null.
  return deepFreeze(withConsequences(values as Config));
}

/** Returns the settings as a table in Markdown, for the documentation. */
export function configTable(): string {
  const settings = Object.values<Setting<unknown>>(SETTINGS);
  const rows = settings.map((setting) => `| \`${setting.name}\` | ${formatDefault(setting)} | ${setting.meaning} |`);
  return ["| name | default | meaning |", "|---|---|---|", ...rows].join("\n");
}

/** Returns the data folder without creating files in it. Its default depends on the working directory. */
export function readHome(environment: Environment): string {
  return resolve(readText(environment, SETTINGS.home) ?? SETTINGS.home.default);
}

/** Returns the data folder that lacks the expected registry. Null: the registry exists, or is on a server. Creates no files. */
export function folderWithoutRegistry(environment: Environment): string | null {
  const home = readHome(environment);
  const isOnServer = readText(environment, SETTINGS.databaseUrl) !== null;
  return isOnServer || existsSync(join(home, "postgres")) ? null : home;
}

/** Whether the folder is configured, rather than derived from the working directory. */
export function isHomeChosen(environment: Environment): boolean {
  return readText(environment, SETTINGS.home) !== null;
}

/** Returns warnings about settings that work but should be changed: behind a proxy, others can reach a loopback address. */
export function doubtsAbout({ host, adminPort, publicUrl, roles, operatorToken }: Config): readonly string[] {
  // No proxy leads strangers to the operators' own listener.
  if (adminPort !== null) return [];
  const publicHost = publicUrl === null ? host : extractHost(new URL(publicUrl));
  if (isLoopback(publicHost) || !roles.includes("api") || operatorToken.length >= PUBLIC_TOKEN_CHARS_MIN) return [];
  return [
    `OPERATOR_TOKEN has ${operatorToken.length} characters, and PUBLIC_URL is an address that others reach: it should ` +
      `have at least ${PUBLIC_TOKEN_CHARS_MIN}`,
  ];
}

/** Reads settings one by one and collects the problems. */
class SettingsReader {
  readonly problems: string[] = [];
  private isHomeRefused = false;

  constructor(private readonly environment: Environment) {}

  read(setting: Setting<unknown>): unknown {
    const given = readText(this.environment, setting);
    const text = given ?? setting.default;
    if (text === null) return null;
    return this.parse(setting, text, given === null ? "unset" : `${setting.secret ? "set" : shown(text)}`);
  }

  readGenerated(setting: Setting<unknown>, home: string): unknown {
    const { generated } = setting;
    if (generated === undefined) return null;
    const file = join(home, generated.file);
    // The order matters: a process that starts at the same time writes the secret before the data.
    if (generated.keepsData && holdsData(home) && !holdsText(file)) {
      this.problems.push(
        `${setting.name} is unset and ${file} is ${existsSync(file) ? "empty" : "gone"}, but that folder holds data that was written with it; ` +
          `restore the file, or set ${setting.name} to what it held`,
      );
      return null;
    }
    try {
      const text = generatedSecret(file, generated.make);
      const isNeeded = generated.keepsData && holdsData(home);
      const remedy = isNeeded ? ": restore the file from a backup" : ": remove the file, and a new one is made";
      return this.parse(setting, text, `read from ${file}`, remedy);
    } catch (error) {
      // One line for the folder, not one for each of its files.
      if (this.isHomeRefused) return null;
      this.isHomeRefused = true;
      this.problems.push(
        `WAYBILL_HOME is ${JSON.stringify(home)}; it should be a folder whose file ${generated.file} can be written and read ` +
          `(${error instanceof Error ? error.message : String(error)})`,
      );
      return null;
    }
  }

  private parse(setting: Setting<unknown>, text: string, holds: string, remedy = ""): unknown {
    const value = setting.parse(text);
    if (value !== undefined) return value;
    this.problems.push(`${setting.name} is ${holds}; it should be ${setting.expected}${remedy}`);
    return null;
  }
}

function holdsText(file: string): boolean {
  return (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

/** Whether the folder holds an embedded store with data that a key has sealed or signed. */
function holdsData(home: string): boolean {
  return ["postgres", "redis"].some((store) => existsSync(join(home, store)));
}

/** Settings that are valid individually but not together. */
function contradictions(config: Config): readonly string[] {
  const problems: string[] = [];
  if (config.providers === "live" && config.smtpUrl === null) {
    problems.push("SMTP_URL is unset; with PROVIDERS=live it should be the MTA that mail is submitted to");
  }
  if (config.roles.includes("maillog") && config.mailLog === null) {
    problems.push("MAIL_LOG is unset; with the role maillog it should be the path of the MTA's log");
  }
  for (const role of ["api", "dispatcher"] as const) {
    const { processes } = config;
    if (processes === null || "total" in processes || processes[role] === 0 || config.roles.includes(role)) continue;
    problems.push(`PROCESSES names the role ${role}; it should be one of ROLES, which are ${config.roles.join(", ")}`);
  }
  if (config.metricsHost !== null && config.metricsPort === null) {
    problems.push("METRICS_PORT is unset; with METRICS_HOST it should be the port that metrics are served at");
  }
  if (config.adminHost !== null && config.adminPort === null) {
    problems.push("ADMIN_PORT is unset; with ADMIN_HOST it should be the port that operators use");
  }
  if (config.adminPort !== null && config.adminPort > 0) {
    const same = (["port", "metricsPort"] as const).find((key) => config[key] === config.adminPort);
    if (same !== undefined)
      problems.push(`ADMIN_PORT is ${config.adminPort}, as is ${SETTINGS[same].name}; it should be another port`);
  }
  if ((config.submissionCertificate === null) !== (config.submissionKey === null)) {
    const missing = config.submissionKey === null ? "SMTP_TLS_KEY" : "SMTP_TLS_CERT";
    problems.push(`${missing} is unset; it should be set together with its counterpart, or both left out`);
  }
  if (config.clickhouseCluster !== null && config.clickhouseUrl === null) {
    problems.push("CLICKHOUSE_URL is unset; with CLICKHOUSE_CLUSTER it should be the address of one of its servers");
  }
  if ((config.whatsappPhoneNumberId === null) !== (config.whatsappAccessToken === null)) {
    const missing = config.whatsappAccessToken === null ? "WHATSAPP_ACCESS_TOKEN" : "WHATSAPP_PHONE_NUMBER_ID";
    problems.push(`${missing} is unset; it should be set together with its counterpart, or both left out`);
  }
  if ((config.googleServiceAccount === null) !== (config.googleIssuerId === null)) {
    const missing = config.googleIssuerId === null ? "GOOGLE_ISSUER_ID" : "GOOGLE_SERVICE_ACCOUNT";
    problems.push(`${missing} is unset; it should be set together with its counterpart, or both left out`);
  }
  if (config.googleCallbackKeysUrl !== null && config.providers === "live") {
    problems.push(
      "GOOGLE_CALLBACK_KEYS_URL is set; with PROVIDERS=live it should be left unset: Google's own keys count",
    );
  }
  const apple = Object.entries({
    APPLE_CERTIFICATE: config.appleCertificate,
    APPLE_PRIVATE_KEY: config.applePrivateKey,
    APPLE_PASS_TYPE_ID: config.applePassTypeId,
    APPLE_TEAM_ID: config.appleTeamId,
  });
  const unset = apple.flatMap(([name, value]) => (value === null ? [name] : []));
  if (unset.length > 0 && unset.length < apple.length) {
    problems.push(
      `${unset.join(", ")}: unset; all of ${apple.map(([name]) => name).join(", ")} should be set, or none`,
    );
  }
  return problems;
}

/** Secrets that suffice only if no other machine can connect. */
function weakSecrets({ host: publicHost, adminHost, adminPort, roles, operatorToken }: Config): readonly string[] {
  const isApart = adminPort !== null;
  const host = isApart ? (adminHost ?? "127.0.0.1") : publicHost;
  const chars = operatorToken?.length ?? PUBLIC_TOKEN_CHARS_MIN;
  if (isLoopback(host) || !roles.includes("api") || chars >= PUBLIC_TOKEN_CHARS_MIN) return [];
  return [
    `OPERATOR_TOKEN has ${chars} characters; with ${isApart ? "ADMIN_HOST" : "HOST"}=${host}, which others can reach, it should have at least ` +
      `${PUBLIC_TOKEN_CHARS_MIN} (openssl rand -base64 32), or be left unset: then one is made`,
  ];
}

/** Defaults for unset settings that follow from other settings. */
function withConsequences(config: Config): Config {
  const { outboundAllow, providers, roles, mailLog } = config;
  return {
    ...config,
    roles: mailLog === null || roles.includes("maillog") ? roles : [...roles, "maillog"],
    outboundAllow: outboundAllow ?? (providers === "sandbox" ? ["127.0.0.0/8", "::1/128"] : []),
  };
}

function readText(environment: Environment, setting: Setting<unknown>): string | null {
  return environment[setting.name]?.trim() || null;
}

/**
 * Returns the value in a form that errors may contain: on one line, shortened, without a URL's user, password and query. A
 * malformed URL can have them in odd places, such as a password with a slash or a key with an @, so this removes too much
 * rather than too little.
 */
function shown(text: string): string {
  const harmless = text
    .replace(new RegExp(`${BEFORE.source}[?#][^]*@[^]*$`), "$1…")
    .replace(new RegExp(`${BEFORE.source}@`), "$1…@")
    .replace(/[?#][^]*/, "?…");
  return JSON.stringify(harmless.length > 100 ? `${harmless.slice(0, 100)}…` : harmless);
}

/** Matches all of a URL after its scheme, or a text without a scheme; a mailbox in brackets has no secret. */
const BEFORE = /^(?:([A-Za-z][\w+.-]*:\/+)[^]*|[^<]*)/;

function formatDefault(setting: Setting<unknown>): string {
  if (setting.generated !== undefined) return `generated, in \`WAYBILL_HOME/${setting.generated.file}\``;
  return setting.default === null ? (setting.unset ?? "none") : `\`${setting.default}\``;
}

function deepFreeze<T>(value: T): T {
  // The bytes of a key cannot be frozen, but they are never written to.
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
  for (const member of Object.values(value)) deepFreeze(member);
  return Object.freeze(value);
}
