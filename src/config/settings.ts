import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import { parseSmtpUrl } from "../core/smtp-url.ts";
import {
  distinct,
  hostName,
  inRange,
  list,
  MASTER_KEY_BYTES,
  mailbox,
  masterKey,
  matching,
  network,
  oneOf,
  pemText,
  redisAddress,
  serviceAccount,
  socketAddress,
  urlOf,
  webUrl,
  wholeNumber,
} from "./values.ts";

/** One environment variable: its name, what it means, and what its text becomes. */
export interface Setting<T> {
  readonly name: string;
  readonly meaning: string;
  /** Completes "it should be …". */
  readonly expected: string;
  /** The value, or undefined where the text is not as expected. */
  parse(text: string): T | undefined;
  /** Stands in for an unset variable, as text. Null: nothing does. */
  readonly default: string | null;
  /** What the documentation says in place of a default. */
  readonly unset?: string;
  /** Checked already, but what it sets is not built yet. */
  readonly planned?: true;
  /** The value is never shown. */
  readonly secret?: true;
  /** An unset variable is made up once and kept in this file of WAYBILL_HOME. */
  readonly generated?: {
    readonly file: string;
    make(): string;
    /** Stored data is of no use without it: beside data it is never made anew. */
    readonly keepsData?: true;
  };
}

const ROLES = ["api", "dispatcher", "recorder", "maillog"] as const;
const PROVIDERS = ["sandbox", "live"] as const;
const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
const BUILTIN_SPAM_FILTERS = ["off", "builtin"] as const;

const TOKEN_CHARS_MIN = 16;

/** Every setting, by the name that it has in `Config`, in the order of the documentation. */
export const SETTINGS = {
  port: {
    name: "PORT",
    default: "3000",
    meaning: "port of the HTTP listener, which every role has; `0` takes a free one",
    ...wholeNumber(0, 65_535),
  },
  host: {
    name: "HOST",
    default: "127.0.0.1",
    meaning: "address of the HTTP listener",
    expected: "a host name or an IP address",
    parse: (text) => matching(text, /^[A-Za-z0-9._:-]{1,253}$/),
  },
  publicUrl: {
    name: "PUBLIC_URL",
    default: null,
    unset: "`http://HOST:PORT`",
    meaning: "base of tracking, unsubscribe and wallet web-service links",
    ...webUrl("https://send.example.com"),
  },
  roles: {
    name: "ROLES",
    default: "api,dispatcher,recorder",
    meaning: "which roles this process plays; `maillog` is on by itself where `MAIL_LOG` is set",
    expected: `a comma-separated selection of ${ROLES.join(", ")}`,
    parse: (text) => distinct(list(text, (item) => oneOf(item, ROLES))),
  },
  drainGraceMs: {
    name: "DRAIN_GRACE_MS",
    default: "1500",
    meaning:
      "how long a process that is told to end (SIGTERM) still takes requests while `/ready` says `stopping`, so that " +
      "balancers turn away first; only beside a shared Redis (`REDIS_URL`)",
    ...wholeNumber(0, 5_000),
  },
  home: {
    name: "WAYBILL_HOME",
    default: "./.waybill",
    meaning: "data folder of the embedded default, and the secrets that were generated (mode 0600)",
    expected: "the path of a folder",
    parse: (text) => resolve(text),
  },
  redis: {
    name: "REDIS_URL",
    default: null,
    unset: "a private redis-server",
    secret: true,
    meaning: "Redis 7 or later; several URLs, comma-separated, are the seeds of a Redis Cluster",
    expected: "redis://host:6379 or rediss://host:6379, or several of them separated by commas",
    parse: redisAddress,
  },
  redisReplicasAcked: {
    name: "REDIS_REPLICAS_ACKED",
    default: "0",
    meaning:
      "how many replicas of a shared Redis must have a job before it is answered with 202 (docs/redis-cluster.md); a " +
      "master with fewer refuses its tenants' messages",
    ...wholeNumber(0, 5),
  },
  databaseUrl: {
    name: "DATABASE_URL",
    default: null,
    unset: "PGlite in the process",
    secret: true,
    meaning: "PostgreSQL 15 or later",
    expected: "postgres://user:password@host:5432/database",
    parse: (text) => urlOf(text, ["postgres:", "postgresql:"]),
  },
  clickhouseUrl: {
    name: "CLICKHOUSE_URL",
    default: null,
    unset: "chDB in the process",
    secret: true,
    meaning: "ClickHouse's HTTP address",
    expected: "http://host:8123 or https://host:8443",
    parse: (text) => urlOf(text, ["http:", "https:"]),
  },
  clickhouseUser: {
    name: "CLICKHOUSE_USER",
    default: "default",
    meaning: "user of the ClickHouse server",
    expected: "a user name",
    parse: (text) => text,
  },
  clickhousePassword: {
    name: "CLICKHOUSE_PASSWORD",
    default: null,
    unset: "none",
    secret: true,
    meaning: "password of that user",
    expected: "a password",
    parse: (text) => text,
  },
  clickhouseDatabase: {
    name: "CLICKHOUSE_DATABASE",
    default: "waybill",
    meaning: "database that holds the ledger",
    expected: "a name of letters, digits and underscores",
    parse: (text) => matching(text, /^[A-Za-z_]\w{0,62}$/),
  },
  clickhouseCluster: {
    name: "CLICKHOUSE_CLUSTER",
    default: null,
    unset: "a single node",
    meaning: "name of the ClickHouse cluster that the tables are spread over",
    expected: "a name of letters, digits, underscores and hyphens",
    parse: (text) => matching(text, /^[A-Za-z_][\w-]{0,62}$/),
  },
  eventsKeptMonths: {
    name: "EVENTS_KEPT_MONTHS",
    default: "13",
    meaning: "how long the ledger keeps events; sums by hour and day stay",
    // Fifty years: ClickHouse's DateTime ends in 2106, and a time beyond it counts as long past.
    ...wholeNumber(1, 600),
  },
  jobsKeptDays: {
    name: "JOBS_KEPT_DAYS",
    default: "90",
    meaning: "how long the ledger keeps finished jobs with their results",
    ...wholeNumber(1, 18_250),
  },
  clickhouseHttpPort: {
    name: "CLICKHOUSE_HTTP_PORT",
    default: "0",
    meaning:
      "embedded only: serves the ledger, read-only, over ClickHouse's HTTP protocol on loopback (docs/analysts.md); `0` is off",
    ...wholeNumber(0, 65_535),
  },
  operatorToken: {
    name: "OPERATOR_TOKEN",
    default: null,
    generated: { file: "operator-token", make: () => randomBytes(32).toString("base64url") },
    secret: true,
    meaning: "bearer token of `/dash/api`",
    expected: `at least ${TOKEN_CHARS_MIN} printable ASCII characters without blanks`,
    parse: (text) => matching(text, new RegExp(`^[!-~]{${TOKEN_CHARS_MIN},}$`)),
  },
  masterKeys: {
    name: "MASTER_KEY",
    default: null,
    generated: { file: "master-key", make: () => randomBytes(MASTER_KEY_BYTES).toString("base64"), keepsData: true },
    secret: true,
    meaning: "encrypts stored credentials and signs links; a comma-separated list rotates it (the first one encrypts)",
    expected: `${MASTER_KEY_BYTES} bytes in base64, or several of them separated by commas`,
    parse: (text) => list(text, masterKey),
  },
  webhookSecrets: {
    name: "WEBHOOK_SECRET",
    default: null,
    generated: { file: "webhook-secret", make: () => randomBytes(32).toString("base64url") },
    secret: true,
    meaning:
      "verify token and HMAC key of `/webhook/whatsapp`; a comma-separated list rotates it (any of them is taken)",
    expected: `at least ${TOKEN_CHARS_MIN} characters, or several such secrets separated by commas`,
    parse: (text) => list(text, (secret) => (secret.length >= TOKEN_CHARS_MIN ? secret : undefined)),
  },
  providers: {
    name: "PROVIDERS",
    default: "sandbox",
    meaning: "`sandbox` (nothing leaves the machine) or `live`",
    expected: PROVIDERS.join(" or "),
    parse: (text) => oneOf(text, PROVIDERS),
  },
  outboundAllow: {
    name: "OUTBOUND_ALLOW",
    default: null,
    unset: "none; with the sandbox: loopback",
    meaning:
      "networks (CIDR, comma-separated) that tenants' webhooks and mail servers may be in although they are private; webhooks over `http` go to these only",
    expected: "networks like 10.0.0.0/8 or fd00::/8, separated by commas",
    parse: (text) => list(text, network),
  },
  smtpUrl: {
    name: "SMTP_URL",
    default: null,
    unset: "the sandbox",
    secret: true,
    meaning: "the MTA that mail is submitted to, with user and password where it needs them",
    expected: "smtp://host:25 or smtps://user:password@host:465",
    parse: (text) => (parseSmtpUrl(text) === null || /\s/.test(text) ? undefined : text),
  },
  mailLog: {
    name: "MAIL_LOG",
    default: null,
    unset: "none",
    meaning: "path of Postfix's log, which is followed for `delivered`, `bounced` and `failed`",
    expected: "the path of a file",
    parse: (text) => resolve(text),
  },
  mailHost: {
    name: "MAIL_HOST",
    default: null,
    unset: "the host of `PUBLIC_URL`, or else the domain of `MAIL_FROM`",
    meaning:
      "host that takes bounces (the `MX` of tenants' return paths); its SPF record, at `spf.MAIL_HOST`, lists the " +
      "addresses that mail is sent from",
    expected: "a host name like mx.example.com",
    parse: hostName,
  },
  mailFrom: {
    name: "MAIL_FROM",
    default: "Waybill <no-reply@waybill.test>",
    meaning: "sender of tenants without a domain of their own",
    expected: "an address like no-reply@example.com or Example <no-reply@example.com>",
    parse: mailbox,
  },
  whatsappApiUrl: {
    name: "WHATSAPP_API_URL",
    default: null,
    unset: "the sandbox; with `PROVIDERS=live` the provider's public one",
    meaning: "address of the WhatsApp Cloud API; a version at its end goes before `WHATSAPP_API_VERSION`",
    ...webUrl("https://graph.example.com"),
  },
  whatsappApiVersion: {
    name: "WHATSAPP_API_VERSION",
    default: "v25.0",
    meaning: "version of the WhatsApp Cloud API that is called",
    expected: "a version like v25.0",
    parse: (text) => matching(text, /^v\d{1,3}\.\d$/),
  },
  googleWalletApiUrl: {
    name: "GOOGLE_WALLET_API_URL",
    default: null,
    unset: "the sandbox; with `PROVIDERS=live` the provider's public one",
    meaning: "address of the Google Wallet API; without a path, that of version 1 is added (`/walletobjects/v1`)",
    ...webUrl("https://wallet.example.com"),
  },
  googleTokenUrl: {
    name: "GOOGLE_TOKEN_URL",
    default: null,
    unset: "the sandbox; with `PROVIDERS=live` the provider's public one",
    meaning: "where Google access tokens come from",
    ...webUrl("https://token.example.com/token"),
  },
  apnsUrl: {
    name: "APNS_URL",
    default: null,
    unset: "the sandbox; with `PROVIDERS=live` the provider's public one",
    meaning: "address of the Apple Push Notification service",
    ...webUrl("https://push.example.com"),
  },
  appleCertificate: {
    name: "APPLE_CERTIFICATE",
    default: null,
    unset: "none; with the sandbox one that is made up",
    // Whoever mistakes it for the key must not read that in an error.
    secret: true,
    meaning: "the platform's own Pass Type ID certificate, for tenants without one: PEM, or the path of a PEM file",
    ...pemText("CERTIFICATE"),
  },
  applePrivateKey: {
    name: "APPLE_PRIVATE_KEY",
    default: null,
    unset: "none; with the sandbox one that is made up",
    secret: true,
    meaning: "its private key: PEM, or the path of a PEM file",
    ...pemText("PRIVATE KEY"),
  },
  applePassphrase: {
    name: "APPLE_PASSPHRASE",
    default: null,
    unset: "none",
    secret: true,
    meaning: "passphrase of that key, where it is encrypted",
    expected: "a passphrase",
    parse: (text) => text,
  },
  appleWwdr: {
    name: "APPLE_WWDR",
    default: null,
    unset: "Apple's own that issued it",
    // Whoever mistakes it for the key must not read that in an error.
    secret: true,
    meaning: "the intermediate certificate that issued it: PEM, or the path of a PEM file",
    ...pemText("CERTIFICATE"),
  },
  applePassTypeId: {
    name: "APPLE_PASS_TYPE_ID",
    default: null,
    unset: "none; with the sandbox one that is made up",
    meaning: "pass type that this certificate is for",
    expected: "a pass type identifier like pass.com.example.ticket",
    parse: (text) => matching(text, /^pass\.[A-Za-z0-9.-]{1,150}$/),
  },
  appleTeamId: {
    name: "APPLE_TEAM_ID",
    default: null,
    unset: "none; with the sandbox one that is made up",
    meaning: "team that this certificate belongs to",
    expected: "the ten characters of a team id",
    parse: (text) => matching(text, /^[A-Z0-9]{10}$/),
  },
  saveUrlBase: {
    name: "SAVE_URL_BASE",
    default: null,
    unset: "`https://pay.google.com/gp/v/save`",
    meaning: "base of Google Wallet save links",
    ...webUrl("https://pay.example.com/save"),
  },
  googleServiceAccount: {
    name: "GOOGLE_SERVICE_ACCOUNT",
    default: null,
    unset: "none; with the sandbox one that is made up",
    secret: true,
    meaning: "the platform's own service account for Google Wallet: the path of its JSON key file, or the JSON itself",
    expected: "the path of a service account's key file, or its JSON, with client_email and an RSA private_key",
    parse: serviceAccount,
  },
  googleIssuerId: {
    name: "GOOGLE_ISSUER_ID",
    default: null,
    unset: "none; with the sandbox one that is made up",
    meaning: "the Google Wallet issuer that this service account acts for",
    expected: "the digits of an issuer id",
    parse: (text) => matching(text, /^\d{1,20}$/),
  },
  whatsappPhoneNumberId: {
    name: "WHATSAPP_PHONE_NUMBER_ID",
    default: null,
    unset: "none; with the sandbox one that is made up",
    meaning: "the platform's own phone number, for tenants without credentials of their own",
    expected: "the digits of a phone number id",
    parse: (text) => matching(text, /^\d{1,32}$/),
  },
  whatsappAccessToken: {
    name: "WHATSAPP_ACCESS_TOKEN",
    default: null,
    unset: "none; with the sandbox one that is made up",
    secret: true,
    meaning: "access token of that phone number",
    expected: "an access token",
    parse: (text) => matching(text, /^[!-~]+$/),
  },
  spamFilter: {
    name: "SPAM_FILTER",
    default: "builtin",
    meaning: "`off`, `builtin` or the URL of an rspamd worker",
    expected: "off, builtin or the URL of an rspamd worker like http://127.0.0.1:11333",
    parse: (text) => oneOf(text, BUILTIN_SPAM_FILTERS) ?? urlOf(text, ["http:", "https:"]),
  },
  spamThreshold: {
    name: "SPAM_THRESHOLD",
    default: "5",
    meaning: "an inline-HTML e-mail that scores above it fails",
    expected: "a number from 0 to 1000",
    parse: (text) => inRange(/^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN, 0, 1000),
  },
  dnsServers: {
    name: "DNS_SERVERS",
    default: null,
    unset: "the system's",
    meaning: "resolvers that domain verification asks, comma-separated",
    expected: "IP addresses with a port, like 10.0.0.2:53 or [::1]:53, separated by commas",
    parse: (text) => list(text, socketAddress),
  },
  shards: {
    name: "SHARDS",
    default: "16",
    meaning:
      "virtual shards: the most dispatchers that can share the work. Each has its own ledger batches, so more is not " +
      "better. Fixed when the data is first created; another value later is refused at the start",
    ...wholeNumber(1, 256),
  },
  logLevel: {
    name: "LOG_LEVEL",
    default: "info",
    meaning: "`debug`, `info`, `warn` or `error`; JSON lines on a server, readable on a terminal",
    expected: LOG_LEVELS.join(", "),
    parse: (text) => oneOf(text, LOG_LEVELS),
  },
} satisfies Record<string, Setting<unknown>>;
