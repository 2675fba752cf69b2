import { randomBytes } from "node:crypto";
import type { Setting } from "./setting.ts";
import { matching, parseUrl, TOKEN_CHARS_MIN, wholeNumber } from "./values.ts";

/** The event store's location, its retention, and its other readers. */
export const EVENT_STORE_SETTINGS = {
  clickhouseUrl: {
    name: "CLICKHOUSE_URL",
    default: null,
    unset: "a ClickHouse server of its own, out of chDB",
    secret: true,
    meaning: "ClickHouse's HTTP address",
    expected: "http://host:8123 or https://host:8443",
    parse: (text) => parseUrl(text, ["http:", "https:"]),
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
    meaning: "database that holds the event store",
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
    meaning: "how long the event store keeps events, at least; sums by hour and day stay",
    // Fifty years: ClickHouse's DateTime ends in 2106, and a time beyond it counts as long past.
    ...wholeNumber(1, 600),
  },
  jobsKeptDays: {
    name: "JOBS_KEPT_DAYS",
    default: "90",
    meaning: "how long the event store keeps finished jobs with their results, at least",
    ...wholeNumber(1, 18_250),
  },
  clickhouseHttpPort: {
    name: "CLICKHOUSE_HTTP_PORT",
    default: "0",
    meaning:
      "embedded only: serves the event store, read-only, over ClickHouse's HTTP protocol on loopback (docs/analysts.md); `0` is off",
    ...wholeNumber(0, 65_535),
  },
  clickhouseHttpPassword: {
    name: "CLICKHOUSE_HTTP_PASSWORD",
    default: null,
    generated: {
      file: "clickhouse-http-password",
      make: () => randomBytes(24).toString("base64url"),
      onlyWith: "clickhouseHttpPort",
    },
    secret: true,
    meaning: "password of that port, for the user `default`",
    expected: `at least ${TOKEN_CHARS_MIN} printable ASCII characters without blanks`,
    parse: (text) => matching(text, new RegExp(`^[!-~]{${TOKEN_CHARS_MIN},}$`)),
  },
} satisfies Record<string, Setting<unknown>>;
