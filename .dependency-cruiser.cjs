// The architecture as a table: a folder may import itself and the folders named here, nothing else.
// Type-only imports count: they couple just as well.
const MAY_IMPORT = {
  domain: [],
  engine: ["domain"],
  http: ["domain"],
  storage: ["domain"],
  events: ["domain", "http"],
  channels: ["domain", "http", "storage", "runtime/certificates"],
  tenants: ["domain", "http", "storage"],
  operators: ["domain", "http", "storage"],
  webhooks: ["domain", "http", "storage"],
  processes: ["domain"],
  runtime: ["domain"],
  config: ["domain"],
  belonging: ["domain", "config", "engine", "events", "storage"],
};

// A channel's wiring, and what a channel is to the app, may know of what the app knows, too.
const WIRING = "^src/channels/([^/]+/wiring(\\.ts$|/)|contract\\.ts$)";
const WIRING_MAY_IMPORT = ["channels", "domain", "http", "storage", "config", "runtime", "processes"];

// A driver is known to the folders named here alone, so that it can be replaced there.
const DRIVERS = {
  elysia: ["http"],
  "@elysiajs/openapi": ["http"],
  "@sinclair/typebox": ["http", "events", "channels", "tenants", "operators", "webhooks"],
  "swagger-ui-dist": ["http"],
  ioredis: ["engine/queue", "storage"],
  "@clickhouse/client": ["events", "storage"],
  "@electric-sql/pglite": ["storage"],
  "drizzle-orm": ["storage", "tenants", "channels", "operators", "webhooks"],
  negotiator: ["http"],
  preact: ["operators/dashboard"],
  uplot: ["operators/dashboard"],
  "postal-mime": ["operators/dashboard", "channels/email/submission"],
  nodemailer: ["channels/email"],
  "smtp-server": ["channels/email/sandbox", "channels/email/submission"],
  pkijs: ["channels/wallet", "runtime/certificates"],
  asn1js: ["runtime/certificates"],
  fflate: ["channels/wallet/apple"],
  "google-auth-library": ["channels/wallet/google"],
  htmlparser2: ["channels/email"],
  pino: ["runtime/telemetry"],
  "pino-pretty": ["runtime/telemetry"],
  "@prometheus-io/client": ["runtime/telemetry"],
  "tar-stream": ["storage/backup"],
};

// The only places where implementations meet.
const APP = "^src/(main\\.ts$|app/|commands/|demo/|tasks/)";

const any = (names) => names.join("|");
const error = (name, from, to) => ({ name, severity: "error", from, to });

module.exports = {
  forbidden: [
    ...Object.entries(MAY_IMPORT).map(([folder, allowed]) =>
      error(
        `${folder}-imports-only-${any(allowed) || "itself"}`,
        { path: `^src/${folder}/`, pathNot: WIRING },
        { path: "^src/", pathNot: `^src/(${any([folder, ...allowed])})/` },
      ),
    ),
    error("wiring-of-channels", { path: WIRING }, { path: "^src/", pathNot: `^src/(${any(WIRING_MAY_IMPORT)})/` }),
    error(
      "only-the-app-and-wiring-know-the-contract",
      { path: "^src/", pathNot: `${APP}|${WIRING}` },
      { path: "^src/channels/contract\\.ts$" },
    ),
    error(
      "only-the-app-imports-wiring",
      { path: "^src/", pathNot: `${APP}|${WIRING}` },
      { path: WIRING, pathNot: "contract\\.ts$" },
    ),
    error(
      "every-folder-is-in-the-table",
      { path: "^src/[^/]+/", pathNot: `^src/(${any(Object.keys(MAY_IMPORT))})/|${APP}` },
      { path: "." },
    ),
    ...Object.entries(DRIVERS).map(([driver, folders]) =>
      error(
        `${driver}-only-in-${any(folders)}`,
        { path: "^src/", pathNot: `^src/(${any(folders)})/` },
        { path: `(^|/)node_modules/${driver}/` },
      ),
    ),
    error("the-domain-needs-no-package", { path: "^src/domain/" }, { pathNot: "^src/" }),
    error(
      "only-the-queue-of-the-engine-needs-packages",
      { path: "^src/engine/", pathNot: "^src/engine/queue/" },
      { pathNot: "^src/" },
    ),
    error(
      "requests-are-checked-without-io",
      { path: "^src/channels/[^/]+/request(\\.ts$|/)" },
      { pathNot: "^src/|(^|/)node_modules/(htmlparser2|@sinclair/typebox)/" },
    ),
    error(
      "stores-know-nothing-of-http",
      { path: "^src/.*-repository\\.ts$" },
      { path: "^src/http/|endpoints?\\.ts$|(^|/)node_modules/@sinclair/typebox/" },
    ),
    error(
      "channels-are-strangers",
      { path: "^src/channels/([^/]+)/" },
      { path: "^src/channels/([^/]+)/", pathNot: "^src/channels/$1/" },
    ),
    error(
      "only-the-app-reads-the-configuration",
      { path: "^src/", pathNot: `${APP}|${WIRING}|^src/(config|belonging)/` },
      { path: "^src/config/" },
    ),
    error("nobody-imports-the-app", { path: "^src/", pathNot: APP }, { path: APP }),
    // The dashboard calls the API with the client that everybody gets, and runs in browsers alone.
    error("src-knows-no-test", { path: "^src/" }, { path: "^(test|bench|infra)/" }),
    error(
      "only-the-dashboard-uses-the-client",
      { path: "^src/", pathNot: "^src/operators/dashboard/" },
      { path: "^clients/" },
    ),
    error(
      "the-dashboard-runs-in-browsers",
      { path: "^src/operators/dashboard/" },
      { path: "^src/", pathNot: "^src/operators/dashboard/" },
    ),
    error(
      "nobody-imports-the-dashboard",
      { path: "^(src|infra|bench)/", pathNot: "^src/operators/dashboard/" },
      { path: "^src/operators/dashboard/" },
    ),
    error("clients-stand-alone", { path: "^clients/" }, { pathNot: "^clients/" }),
    error(
      "simulation-runs-the-engine-alone",
      { path: "^test/(simulation|property)/" },
      { path: "^src/", pathNot: "^src/(domain|engine)/|^src/channels/[^/]+/request\\.ts$" },
    ),
    error("no-cycle", {}, { circular: true }),
    error("no-orphan", { orphan: true, path: "^src/", pathNot: "\\.d\\.ts$|drizzle\\.config\\.ts$" }, {}),
    error(
      "no-undeclared-package",
      { path: "^src/", pathNot: "drizzle\\.config\\.ts$" },
      { dependencyTypes: ["npm-dev", "npm-no-pkg", "npm-unknown"] },
    ),
    error(
      "no-unresolvable",
      { path: "^(src|test|bench|infra|clients)/" },
      { couldNotResolve: true, pathNot: "^bun(:|$)|\\.(lua|pem)$" },
    ),
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["bun", "import", "require", "node", "default"],
    },
    doNotFollow: { path: "node_modules" },
    builtInModules: { add: ["bun", "bun:sqlite", "bun:test", "bun:jsc", "bun:ffi"] },
  },
};
