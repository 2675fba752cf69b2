// The architecture as a table: a folder may import itself and the folders named here, nothing else.
// Type-only imports count: they couple just as well.
const MAY_IMPORT = {
  core: [],
  intake: ["core"],
  actors: ["core"],
  journal: ["core"],
  ledger: ["core"],
  registry: ["core"],
  domains: ["core"],
  channels: ["core"],
  links: ["core"],
  api: ["core", "intake"],
  embedded: ["core"],
  processes: ["core"],
  maillog: ["core"],
  sandbox: ["core"],
  runtime: ["core"],
  telemetry: ["core"],
  dashboard: ["core"],
  config: ["core"],
};

// A driver is known to the folders named here alone, so that it can be replaced there.
const DRIVERS = {
  elysia: ["api"],
  "@sinclair/typebox": ["api"],
  "swagger-ui-dist": ["api"],
  ioredis: ["journal", "embedded"],
  "@clickhouse/client": ["ledger", "embedded"],
  chdb: ["embedded"],
  "@electric-sql/pglite": ["embedded"],
  "drizzle-orm": ["registry", "embedded"],
  nodemailer: ["channels/email"],
  "smtp-server": ["sandbox"],
  pkijs: ["channels/wallet/apple", "sandbox"],
  asn1js: ["sandbox"],
  fflate: ["channels/wallet/apple"],
  "google-auth-library": ["channels/wallet/google"],
  htmlparser2: ["intake", "channels"],
  pino: ["telemetry"],
  "pino-pretty": ["telemetry"],
  "prom-client": ["telemetry"],
};

// The only places where implementations meet.
const HOUSE = "^src/(main\\.ts$|house/|commands/)";

const any = (names) => names.join("|");
const error = (name, from, to) => ({ name, severity: "error", from, to });

module.exports = {
  forbidden: [
    ...Object.entries(MAY_IMPORT).map(([folder, allowed]) =>
      error(
        `${folder}-imports-only-${any(allowed) || "itself"}`,
        { path: `^src/${folder}/` },
        { path: "^src/", pathNot: `^src/(${any([folder, ...allowed])})/` },
      ),
    ),
    error(
      "every-folder-is-in-the-table",
      { path: "^src/[^/]+/", pathNot: `^src/(${any(Object.keys(MAY_IMPORT))})/|${HOUSE}` },
      { path: "." },
    ),
    ...Object.entries(DRIVERS).map(([driver, folders]) =>
      error(
        `${driver}-only-in-${any(folders)}`,
        { path: "^src/", pathNot: `^src/(${any(folders)})/` },
        { path: `(^|/)node_modules/${driver}/` },
      ),
    ),
    error("core-is-deterministic", { path: "^src/(core|actors)/" }, { pathNot: "^src/" }),
    error("intake-is-deterministic", { path: "^src/intake/" }, { pathNot: "^src/|(^|/)node_modules/htmlparser2/" }),
    error(
      "channels-are-strangers",
      { path: "^src/channels/([^/]+)/" },
      { path: "^src/channels/([^/]+)/", pathNot: "^src/channels/$1/" },
    ),
    error(
      "only-the-house-reads-the-configuration",
      { path: "^src/", pathNot: `${HOUSE}|^src/config(\\.ts$|/)` },
      { path: "^src/config(\\.ts$|/)" },
    ),
    error("config-stands-alone", { path: "^src/config(\\.ts$|/)" }, { path: "^src/", pathNot: "^src/(core/|config)" }),
    error("nobody-imports-the-house", { path: "^src/", pathNot: HOUSE }, { path: HOUSE }),
    error("src-knows-no-test", { path: "^src/" }, { path: "^(test|bench|infra)/" }),
    error(
      "simulation-runs-the-engine-alone",
      { path: "^test/(simulation|property)/" },
      { path: "^src/", pathNot: "^src/(core|intake|actors)/|^src/ledger/recorder\\.ts$" },
    ),
    error("no-cycle", {}, { circular: true }),
    error(
      "no-orphan",
      { orphan: true, path: "^src/", pathNot: "\\.d\\.ts$|drizzle\\.config\\.ts$|^src/dashboard/.*\\.js$" },
      {},
    ),
    error(
      "no-undeclared-package",
      { path: "^src/", pathNot: "drizzle\\.config\\.ts$" },
      { dependencyTypes: ["npm-dev", "npm-no-pkg", "npm-unknown"] },
    ),
    error(
      "no-unresolvable",
      { path: "^(src|test|bench|infra)/" },
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
