import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import { parseSmtpUrl } from "../domain/channels/smtp-url.ts";
import { EVENT_STORE_SETTINGS } from "./event-store-settings.ts";
import { PROVIDER_SETTINGS } from "./provider-settings.ts";
import { REPUTATION_SETTINGS } from "./reputation-settings.ts";
import type { Setting } from "./setting.ts";
import { SUBMISSION_SETTINGS } from "./submission-settings.ts";
import { TRACING_SETTINGS } from "./tracing-settings.ts";
import {
  contact,
  distinct,
  hostName,
  hostOrAddress,
  inRange,
  list,
  MASTER_KEY_BYTES,
  mailbox,
  masterKey,
  matching,
  nameServer,
  network,
  parseChoice,
  parseUrl,
  processCount,
  redisAddress,
  TOKEN_CHARS_MIN,
  webUrl,
  wholeNumber,
} from "./values.ts";

const ROLES = ["api", "dispatcher", "recorder", "maillog", "smtp"] as const;
const HOME_OWNERS = ["self", "any"] as const;
const PROVIDERS = ["sandbox", "live"] as const;
const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
const BUILTIN_SPAM_FILTERS = ["off", "builtin"] as const;

/** A secret sent in a header. */
const bearerToken = {
  expected: `at least ${TOKEN_CHARS_MIN} printable ASCII characters without blanks`,
  parse: (text: string) => matching(text, new RegExp(`^[!-~]{${TOKEN_CHARS_MIN},}$`)),
};

/** Every setting, by its name in `Config`, in the order of the documentation. */
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
    ...hostOrAddress,
  },
  publicUrl: {
    name: "PUBLIC_URL",
    default: null,
    unset: "`http://HOST:PORT`",
    meaning: "base of tracking, unsubscribe and wallet web-service links",
    ...webUrl("https://send.example.com"),
  },
  securityContacts: {
    name: "SECURITY_CONTACT",
    default: null,
    unset: "no such file",
    meaning:
      "where vulnerabilities are to be reported, for `/.well-known/security.txt` (RFC 9116); several, comma-separated, in the order " +
      "of preference",
    expected: "an e-mail address like security@example.com, or an address that begins with https://, mailto: or tel:",
    parse: (text) => list(text, contact),
  },
  roles: {
    name: "ROLES",
    default: "api,dispatcher,recorder",
    meaning:
      "which roles this process plays; `maillog` is on by itself where `MAIL_LOG` is set, and `smtp` takes mail by SMTP " +
      "(docs/smtp.md)",
    expected: `a comma-separated selection of ${ROLES.join(", ")}`,
    parse: (text) => distinct(list(text, (item) => parseChoice(item, ROLES))),
  },
  processes: {
    name: "PROCESSES",
    default: null,
    unset: "one a core, 16 at most",
    meaning:
      "over how many processes a start spreads its roles (docs/processes.md), or how many of a role there are beside the " +
      "main process, like `api=1,dispatcher=2`; `1` is all in one",
    expected: "a whole number from 1 to 64, or how many of a role, like api=1,dispatcher=2",
    parse: processCount,
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
  homeOwner: {
    name: "WAYBILL_HOME_OWNER",
    default: "self",
    meaning:
      "whose the data folder may be: `self` is the user that Waybill runs as; `any` is for bind mounts and network file systems " +
      "that show another owner ([SECURITY.md](SECURITY.md))",
    expected: `one of ${HOME_OWNERS.join(", ")}`,
    parse: (text) => parseChoice(text, HOME_OWNERS),
  },
  redis: {
    name: "REDIS_URL",
    default: null,
    unset: "a private redis-server",
    secret: true,
    meaning: "Redis 7 or later, or Valkey; several URLs, comma-separated, are the seeds of a Redis Cluster",
    expected: "redis://host:6379 or rediss://host:6379, or several of them separated by commas",
    parse: redisAddress,
  },
  redisReplicasAcked: {
    name: "REDIS_REPLICAS_ACKED",
    default: "0",
    meaning:
      "how many replicas of a shared Redis must have a job before it is answered with 202 (docs/redis-cluster.md); with " +
      "fewer, the answer is 500, though the master has it and it is sent",
    ...wholeNumber(0, 5),
  },
  databaseUrl: {
    name: "DATABASE_URL",
    default: null,
    unset: "PGlite in the process",
    secret: true,
    meaning: "PostgreSQL 15 or later",
    expected: "postgres://user:password@host:5432/database",
    parse: (text) => parseUrl(text, ["postgres:", "postgresql:"]),
  },
  ...EVENT_STORE_SETTINGS,
  operatorToken: {
    name: "OPERATOR_TOKEN",
    default: null,
    generated: { file: "operator-token", make: () => randomBytes(32).toString("base64url") },
    secret: true,
    meaning: `bearer token of \`/dash/api\`: ${TOKEN_CHARS_MIN} characters at least, and more where \`HOST\` is not loopback (docs/tls.md)`,
    ...bearerToken,
  },
  metricsToken: {
    name: "METRICS_TOKEN",
    default: null,
    unset: "none: `/metrics` answers programs of this machine alone",
    secret: true,
    meaning: "bearer token of `/metrics`, from wherever it is asked for",
    ...bearerToken,
  },
  metricsHost: {
    name: "METRICS_HOST",
    default: null,
    unset: "`127.0.0.1`",
    meaning: "address of the listener at `METRICS_PORT`",
    ...hostOrAddress,
  },
  metricsPort: {
    name: "METRICS_PORT",
    default: null,
    unset: "none: `/metrics` is at `HOST:PORT`",
    meaning:
      "port of a listener of its own for `/metrics`, which answers everybody who reaches it (with `METRICS_TOKEN`: who " +
      "has that) and elsewhere only at `ADMIN_PORT` then; `0` takes a free one",
    ...wholeNumber(0, 65_535),
  },
  adminHost: {
    name: "ADMIN_HOST",
    default: null,
    unset: "`127.0.0.1`",
    meaning: "address of the listener at `ADMIN_PORT`",
    ...hostOrAddress,
  },
  adminPort: {
    name: "ADMIN_PORT",
    default: null,
    unset: "none: all of it is at `HOST:PORT`",
    meaning:
      "port of a private listener for operators and monitoring: `/dash`, `/dash/api`, `/metrics` (for everybody who " +
      "reaches it; with `METRICS_TOKEN`: who has that), `/health` and `/ready`. The first three answer 404 at " +
      "`HOST:PORT` then; `0` takes a free port",
    ...wholeNumber(0, 65_535),
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
    meaning: `verify token and HMAC key of \`/webhook/whatsapp\`, ${TOKEN_CHARS_MIN} characters at least; a comma-separated list rotates it (any of them is taken)`,
    expected: `at least ${TOKEN_CHARS_MIN} characters, or several such secrets separated by commas`,
    parse: (text) => list(text, (secret) => (secret.length >= TOKEN_CHARS_MIN ? secret : undefined)),
  },
  providers: {
    name: "PROVIDERS",
    default: "sandbox",
    meaning:
      "`live`, or `sandbox`: what has no address of its own below (`SMTP_URL`, `…_API_URL`, `APNS_URL`) is sent to stand-ins " +
      "in the process",
    expected: PROVIDERS.join(" or "),
    parse: (text) => parseChoice(text, PROVIDERS),
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
    unset: "the sandbox; with `PROVIDERS=live` it has to be set",
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
  ehloName: {
    name: "EHLO_NAME",
    default: null,
    unset: "`MAIL_HOST`, or else the machine's full name",
    meaning:
      "how mail servers are greeted; the name of the address that mail is sent from, which many servers look up before they take any",
    expected: "a host name like mail.example.com, or an address like [192.0.2.1]",
    parse: (text) => hostName(text) ?? (/^\[[\d.]{7,15}\]$|^\[IPv6:[\da-f:.]{2,45}\]$/i.test(text) ? text : undefined),
  },
  mailFrom: {
    name: "MAIL_FROM",
    default: "Waybill <no-reply@waybill.test>",
    meaning: "sender of tenants without a domain of their own",
    expected: "an address like no-reply@example.com or Example <no-reply@example.com>",
    parse: mailbox,
  },
  ...PROVIDER_SETTINGS,
  ...SUBMISSION_SETTINGS,
  spamFilter: {
    name: "SPAM_FILTER",
    default: "builtin",
    meaning: "`off`, `builtin` or the URL of an rspamd worker",
    expected: "off, builtin or the URL of an rspamd worker like http://127.0.0.1:11333",
    parse: (text) => parseChoice(text, BUILTIN_SPAM_FILTERS) ?? parseUrl(text, ["http:", "https:"]),
  },
  spamThreshold: {
    name: "SPAM_THRESHOLD",
    default: "5",
    meaning: "an e-mail with inline HTML or text that scores above it fails",
    expected: "a number from 0 to 1000",
    parse: (text) => inRange(/^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN, 0, 1000),
  },
  dnsServers: {
    name: "DNS_SERVERS",
    default: null,
    unset: "the system's",
    meaning: "resolvers that domain verification asks, `host:port`, comma-separated; a name is looked up at the start",
    expected: "hosts with a port, like 10.0.0.2:53, [::1]:53 or dns.example.com:53, separated by commas",
    parse: (text) => list(text, nameServer),
  },
  shards: {
    name: "SHARDS",
    default: "16",
    meaning:
      "virtual shards: the most dispatchers that can share the work. Each costs calls of its own, so more is not " +
      "better. Fixed when the data is first created; another value later is refused at the start",
    ...wholeNumber(1, 256),
  },
  logLevel: {
    name: "LOG_LEVEL",
    default: "info",
    meaning: "`debug`, `info`, `warn` or `error`; JSON lines on a server, readable on a terminal",
    expected: LOG_LEVELS.join(", "),
    parse: (text) => parseChoice(text, LOG_LEVELS),
  },
  logJobs: {
    name: "LOG_JOBS",
    default: "0",
    meaning:
      "share of the jobs, 0 to 1, that have a line in the log (at `info`) when they are accepted, with the request's id, and " +
      "when they end; failures have one in any case (at `warn`), up to 20 a minute of a tenant and 600 of a process",
    expected: "a number from 0 to 1",
    parse: (text) => inRange(/^\d(\.\d+)?$/.test(text) ? Number(text) : Number.NaN, 0, 1),
  },
  ...REPUTATION_SETTINGS,
  ...TRACING_SETTINGS,
} satisfies Record<string, Setting<unknown>>;
